"""The recipes of `benchmarks/bae.py`: the paper's seven data sets, split without a text on both sides."""

from __future__ import annotations

import gzip
import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

from stockade.studies.bae.published import DATA_SETS, published_data, published_model

FOLDER = Path(__file__).parents[3] / "benchmarks"
DATA = Path(__file__).parents[4] / "shared" / "data"


@pytest.fixture(scope="module")
def benchmark() -> ModuleType:
    """`benchmarks/bae.py`, which is no part of a package."""
    spec = importlib.util.spec_from_file_location("bae_benchmark", FOLDER / "bae.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    sys.path.insert(0, str(FOLDER))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(FOLDER))
    return module


def write(path: Path, rows: list[tuple[str, int]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt", encoding="utf-8") as stream:
        stream.writelines(json.dumps({"text": text, "label": label}) + "\n" for text, label in rows)
    return path


def texts(path: Path) -> list[str]:
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        return [json.loads(line)["text"] for line in stream]


def test_every_cell_has_its_place_in_the_papers_tables(benchmark: ModuleType) -> None:
    assert tuple(benchmark.RECIPES) == DATA_SETS
    assert {published_data(name) for name in benchmark.RECIPES} == set(DATA_SETS)
    models = {published_model(name, benchmark.STAND_INS) for name in benchmark.ARCHITECTURES}
    assert models == {"wordLSTM", "wordCNN", "BERT"}


def test_a_split_has_no_text_on_both_sides_and_is_made_once(benchmark: ModuleType, tmp_path: Path) -> None:
    rows = [(f"text number {at}", at % 2) for at in range(400)] + [("Text  number 7!", 1)] * 3
    source = write(tmp_path / "mpqa" / "all.jsonl.gz", rows)
    (data,) = benchmark.find_data(tmp_path, tmp_path / "out", [], [], None)
    train, test = texts(data.train), texts(data.test)
    assert sorted(train + test) == sorted(text for text, _ in rows)
    assert 20 < len(test) < 70
    sides = [side for side in (train, test) if "text number 7" in side]
    assert sides == [side for side in (train, test) if "Text  number 7!" in side], "equal but for case and punctuation"
    source.write_bytes(b"")
    again = benchmark.split_rows(source, tmp_path / "out" / "data" / "mpqa")
    assert texts(again[1]) == test
    assert data.models == ("word-lstm", "word-cnn"), "MiniLM only on MR and TREC"


def test_files_of_the_user_and_those_that_are_missing(benchmark: ModuleType, tmp_path: Path) -> None:
    train = write(tmp_path / "a.jsonl.gz", [(f"text {at}", at // 30) for at in range(60)])
    test = write(tmp_path / "b.jsonl.gz", [("other", 1)])
    (data,) = benchmark.find_data(tmp_path, tmp_path / "out", [], [f"amazon={train}@{test}"], 40)
    assert (data.name, data.test, len(texts(data.train))) == ("amazon", test, 40)
    assert texts(data.train) != [f"text {at}" for at in range(40)], "a sample, for files may be sorted by class"
    with pytest.raises(SystemExit, match=r"subj: .*all\.jsonl\.gz is not there\. Name its files with --files subj="):
        benchmark.find_data(tmp_path, tmp_path / "out", ["subj"], [], None)
    for wrong in ("subject=a@b", "subj", "subj=a"):
        with pytest.raises(SystemExit, match=r"is not NAME=TRAIN@TEST"):
            benchmark.parse_files(wrong)


@pytest.mark.skipif(not DATA.is_dir(), reason="the shared evaluation data are not on this machine")
def test_five_of_the_seven_are_among_the_shared_data(benchmark: ModuleType, tmp_path: Path) -> None:
    names = [data.name for data in benchmark.find_data(DATA, tmp_path, [], [], None)]
    assert names == ["yelp", "imdb", "mr", "mpqa", "trec"]
