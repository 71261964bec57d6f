"""`--neighbours FILE`: attacks find the words of the user's own table, and the run remembers which table that was."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import stockade as st
from stockade.core.errors import DataError
from stockade.lexicon.neighbours import load_neighbours, read_neighbours
from tests.e2e.conftest import Stockade

ATTACKS = (
    *("--attack", "textfooler:same_pos=false", "--attack", "genetic:population=8,generations=3,max_changed=none"),
    "--no-similarity",
)
COMMAND = ("attack", "python:victim:predict", "data.jsonl", *ATTACKS)
VECTORS = "good 1 0\ngreat 0.9 0.1\nsuperb 0.95 0.05\nbad 0 1\ndull 0.1 0.9\nlacklustre 0.05 0.95\n"


@pytest.fixture
def vectors(folder: Path) -> Path:
    path = folder / "mine.txt"
    path.write_text(VECTORS)
    return path


def config(run: Path) -> dict[str, Any]:
    manifest: dict[str, Any] = json.loads((run / "manifest.json").read_text())
    return manifest


def test_attacks_find_the_words_of_the_file_and_the_manifest_says_which(
    stockade: Stockade, folder: Path, vectors: Path
) -> None:
    result = stockade(*COMMAND, "--out", "runs/a", "--neighbours", "mine.txt")
    assert result.returncode == 0, result.stderr
    rows = [json.loads(line) for line in stockade("export", "runs/a").stdout.splitlines()]
    for attack in ("textfooler", "genetic"):
        written = {edit["after"] for row in rows if row["attack"] == attack for edit in row["edits"]}
        assert written
        assert written <= {line.split()[0] for line in VECTORS.splitlines()}
    manifest = config(folder / "runs" / "a")
    assert manifest["spec"]["neighbours"] == "mine.txt"
    assert manifest["inputs"]["neighbours"] == read_neighbours(vectors).fingerprint()
    stockade(*COMMAND, "--out", "runs/b")
    assert config(folder / "runs" / "b")["spec"]["neighbours"] is None


def test_a_run_is_resumed_with_its_table_and_refuses_another(
    stockade: Stockade, refused: Callable[..., str], folder: Path, vectors: Path
) -> None:
    first = (*COMMAND, "--out", "runs/a", "--neighbours", "mine.txt")
    assert stockade(*first).returncode == 0
    before = stockade("export", "runs/a").stdout
    assert stockade("attack", "--resume", "--out", "runs/a", "--trust-run").returncode == 0
    assert stockade(*first, "--resume").returncode == 0
    assert stockade("export", "runs/a").stdout == before
    assert "neighbours" in refused(*COMMAND, "--out", "runs/a", "--resume")
    vectors.write_text(VECTORS.replace("superb", "splendid"))
    assert "neighbours was" in refused("attack", "--resume", "--out", "runs/a", "--trust-run")
    vectors.unlink()
    assert "There is no neighbour table mine.txt" in refused("attack", "--resume", "--out", "runs/a", "--trust-run")
    assert stockade("export", "runs/a").stdout == before


def test_a_missing_or_malformed_file_is_refused_in_one_sentence(refused: Callable[..., str], folder: Path) -> None:
    (folder / "bad.npz").write_bytes(b"no zip")
    for name, sentence in (
        ("nowhere.npz", "There is no neighbour table nowhere.npz; make one with stockade lexicon build"),
        ("bad.npz", "bad.npz is no neighbour table; make one with stockade lexicon build OUT.npz"),
    ):
        assert sentence in refused(*COMMAND, "--out", "runs/a", "--neighbours", name)
        assert not (folder / "runs").exists()


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("bad.txt", b"good 1 0\nbad zero one\n", "Line 2 of .*bad.txt holds something that is not a number"),
        ("bad.txt", b"good\n", "Line 1 of .*bad.txt has 0 numbers"),
        ("empty.txt", b"", "empty.txt has no vectors"),
        ("bad.txt.gz", b"no gzip", "The vector file .*bad.txt.gz cannot be read"),
        ("cut.txt.gz", gzip.compress(VECTORS.encode(), mtime=0)[:-12], "The vector file .*cut.txt.gz cannot be read"),
        ("bad.bin", b"\x00\x01\x02", "bad.bin is no word2vec binary file"),
        ("alone.npy", b"", "There is no file with the words of .*alone.npy"),
    ],
)
def test_whatever_is_wrong_with_the_file_it_is_said_before_anything_is_written(
    tmp_path: Path, name: str, content: bytes, sentence: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=sentence) as raised:
        st.attack(len, [("a good film", 1)], "textfooler", neighbours=tmp_path / name, out=tmp_path / "run")
    assert "\n" not in str(raised.value)
    assert not (tmp_path / "run").exists()


def test_the_table_is_in_use_during_the_run_alone(vectors: Path) -> None:
    built_in = load_neighbours()
    seen = set[int]()

    def predict(texts: list[str]) -> list[list[float]]:
        seen.add(len(load_neighbours()))
        return [[0.1, 0.9] for _ in texts]

    st.attack(predict, [("a good film", 1)], "textfooler", similarity=False, neighbours=vectors)
    assert 6 in seen
    assert load_neighbours() is built_in
