"""Sheets for raters are blind, come back checked, and give Table 4 with the agreement of raters."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import stockade as st
from stockade.cli.main import cli
from stockade.core.errors import DataError, RunError
from stockade.core.records import Record
from stockade.studies.bae.ratings import text_scores
from stockade.studies.bae.study import BaeResult
from tests.studies.bae.toys import REFERENCE, ROWS
from tests.studies.made_studies import TEN_WORDS, failure, make_bae, of_each, skipped, success

Rows = list[dict[str, str]]
TEXTS = 8


def records(attack: str) -> list[Record]:
    """Every text is fooled by R and R+I, with the same words on text 0; TextFooler fools all but text 7."""
    made = []
    for at in range(TEXTS - 1):
        words = {"bae-r": "x", "bae-r+i": "x" if at == 0 else "y", "textfooler": "z"}.get(attack, "w")
        label = "positive" if at % 2 else "negative"
        made.append(success(at, attack, ("one", f"{words}{at}"), original=f"{at} {TEN_WORDS}", label=label))
    last = failure if attack == "textfooler" else lambda at, name, **fields: success(at, name, ("one", "x7"), **fields)
    made.append(last(TEXTS - 1, attack, original=f"7 {TEN_WORDS}", label="positive"))
    return made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    make_bae(tmp_path / "study", of_each(records))
    return tmp_path / "study"


def resume(folder: Path, **options: Any) -> BaeResult:
    result = st.study("bae", out=folder, resume=True, **options)
    assert isinstance(result, BaeResult)
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
    items: dict[str, Any] = json.loads(sheet.with_name(f"{sheet.stem}.key.json").read_text())["items"]
    return items


def fill(sheet: Path, naturalness: Callable[[dict[str, Any]], object], wrong: str = "") -> Rows:
    """As a rater would who knows every label, but for the texts of one method."""
    items = key_of(sheet)
    other = {"negative": "positive", "positive": "negative"}
    return [
        {
            **row,
            "label": (other[item["gold"]] if wrong in item["methods"] else item["gold"]).upper(),
            "naturalness": str(naturalness(item)),
        }
        for row in read(sheet)
        for item in [items[row["id"]]]
    ]


def scale(**points: int) -> Callable[[dict[str, Any]], int]:
    """Points for the methods o, r, b and t."""
    short = {"original": "o", "bae-r": "r", "bae-r+i": "b", "textfooler": "t"}
    return lambda item: points[short[item["methods"][0]]]


def test_a_sheet_is_blind_shuffled_and_about_originals_and_successes(folder: Path, tmp_path: Path) -> None:
    sheet = tmp_path / "sheet.csv"
    result = resume(folder, rating_sheet=sheet, rated_texts=6)
    rows, items = read(sheet), key_of(sheet)
    assert list(rows[0]) == ["id", "text", "label", "naturalness"]
    assert {row["label"] + row["naturalness"] for row in rows} == {""}
    assert len({row["id"] for row in rows}) == len(rows) == len(items)
    assert not any(word in sheet.read_text() for word in ("bae", "textfooler", "original", "gold"))
    texts = json.loads((tmp_path / "sheet.key.json").read_text())["texts"]
    assert len(texts) == 6
    shown = {
        (item["text"], method): row["text"] for row in rows for item in [items[row["id"]]] for method in item["methods"]
    }
    for text in texts:
        assert shown[text, "original"] == f"{text} {TEN_WORDS}"
        for attack in ("bae-r", "bae-r+i", "textfooler"):
            record = result.results[attack][text]
            assert shown.get((text, attack)) == record.adversarial
    order = [items[row["id"]]["text"] for row in rows]
    assert order != sorted(order, key=texts.index), "the texts of an original do not stand together"
    references = read(tmp_path / "sheet.reference.csv")
    assert {row["text"] for row in references} == {f"{at} {TEN_WORDS}" for at in range(TEXTS) if str(at) not in texts}
    assert result.numbers.ratings is None
    with pytest.raises(RunError, match=r"sheet\.csv exists already and may be filled in"):
        resume(folder, rating_sheet=sheet)
    with pytest.raises(RunError, match=r"there is no folder .*nowhere"):
        resume(folder, rating_sheet=tmp_path / "nowhere" / "s.csv")


def test_a_text_that_two_attacks_made_alike_is_rated_once(folder: Path, tmp_path: Path) -> None:
    resume(folder, rating_sheet=tmp_path / "sheet.csv")
    made_by = [tuple(item["methods"]) for item in key_of(tmp_path / "sheet.csv").values() if item["text"] == "0"]
    assert sorted(made_by) == [("bae-r", "bae-r+i"), ("original",), ("textfooler",)]
    assert not (tmp_path / "sheet.reference.csv").exists(), "every text of the study is rated"


def test_three_raters_give_table_4(folder: Path, tmp_path: Path) -> None:
    sheet = tmp_path / "sheet.csv"
    resume(folder, rating_sheet=sheet)
    write(tmp_path / "anna.csv", fill(sheet, scale(o=5, r=4, b=3, t=2)))
    write(tmp_path / "ben.csv", fill(sheet, scale(o=5, r=4, b=4, t=1), wrong="textfooler"), delimiter=";")
    write(tmp_path / "carla.csv", list(reversed(fill(sheet, scale(o=4, r=4, b=3, t=3), wrong="textfooler"))))
    result = resume(folder, ratings=[tmp_path / f"{name}.csv" for name in ("anna", "ben", "carla")])
    ratings = result.numbers.ratings
    assert ratings is not None
    assert ratings.raters == ("anna", "ben", "carla")
    assert {name: method.texts for name, method in ratings.methods.items()} == {
        "original": 8,
        "bae-r": 8,
        "bae-r+i": 8,
        "textfooler": 7,
    }
    assert ratings.methods["original"].naturalness["value"] == pytest.approx(14 / 3, abs=1e-5)
    assert ratings.methods["bae-r"].naturalness["value"] == 4.0
    assert ratings.methods["bae-r+i"].naturalness["value"] == pytest.approx((2 * 4 + 6 * 10 / 3) / 8, abs=1e-5)
    assert ratings.methods["textfooler"].naturalness["value"] == 2.0
    assert ratings.methods["textfooler"].accuracy["value"] == pytest.approx(1 / 3, abs=1e-5)
    assert ratings.methods["bae-r"].accuracy["value"] == 1.0
    assert ratings.naturalness_agreement is not None
    assert 0 < ratings.naturalness_agreement < 1
    assert ratings.label_agreement is not None
    verdicts = {claim.claim: claim.verdict for claim in result.claims}
    assert verdicts["texts of bae-r are more natural than those of textfooler"] == "held"
    assert verdicts["texts of bae-r+i are labelled right more often than those of textfooler"] == "held"
    assert verdicts["texts of bae-r are more natural than those of bae-r+i"] == "held"
    assert verdicts["texts of bae-r are labelled right more often than those of bae-r+i"] == "undecided"
    markdown = (folder / "report.md").read_text()
    assert "3 raters (anna, ben, carla)" in markdown
    assert "Nobody has rated" not in markdown
    written = json.loads((folder / "summary.json").read_text())
    assert written["ratings"]["methods"]["bae-r"]["naturalness"]["value"] == 4.0
    assert st.load(folder).verified(0, []).problems == ()
    assert result.ratings is not None
    assert text_scores(result.ratings, "bae-r")["0"] == text_scores(result.ratings, "bae-r+i")["0"]


def test_fewer_raters_than_the_paper_had_are_warned_of(folder: Path, tmp_path: Path) -> None:
    sheet = tmp_path / "sheet.csv"
    resume(folder, rating_sheet=sheet)
    path = write(tmp_path / "anna.csv", fill(sheet, scale(o=5, r=5, b=5, t=5)))
    result = resume(folder, ratings=path)
    assert "1 rater filled in the sheet; the paper had 3." in result.warnings
    assert result.numbers.ratings is not None
    assert result.numbers.ratings.label_agreement is None


def test_what_a_rater_can_get_wrong_is_named_by_row_and_column(folder: Path, tmp_path: Path) -> None:
    sheet = tmp_path / "sheet.csv"
    with pytest.raises(RunError, match=r"no key to a rating sheet.*stockade study bae --resume"):
        resume(folder, ratings=tmp_path / "anna.csv")
    resume(folder, rating_sheet=sheet)
    good = fill(sheet, scale(o=5, r=4, b=3, t=2))

    def refusal(rows: Rows) -> str:
        path = write(tmp_path / "r.csv", rows)
        with pytest.raises(DataError) as caught:
            resume(folder, ratings=path)
        return str(caught.value).removeprefix(str(path))

    first, *rest = good
    for content in ("6", "0", "2.5", "good", "", "nan"):
        shown = f'"{content}"' if content else "nothing"
        assert refusal([{**first, "naturalness": content}, *rest]) == (
            f', row 2, column "naturalness": found {shown}, expected a whole number from 1 to 5.'
        )
    assert ', row 2, column "label": found "fine", expected one of negative, positive.' in refusal(
        [{**first, "label": "fine"}, *rest]
    )
    assert refusal(rest).startswith(f" has no row for 1 of the {len(good)} ids of the sheet")
    assert st.load(folder).ratings is None, "nothing is kept of a sheet with a mistake"  # type: ignore[attr-defined]
    commas = [{**row, "naturalness": f"{row['naturalness']},0"} for row in good]
    assert resume(folder, ratings=write(tmp_path / "r.csv", commas, delimiter=";")).numbers.ratings is not None


def test_a_sheet_with_nothing_to_compare_is_not_written(tmp_path: Path) -> None:
    make_bae(tmp_path / "a", of_each(lambda name: [failure(0, name), skipped(1, name)]))
    with pytest.raises(RunError, match="None of the attacks fooled the model on the texts of the sheet"):
        resume(tmp_path / "a", rating_sheet=tmp_path / "s.csv")
    assert not (tmp_path / "s.csv").exists()


def test_pairs_show_their_premise(tmp_path: Path) -> None:
    make_bae(tmp_path / "a", of_each(lambda name: [success(0, name, ("one", name), premise="it is, so to say")]))
    resume(tmp_path / "a", rating_sheet=tmp_path / "s.csv")
    assert list(read(tmp_path / "s.csv")[0]) == ["id", "premise", "text", "label", "naturalness"]
    assert {row["premise"] for row in read(tmp_path / "s.csv")} == {"it is, so to say"}


def test_the_command_takes_reference_texts_from_the_data_beyond_the_sample(language: None, tmp_path: Path) -> None:
    lines = "".join(f"{text},{label}\n" for text, label in ROWS)
    (tmp_path / "mr.csv").write_text(f"text,label\n{lines}")
    words = ["study", "bae", REFERENCE, str(tmp_path / "mr.csv"), "--limit", "2", "--no-fluency"]
    words += ["--rating-sheet", str(tmp_path / "s.csv"), "--reference-texts", "1", "--out", str(tmp_path / "a")]
    ended = CliRunner().invoke(cli, words, catch_exceptions=False)
    assert ended.exit_code == 0, ended.output
    studied = {item["text"] for item in key_of(tmp_path / "s.csv").values()}
    (reference,) = read(tmp_path / "s.reference.csv")
    assert reference["text"] in {text for at, (text, _) in enumerate(ROWS) if str(at) not in studied}
    spec = json.loads((tmp_path / "a" / "manifest.json").read_text())["spec"]
    assert not {"rating_sheet", "ratings", "rated_texts", "reference_texts"} & spec.keys()
    result = st.load(tmp_path / "a")
    assert result.verify(trust=True).holds, "the summary vouches for the key that was kept after it was made"
