"""Nothing attacked, nothing found, one text, the wrong folder: said clearly, never a crash and never NaN."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import pytest

import stockade as st
from stockade.core.errors import OptionError, RunError
from stockade.core.records import Record
from stockade.studies.bae.study import BaeResult
from stockade.workflows.attack.spec import AttackSpec
from tests.records import record
from tests.studies.made_studies import failure, make_bae, make_run, of_each, skipped, success

CHANGE = ("one", "x")


def analysed(folder: Path, records: dict[str, list[Record]]) -> tuple[BaeResult, str, str]:
    """A study with its Markdown and its page as they were written; all of it must be free of NaN."""
    result = make_bae(folder, records, measure=lambda texts: [2.0] * len(texts))
    written = json.loads((folder / "summary.json").read_text())
    assert written == json.loads(json.dumps(result.summary, allow_nan=False))
    markdown, page = (folder / "report.md").read_text(), (folder / "report.html").read_text()
    assert not re.search(r"\bnan\b", markdown, re.IGNORECASE)
    return result, markdown, page


def test_a_model_that_is_wrong_on_every_text(tmp_path: Path) -> None:
    result, markdown, page = analysed(tmp_path / "a", of_each(lambda name: [skipped(0, name), skipped(1, name)]))
    assert {claim.verdict for claim in result.claims} == {"undecided"}
    assert result.numbers.attacks["bae-r"].success_rate["value"] is None
    assert [point["value"] for point in result.numbers.curve.attacks["bae-r"]][:2] == [0.0, 0.0]
    assert "Nothing was attacked" in markdown
    assert "Nothing was attacked" in page
    assert "<svg" not in page
    assert "| bae-r | 2 | 0 | 0.0 % (0.0–65.8) | 0.0 % (0.0–65.8) | n/a | n/a | n/a | n/a |" in markdown


def test_attacks_that_never_succeed(tmp_path: Path) -> None:
    result, markdown, _ = analysed(tmp_path / "a", of_each(lambda name: [failure(0, name), failure(1, name)]))
    assert "No attack fooled the model" in markdown
    assert result.numbers.fluency is not None
    assert result.numbers.fluency.attacks["bae-i"].mean_ratio == {"value": None, "low": None, "high": None}
    assert result.numbers.splits.splits["A"].share["value"] == 0.0
    assert result.complete


def test_one_attack_without_a_success(tmp_path: Path) -> None:
    records = of_each(lambda name: [success(0, name, CHANGE)])
    records["textfooler"] = [failure(0, "textfooler")]
    result, _, page = analysed(tmp_path / "a", records)
    paired = [claim for claim in result.claims if "textfooler on the texts both fool" in claim.claim]
    assert {(claim.verdict, claim.numbers) for claim in paired} == {("undecided", "no text is fooled by both")}
    assert result.numbers.attacks["textfooler"].mean_similarity is None
    assert "not fooled" in page


def test_a_single_text(tmp_path: Path) -> None:
    result, markdown, _ = analysed(tmp_path / "a", of_each(lambda name: [success(0, name, CHANGE)]))
    assert result.numbers.paired_similarity["bae-r"].difference == {"value": 0.0, "low": None, "high": None}
    assert "on 1 text" in markdown
    assert "Only 1 text was attacked" in markdown


def test_nothing_but_errors_and_an_empty_run(tmp_path: Path) -> None:
    result, markdown, _ = analysed(tmp_path / "a", of_each(lambda name: [record(0, "error", name, reason="no")]))
    assert result.numbers.curve.attacks["bae-r"][0]["value"] is None
    assert "1 examples ended in an error" in markdown
    assert result.problem() == "bae-r: all 1 examples ended in an error; the first: no"
    _, markdown, _ = analysed(tmp_path / "b", of_each(lambda name: []))
    assert "| bae-r | 0 | 0 | n/a | n/a | n/a |" in markdown


def test_similarities_that_were_not_measured(tmp_path: Path) -> None:
    result, markdown, _ = analysed(tmp_path / "a", of_each(lambda name: [success(0, name, CHANGE, similarity=None)]))
    assert "Similarity was not measured." in markdown
    assert {claim.verdict for claim in result.claims if "similarity" in claim.claim} == {"undecided"}
    assert not result.complete


def test_texts_that_are_markup_stay_text(tmp_path: Path) -> None:
    evil = "<script>alert(1)</script> | one"
    records = of_each(lambda name: [success(0, name, CHANGE, original=evil, adversarial=evil.replace("one", "x<b>"))])
    _, _, page = analysed(tmp_path / "a", records)
    assert "<script>alert" not in page
    assert "x<b>" not in page


def test_a_randomised_model_is_warned_of(tmp_path: Path) -> None:
    records = of_each(lambda name: [failure(0, name)])
    assert not any("randomised" in warning for warning in make_bae(tmp_path / "a", records).warnings)
    randomised = make_bae(tmp_path / "b", records, model={"deterministic": False})
    assert any("randomised" in warning for warning in randomised.warnings)


def test_no_number_of_a_page_is_infinite(tmp_path: Path) -> None:
    largest = math.exp(700)
    result = make_bae(
        tmp_path / "a",
        of_each(lambda name: [success(0, name, CHANGE)]),
        measure=lambda texts: [1.0 if " x" not in text else largest for text in texts],
    )
    json.dumps(result.summary, allow_nan=False)


def test_a_folder_of_another_kind_is_refused(tmp_path: Path) -> None:
    make_run(tmp_path / "other", AttackSpec.of(model="m", data="d", attacks="pwws"), {"pwws": [failure(0, "pwws")]})
    with pytest.raises(RunError, match="a job of the kind attack, not study-bae"):
        st.study("bae", out=tmp_path / "other", resume=True)
    with pytest.raises(RunError, match=r"has no manifest\.json"):
        st.study("bae", out=tmp_path, resume=True)


def test_what_is_missing_or_unknown_is_named() -> None:
    cnn, reviews = "builtin:sentiment-cnn", "builtin:reviews"
    with pytest.raises(OptionError, match=r'no study "bea" \(found: attention, bae, .*\)\. Did you mean "bae"\?'):
        st.study("bea", cnn, reviews)
    with pytest.raises(OptionError, match="MODEL and DATA are missing"):
        st.study("bae")
    with pytest.raises(OptionError, match="DATA is missing"):
        st.study("bae", cnn)
    with pytest.raises(OptionError, match=r'no option of the study bae "flency".*Did you mean "fluency"\?'):
        st.study("bae", cnn, reviews, flency=False)
    with pytest.raises(OptionError, match=r"--budget is 0, expected a whole number from 1 up"):
        st.study("bae", cnn, reviews, budget=0)
    with pytest.raises(RunError, match="nothing to resume without a folder"):
        st.study("bae", cnn, reviews, resume=True)
