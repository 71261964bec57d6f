"""A grid of models and data sets: how cells are named, run and resumed, and what they say together."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import stockade as st
from stockade.cli.main import cli
from stockade.core.errors import DataError, OptionError, RunError
from stockade.experiment.store import Effort
from stockade.studies.bae.analysis import analyse
from stockade.studies.bae.claims import check_claims
from stockade.studies.bae.grid import GridResult
from stockade.studies.bae.grid_analysis import CellResults, analyse_grid, by_text, compare_attacks, reached_within
from stockade.studies.bae.grid_claims import check_grid
from stockade.studies.bae.grid_page import advantage_plot, curves_plot
from stockade.studies.bae.spec import BaeSpec
from stockade.studies.bae.study import BaeResult
from stockade.studies.claims import Claim
from stockade.studies.records import AttackNumbers
from stockade.workflows.attack.summary import summarise_attack
from tests.studies.bae.test_numbers import results_of
from tests.studies.bae.test_running import Stop, without_seconds
from tests.studies.bae.toys import REFERENCE, ROWS, predict
from tests.studies.made_studies import success

MODES = ("r", "i", "either", "both")


def cell(name: str, stand_ins: Mapping[str, str] | None = None, /, **outcomes: str) -> CellResults:
    """A cell with these outcomes, one letter per text; modes that are not named do what TextFooler does."""
    results = results_of(**{**dict.fromkeys(MODES, outcomes["tf"]), **outcomes})
    numbers = {
        attack: AttackNumbers.of(summarise_attack(records.values(), Effort())) for attack, records in results.items()
    }
    analysed = analyse(results, numbers, "toy", None)
    return CellResults.of(name, results, analysed, check_claims(results, analysed), stand_ins or {})


def claims_of(*cells: CellResults) -> dict[str, Claim]:
    claims = check_grid({f"{entry.model}/{entry.data}": entry for entry in cells})
    return {claim.claim: claim for claim in claims}


def test_a_text_of_several_models_is_one_text() -> None:
    """Two models on six texts: each text counts once, so twelve wins in a row are p = 2 / 2**6 and not 2 / 2**12."""
    cells = [cell(f"{model}/mr", r="ssssss", tf="ffffff") for model in ("cnn", "lstm")]
    claim = claims_of(*cells)["bae-r is stronger than textfooler"]
    assert claim.verdict == "held"
    assert claim.numbers == (
        "+100.0 points on 6 texts, p = 0.031; by cell 2 held, 0 not held, 0 undecided; in 14 of the paper's 21 cells"
    )
    elsewhere = [cell("cnn/mr", r="sss", tf="fff"), cell("cnn/trec", r="sss", tf="fff")]
    assert claims_of(*elsewhere)["bae-r is stronger than textfooler"].numbers.startswith(
        "+100.0 points on 6 texts, p = 0.031; by cell 0 held, 0 not held, 2 undecided"
    )
    assert by_text(cells, lambda entry: {"0": 1.0 if entry.model == "cnn" else 0.0}) == [0.5]


def test_the_main_claim_is_held_only_if_every_mode_is_stronger() -> None:
    main = "BAE is stronger than TextFooler, in each of its four modes"
    stronger = dict.fromkeys(MODES, "ssssssss")
    held = claims_of(cell("cnn/mr", **stronger, tf="ffffffff"))[main]
    assert held.verdict == "held"
    assert held.numbers == ("of 4 comparisons (cell and mode) 4 held, 0 not held, 0 undecided; in 74 of the paper's 84")
    assert claims_of(cell("cnn/mr", **{**stronger, "r": "fffffsss"}, tf="fffffsss"))[main].verdict == "undecided"
    weaker = cell("cnn/mr", **{**stronger, "r": "ffffffff"}, tf="ffssssss")
    assert claims_of(weaker)[main].verdict == "not held"


def test_a_mode_can_be_stronger_in_the_end_and_not_under_every_cap() -> None:
    entry = cell("cnn/mr", **dict.fromkeys(MODES, "ssssssss"), tf="ffffffff")
    claim = "each mode is stronger than textfooler at every cap from 10 to 50 %"
    assert claims_of(entry)[claim].verdict == "held", "one edit of ten words is 10 %"
    results = {**entry.results}
    results["bae-r"] = {
        str(at): success(at, "bae-r", *[("one", "x")] * 4) for at in range(8)
    }  # four edits of ten words: 40 %
    late = CellResults.of("cnn/mr", results, entry.numbers, (), {})
    assert claims_of(late)[claim].verdict == "undecided"
    assert "17 held, 0 not held, 3 undecided" in claims_of(late)[claim].numbers
    assert reached_within(results, "bae-r") == (0.0, 1.0)
    assert reached_within(results, "bae-i") == (1.0, 1.0)
    assert reached_within(results, "textfooler") == (None, None)


def test_bert_is_compared_with_the_word_models_on_the_same_texts() -> None:
    robust, weak = cell("minilm/mr", {"BERT": "minilm"}, tf="ffffffff"), cell("word-cnn/mr", tf="ssssssss")
    claims = claims_of(robust, weak)
    assert claims["BERT is more robust than the word models"].verdict == "held"
    assert claims["textfooler is sometimes stronger than bae-r on BERT"].verdict == "undecided"
    other_data = claims_of(robust, cell("word-cnn/trec", tf="ssssssss"))
    assert other_data["BERT is more robust than the word models"].numbers == "no text was attacked on both"
    assert not any("BERT" in claim for claim in claims_of(weak, cell("minilm/mr", tf="ffffffff")))
    sometimes = cell("bert/trec", r="ffffffff", tf="ssssssss")
    claim = claims_of(robust, sometimes)["textfooler is sometimes stronger than bae-r on BERT"]
    assert claim.verdict == "held"
    assert claim.numbers.endswith("in 6 of the paper's 7 data sets")


def test_split_c_is_compared_where_subj_is_among_the_data() -> None:
    both = {"r": "ffffffffff", "i": "ffffffffff", "either": "ssssssssff"}
    none = dict.fromkeys(("r", "i", "either"), "ssssssssff")
    claims = claims_of(cell("cnn/subj", tf="f" * 10, **both), cell("cnn/mr", tf="f" * 10, **none))
    assert claims["split C is largest on subj (Table 5)"].verdict == "held"
    claims = claims_of(cell("cnn/subj", tf="f" * 10, **none), cell("cnn/mr", tf="f" * 10, **both))
    assert claims["split C is largest on subj (Table 5)"].verdict == "not held"
    assert not any("subj" in claim for claim in claims_of(cell("cnn/mr", tf="ff")))


def test_numbers_of_a_cell_stand_beside_the_published_ones() -> None:
    cells = {"word-cnn/mr": cell("word-cnn/mr", r="ssff", tf="fsff"), "mine/own": cell("mine/own", tf="kkkk")}
    grid = analyse_grid(cells).grid
    assert grid["word-cnn/mr"].published is not None
    assert grid["word-cnn/mr"].published["bae-r"].accuracy == 20.81
    assert grid["mine/own"].published is None
    compared = compare_attacks(cells["word-cnn/mr"].results, "bae-r", "textfooler")
    assert (compared.texts, compared.only_first, compared.only_second) == (4, 1, 0)
    assert compared.difference["value"] == 0.25
    assert advantage_plot(grid).count("bae-r/i") == 1
    plots = curves_plot(grid)
    assert "word-cnn/mr" in plots
    assert "mine/own" not in plots, "nothing was attacked there"
    assert advantage_plot({"mine/own": grid["mine/own"]}) == curves_plot({"mine/own": grid["mine/own"]}) == ""


@pytest.mark.parametrize(
    ("written", "name", "model", "data"),
    [
        ("word-cnn/mr=models/cnn@mr.csv", "word-cnn/mr", "models/cnn", "mr.csv"),
        ("models/cnn@data/mr.test.jsonl.gz", "cnn/mr", "models/cnn", "data/mr.test.jsonl.gz"),
        ("a/b=http://host/x?y=z@mr.csv", "a/b", "http://host/x?y=z", "mr.csv"),
        ("builtin:sentiment-cnn@builtin:reviews", "sentiment-cnn/reviews", "builtin:sentiment-cnn", "builtin:reviews"),
    ],
)
def test_how_cells_are_written(written: str, name: str, model: str, data: str) -> None:
    spec = BaeSpec.of(models={}, data=None, cells=[written])
    assert dict(spec.grid) == {name: (model, data)}
    assert BaeSpec.read(spec.described(), Path("m")).grid == spec.grid


def test_several_models_before_the_data_are_a_grid_and_one_is_not() -> None:
    assert BaeSpec.of(models=["a/cnn", "a/lstm"], data="mr.csv").grid == {
        "cnn/mr": ("a/cnn", "mr.csv"),
        "lstm/mr": ("a/lstm", "mr.csv"),
    }
    assert not BaeSpec.of(models=["a/cnn"], data="mr.csv").grid
    both = BaeSpec.of(models=["a/cnn"], data="mr.csv", cells=["lstm/trec=b@trec.csv"], stand_ins=["BERT=lstm"])
    assert list(both.grid) == ["cnn/mr", "lstm/trec"]
    assert both.of_cell("lstm/trec").published == "BERT/trec"
    assert both.of_cell("cnn/mr").published == "wordCNN/mr"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cells": ["models/cnn"]}, r"--cell models/cnn is not of the form MODEL@DATA or NAME/DATA-NAME=MODEL@DATA"),
        ({"cells": ["a@mr.csv", "b/a@mr.csv"]}, r"Two cells are called a/mr: name them"),
        ({"cells": {"cnn": ("a", "b")}}, r'The cell name "cnn" cannot be a folder, expected MODEL/DATA'),
        ({"cells": {"../..": ("a", "b")}}, r'The cell name "\.\./\.\." cannot be a folder'),
        ({"cells": {"cnn/mr": "a"}}, r"The cell cnn/mr is 'a', expected a pair"),
        ({"models": ["a"], "data": "mr.csv", "cells": ["a/mr=b@mr.csv"]}, r"Two cells are called a/mr"),
        ({}, r"needs a model before the data, or cells"),
        ({"cells": ["a@b"], "published": "wordCNN/mr"}, r"--published is for one model"),
        ({"models": ["a"], "data": "b", "published": "CNN"}, r'no published result of BAE "CNN"'),
        ({"cells": ["a@b"], "stand_ins": {"BERT": "c"}}, r'no model in this study "c"'),
        ({"cells": ["a@b"], "stand_ins": {"GPT": "a"}}, r'no model in the paper "GPT"'),
        ({"cells": ["a@b"], "rating_sheet": "s.csv"}, r"Each cell of a grid has a rating sheet of its own"),
    ],
)
def test_what_a_grid_cannot_be(options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        BaeSpec.of(**{"models": {}, "data": None, **options})


def files(folder: Path) -> tuple[Path, Path]:
    """Two data sets of the toy rows."""
    for name, rows in (("mr", ROWS), ("trec", ROWS[:3])):
        lines = "".join(f"{text},{label}\n" for text, label in rows)
        (folder / f"{name}.csv").write_text(f"text,label\n{lines}")
    return folder / "mr.csv", folder / "trec.csv"


@pytest.fixture(scope="module")
def finished(language: None, tmp_path_factory: pytest.TempPathFactory) -> GridResult:
    """A grid of two cells, made by the command; not to be written to."""
    folder = tmp_path_factory.mktemp("grid")
    mr, trec = files(folder)
    words = ["study", "bae", "--cell", f"word-cnn/mr={REFERENCE}@{mr}", "--cell", f"minilm/trec={REFERENCE}@{trec}"]
    words += ["--stand-in", "BERT=minilm", "--out", str(folder / "out")]
    ended = CliRunner().invoke(cli, words, catch_exceptions=False)
    assert ended.exit_code == 0, ended.output
    assert "BAE is stronger than TextFooler" in ended.output
    result = st.load(folder / "out")
    assert isinstance(result, GridResult)
    return result


def test_every_cell_is_a_study_of_its_own(finished: GridResult) -> None:
    assert finished.complete
    assert list(finished.runs) == ["word-cnn/mr", "minilm/trec"]
    inner = st.load(finished.folder / "cells" / "minilm" / "trec")
    assert isinstance(inner, BaeResult)
    assert inner.spec.published == "BERT/trec"
    assert inner.numbers == finished.runs["minilm/trec"].numbers
    assert "BERT on trec" in (inner.folder / "report.md").read_text()
    assert len(list(finished.rows())) == 5 * (len(ROWS) + 3)
    assert {row["run"] for row in finished.rows()} == {"word-cnn/mr", "minilm/trec"}
    assert finished.verify(trust=True).holds
    with pytest.raises(RunError, match="--trust-run"):
        finished.verify()
    assert finished.verify({"word-cnn/mr": predict, "minilm/trec": predict}).holds


def test_the_page_of_a_grid_stands_beside_the_paper(finished: GridResult) -> None:
    page, markdown = ((finished.folder / name).read_text() for name in ("report.html", "report.md"))
    assert page.count("<svg") == 2
    assert 'href="cells/word-cnn/mr/report.html"' in page
    assert "| paper, wordCNN | n/a | 21.18 % (0.910) | 20.81 % (0.920)" in markdown
    assert "| paper, BERT | n/a | 42.8 % (0.866)" in markdown
    assert "Each cell has a sheet of its own" in markdown
    assert "Fewer than 30 texts were attacked in word-cnn/mr, minilm/trec" in markdown
    written = json.loads((finished.folder / "summary.json").read_text())
    assert written["grid"]["minilm/trec"]["paper_model"] == "BERT"
    assert written["cells"] == 2
    assert written["claims"][0]["claim"].startswith("BAE is stronger than TextFooler")


def test_a_grid_that_was_interrupted_ends_in_the_same_numbers(
    language: None, finished: GridResult, tmp_path: Path
) -> None:
    mr, trec = files(tmp_path)
    cells = {"word-cnn/mr": (REFERENCE, str(mr)), "minilm/trec": (REFERENCE, str(trec))}
    folder = tmp_path / "a"
    with pytest.raises(KeyboardInterrupt):  # in the second cell
        st.study("bae", cells=cells, stand_ins={"BERT": "minilm"}, out=folder, concurrency=1, observer=Stop(28))
    assert (folder / "cells" / "word-cnn" / "mr" / "summary.json").exists()
    opened = st.load(folder)
    assert not opened.complete
    with pytest.raises(RunError, match="--trust-run"):
        st.resume(folder)
    resumed = st.resume(folder, trust=True)
    assert resumed.complete
    grids = [
        without_seconds(json.loads((path / "summary.json").read_text())["grid"]) for path in (folder, finished.folder)
    ]
    assert grids[0] == grids[1]
    mr.unlink()
    again = st.study("bae", out=folder, resume=True, stand_ins={})
    assert again.numbers.grid["minilm/trec"].published is None, "a finished grid is analysed again without its data"
    other = {**cells, "word-cnn/mr": (REFERENCE, str(trec))}
    with pytest.raises(RunError, match=r"cells\.word-cnn/mr"):
        st.study("bae", out=folder, resume=True, cells=other)


def test_cells_may_be_python_objects_that_are_given_again(language: None, tmp_path: Path) -> None:
    folder = tmp_path / "a"
    cells = {"cnn/mr": (predict, ROWS[:1]), "lstm/mr": (predict, ROWS[:1])}
    options: dict[str, Any] = {"model_options": st.ModelOptions(labels=["0", "1"]), "fluency": False}
    with pytest.raises(KeyboardInterrupt):
        st.study("bae", cells=cells, out=folder, concurrency=1, observer=Stop(7), **options)
    with pytest.raises(RunError, match=r"Python objects \(cells\): resume it from Python"):
        st.resume(folder)
    result = st.study("bae", out=folder, resume=True, cells=cells, **options)
    assert result.complete
    assert list(result.runs) == ["cnn/mr", "lstm/mr"]


def test_a_cell_that_cannot_be_used_is_an_error_before_anything_is_attacked(language: None, tmp_path: Path) -> None:
    mr, _ = files(tmp_path)
    with pytest.raises(DataError, match=r"none\.csv"):
        st.study(
            "bae",
            cells=[f"a/mr={REFERENCE}@{mr}", f"b/none={REFERENCE}@{tmp_path / 'none.csv'}"],
            out=tmp_path / "a",
        )
    assert not (tmp_path / "a" / "manifest.json").exists()
    with pytest.raises(OptionError, match="MODEL and DATA are missing"):
        st.study("bae", cells=[], out=tmp_path / "a")


def test_a_model_that_changed_after_the_grid_was_begun_is_refused(
    language: None, finished: GridResult, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(finished.folder, tmp_path / "copy"))
    shutil.rmtree(folder / "cells" / "minilm")
    trec = Path(str(finished.recorded["minilm/trec"]["data"]["reference"]))
    before = trec.read_text()
    try:
        trec.write_text(before + "a new film,1\n")
        with pytest.raises(RunError, match="has changed since the job was begun"):
            st.resume(folder, trust=True)
    finally:
        trec.write_text(before)
    assert st.resume(folder, trust=True).complete
