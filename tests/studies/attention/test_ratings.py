"""Sheets for raters are blind, come back checked, and give the paper's two scores."""

from __future__ import annotations

import csv
import json
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stockade as st
from stockade.core.errors import DataError, OptionError, RunError
from stockade.studies.attention.ratings import score_methods
from stockade.studies.attention.study import AttentionResult

COMPARED = "bert:gs-gr,bert:gs-ec"
Rows = list[dict[str, str]]


@pytest.fixture(scope="module")
def with_sheet(finished: AttentionResult, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The study's folder and a sheet beside it."""
    folder = tmp_path_factory.mktemp("rated")
    shutil.copytree(finished.folder, folder / "study")
    resume(folder / "study", rating_sheet=folder / "sheet.csv", compare=COMPARED)
    return folder


@pytest.fixture
def study_folder(with_sheet: Path, tmp_path: Path) -> Path:
    shutil.copytree(with_sheet, tmp_path, dirs_exist_ok=True)
    return tmp_path / "study"


@pytest.fixture
def sheet(study_folder: Path) -> Path:
    return study_folder.parent / "sheet.csv"


def resume(folder: Path, **options: Any) -> AttentionResult:
    result = st.study("attention", out=folder, resume=True, **options)
    assert isinstance(result, AttentionResult)
    return result


def read(path: Path) -> Rows:
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def write(path: Path, rows: Rows, **options: Any) -> Path:
    with path.open("w", newline="", encoding="utf-8-sig") as stream:
        writer = csv.DictWriter(stream, list(rows[0]), **options)
        writer.writeheader()
        writer.writerows(rows)
    return path


def key_of(sheet: Path) -> dict[str, Any]:
    items: dict[str, Any] = json.loads((sheet.parent / "sheet.key.json").read_text())["items"]
    return items


def fill(sheet: Path, prefers: str, answers: Callable[[dict[str, Any]], str]) -> Rows:
    """As a rater would who always prefers one method."""
    items = key_of(sheet)
    return [
        {**row, "preferred": "x" if items[row["id"]]["method"] == prefers else "", "label": answers(items[row["id"]])}
        for row in read(sheet)
    ]


def gold(item: dict[str, Any]) -> str:
    return str(item["gold"])


def wrong(item: dict[str, Any]) -> str:
    return "negative" if item["gold"] == "positive" else "positive"


def test_a_study_with_a_sheet_still_vouches_for_its_rows(study_folder: Path) -> None:
    assert st.load(study_folder).verified(0, []).problems == ()


def test_a_sheet_is_blind_and_its_key_says_everything(sheet: Path, finished: AttentionResult) -> None:
    rows, items = read(sheet), key_of(sheet)
    assert list(rows[0]) == ["group", "id", "text", "preferred", "label"]
    assert {row["preferred"] + row["label"] for row in rows} == {""}
    assert "bert" not in sheet.read_text()
    assert "gs-" not in sheet.read_text()
    assert len({row["id"] for row in rows}) == len(rows) == len(items)
    records = {
        attack: {record.id: record for record in finished.runs["bert"].records(attack, "success")}
        for attack in ("gs-gr", "gs-ec")
    }
    fooled = records["gs-gr"].keys() & records["gs-ec"].keys()
    different = [text for text in fooled if records["gs-gr"][text].adversarial != records["gs-ec"][text].adversarial]
    assert len(rows) == 2 * len(different) > 0
    for row in rows:
        item = items[row["id"]]
        record = records[item["method"].removeprefix("bert:")][item["text"]]
        assert (row["text"], item["gold"], row["group"]) == (record.adversarial, record.label, item["group"])


def test_the_papers_comparisons_are_the_default(study_folder: Path, tmp_path: Path) -> None:
    resume(study_folder, rating_sheet=tmp_path / "s.csv")
    key = json.loads((tmp_path / "s.key.json").read_text())
    assert key["comparisons"] == [["lstm:gs-ec", "bert:gs-ec"], ["bert:gs-gr", "bert:gs-ec"]]
    with pytest.raises(RunError, match=r"s\.csv exists already and may be filled in"):
        resume(study_folder, rating_sheet=tmp_path / "s.csv")


def test_three_raters_give_both_scores(sheet: Path, study_folder: Path, tmp_path: Path) -> None:
    texts = len(read(sheet)) // 2
    write(tmp_path / "anna.csv", fill(sheet, "bert:gs-ec", gold))
    write(tmp_path / "ben.csv", fill(sheet, "bert:gs-ec", wrong), delimiter=";")
    write(tmp_path / "carla.csv", list(reversed(fill(sheet, "bert:gs-gr", gold))))
    sheets = [tmp_path / f"{name}.csv" for name in ("anna", "ben", "carla")]
    ratings = resume(study_folder, ratings=sheets).numbers.ratings
    assert ratings is not None
    assert ratings.raters == ("anna", "ben", "carla")
    (comparison,) = ratings.comparisons
    assert comparison.texts == texts
    assert comparison.methods["bert:gs-ec"].votes == 2 * texts
    assert comparison.methods["bert:gs-ec"].readability["value"] == 1.0
    assert comparison.methods["bert:gs-gr"].readability["value"] == 0.5
    accuracies = [method.accuracy["value"] for method in comparison.methods.values()]
    assert accuracies == pytest.approx([2 / 3, 2 / 3], abs=1e-6)
    page = (study_folder / "report.html").read_text()
    assert "Nobody has rated" not in page
    assert "3 raters: anna, ben, carla." in page
    assert "Human raters" in (study_folder / "report.md").read_text()
    resume(study_folder, rating_sheet=tmp_path / "next.csv")
    loaded = st.load(study_folder)
    assert isinstance(loaded, AttentionResult)
    assert loaded.numbers.ratings == ratings, "what was read stays, with the key that it was read with"
    assert json.loads((study_folder / "summary.json").read_text())["ratings"]["raters"] == ["anna", "ben", "carla"]
    with pytest.raises(DataError, match=r"anna\.csv.* of the sheet"):  # the sheet is another one now
        resume(study_folder, ratings=sheets[0])


def test_scores_are_those_of_the_papers_example() -> None:
    votes = np.array([[1.0, 0.0]] * 100 + [[0.0, 1.0]] * 40)
    scores = score_methods(["a", "b"], votes, np.ones((140, 2)), 1)
    assert (scores["a"].readability["value"], scores["b"].readability["value"]) == (1.0, 0.4)
    low, high = scores["b"].readability["low"], scores["b"].readability["high"]
    assert low is not None
    assert high is not None
    assert 0.2 < low < 0.4 < high < 0.6
    assert scores["a"].accuracy == {"value": 1.0, "low": 1.0, "high": 1.0}
    single = score_methods(["a", "b"], votes[:1], np.ones((1, 2)), 1)
    assert single["b"].readability == {"value": 0.0, "low": None, "high": None}


def test_what_a_rater_can_get_wrong_is_named_by_row_and_column(sheet: Path, study_folder: Path, tmp_path: Path) -> None:
    good = fill(sheet, "bert:gs-ec", gold)

    def refusal(rows: Rows) -> str:
        path = write(tmp_path / "r.csv", rows)
        with pytest.raises(DataError) as caught:
            resume(study_folder, ratings=path)
        return str(caught.value).removeprefix(str(path))

    first, *rest = good
    assert refusal([{**first, "id": "zzz"}, *rest]).startswith(', row 2, column "id": found "zzz", expected an id of')
    assert refusal([first, first, *rest]).startswith(', row 3, column "id": found')
    assert refusal(rest).startswith(f" has no row for 1 of the {len(good)} ids of the sheet, the first {first['id']}")
    assert refusal([{**first, "preferred": "maybe"}, *rest]).startswith(
        ', row 2, column "preferred": found "maybe", expected x or nothing'
    )
    assert refusal([{**first, "label": ""}, *rest]).startswith(
        ', row 2, column "label": found nothing, expected one of negative, positive'
    )
    assert refusal([{**first, "label": "neutral"}, *rest]).startswith(', row 2, column "label": found "neutral"')
    none = [{**row, "preferred": ""} for row in good]
    assert 'column "preferred": group' in refusal(none)
    assert "has 0 rows marked, expected one" in refusal(none)
    assert "has 2 rows marked" in refusal([{**row, "preferred": "1"} for row in good])
    assert 'has no column "label"' in refusal([{key: row[key] for key in ("id", "preferred")} for row in good])
    loaded = st.load(study_folder)
    assert isinstance(loaded, AttentionResult)
    assert loaded.ratings is None, "nothing is kept of a sheet with a mistake"


def test_sheets_that_are_not_there_or_of_nobody(sheet: Path, study_folder: Path, tmp_path: Path) -> None:
    def give(*sheets: Path, **more: Any) -> None:
        resume(study_folder, ratings=list(sheets), **more)

    with pytest.raises(DataError, match=r"nobody\.csv cannot be read"):
        give(tmp_path / "nobody.csv")
    (tmp_path / "b").mkdir()
    with pytest.raises(OptionError, match="same name"):
        give(tmp_path / "a.csv", tmp_path / "b" / "a.csv")
    (tmp_path / "bytes.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match=r"bytes\.csv cannot be read"):
        give(tmp_path / "bytes.csv")
    (tmp_path / "empty.csv").write_text("")
    with pytest.raises(DataError, match=r"no column \"id\" \(found: nothing\)"):
        give(tmp_path / "empty.csv")
    with sqlite3.connect(study_folder / "run.sqlite") as connection:
        connection.execute("""UPDATE results SET document = '{}' WHERE part = 'ratings' AND id = 'key'""")
    with pytest.raises(RunError, match="cannot be read"):
        give(sheet)
    with sqlite3.connect(study_folder / "run.sqlite") as connection:
        connection.execute("DELETE FROM results WHERE part = 'ratings'")
    with pytest.raises(RunError, match="no key to a rating sheet"):
        give(sheet)


@pytest.mark.parametrize(
    ("compare", "message"),
    [
        ("bert", "not of the form"),
        ("bret:gs-ec,bert:gs-gr", 'no model in this study "bret"'),
        ("bert:gs-ce,bert:gs-gr", 'no attack on bert in this study "gs-ce"'),
        ("bert:gs-ec,bert:gs-ec", "fewer than two different methods"),
        ("bert:gs-ec", "fewer than two different methods"),
    ],
)
def test_comparisons_that_make_no_sense(study_folder: Path, tmp_path: Path, compare: str, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        resume(study_folder, rating_sheet=tmp_path / "s.csv", compare=[compare])
    assert not (tmp_path / "s.csv").exists()


def test_pairs_show_their_premise_and_nothing_to_rate_is_said(tmp_path: Path) -> None:
    def says(pairs: list[tuple[str, str]]) -> list[list[float]]:
        return [[0.1, 0.9] if "good" in hypothesis and "film" in hypothesis else [0.9, 0.1] for _, hypothesis in pairs]

    rows = [(("it is, so to say", "a good film"), "positive"), (("it is", "a sad day"), "negative")]
    options = st.ModelOptions(labels=["negative", "positive"])
    made = st.study("attention", says, rows, out=tmp_path / "a", model_options=options, draws=50, samples=10)
    assert made.numbers.models["says"].attacks["list"].succeeded == 1
    path = tmp_path / "s.csv"
    resume(tmp_path / "a", rating_sheet=path, compare="says:random,says:list")
    shown = read(path)
    assert list(shown[0]) == ["group", "id", "premise", "text", "preferred", "label"]
    assert {row["premise"] for row in shown} == {"it is, so to say"}

    def deaf(texts: list[str]) -> list[list[float]]:
        return [[0.1, 0.9]] * len(texts)

    with pytest.raises(RunError, match=r"No text is fooled in different ways .* nothing to rate"):
        st.study(
            "attention",
            deaf,
            [("a film", "positive")],
            rating_sheet=path.with_name("t.csv"),
            compare=["deaf:random,deaf:list"],
            model_options=options,
            draws=5,
            samples=10,
        )
