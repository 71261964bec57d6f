"""Nothing attacked, nothing found, one text, the wrong run: said clearly, never a crash and never NaN."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

import stockade as st
from stockade.core.errors import OptionError, RunError
from stockade.core.records import Record
from stockade.studies.bae import ATTACKS, analyse
from stockade.studies.bae.html import render_page
from stockade.studies.bae.markdown import render_markdown
from stockade.studies.bae.study import write_study as write_pages
from tests.records import record
from tests.study.made_runs import failure, make_run, skipped, success


def analysed(folder: Path, records: dict[str, list[Record]]) -> tuple[dict[str, Any], str, str]:
    """The numbers, the Markdown and the page of a run; all of it must be free of NaN."""
    run = make_run(folder, records)
    numbers = analyse(run, measure=lambda texts: [2.0] * len(texts))
    json.dumps(numbers, allow_nan=False)
    write_pages(run, numbers)
    written = json.loads((folder / "study.json").read_text())
    assert written == json.loads(json.dumps(numbers))
    markdown, page = render_markdown(numbers), render_page(run, numbers)
    assert "nan" not in markdown.lower().replace("finance", "")
    return numbers, markdown, page


def test_a_model_that_is_wrong_on_every_text(tmp_path: Path) -> None:
    numbers, markdown, page = analysed(tmp_path / "a", {name: [skipped(0, name), skipped(1, name)] for name in ATTACKS})
    assert {order["verdict"] for order in numbers["orders"]} == {"n/a"}
    assert numbers["attacks"]["bae-r"]["success_rate"]["value"] is None
    assert [point["value"] for point in numbers["curve"]["attacks"]["bae-r"]][:2] == [0.0, 0.0]
    assert "Nothing was attacked" in markdown
    assert "Nothing was attacked" in page
    assert "<svg" not in page
    assert "| bae-r | 2 | 0 | 0.0 % (0.0–65.8) | 0.0 % (0.0–65.8) | n/a | n/a | n/a | n/a |" in markdown


def test_attacks_that_never_succeed(tmp_path: Path) -> None:
    numbers, markdown, _ = analysed(tmp_path / "a", {name: [failure(0, name), failure(1, name)] for name in ATTACKS})
    assert "No attack fooled the model" in markdown
    assert numbers["fluency"]["attacks"]["bae-i"]["mean_ratio"] == {"value": None, "low": None, "high": None}
    assert numbers["splits"]["splits"]["A"]["share"]["value"] == 0.0


def test_one_attack_without_a_success(tmp_path: Path) -> None:
    records = {name: [success(0, name, ("one", "x"))] for name in ATTACKS}
    records["textfooler"] = [failure(0, "textfooler")]
    numbers, _, page = analysed(tmp_path / "a", records)
    paired = [order for order in numbers["orders"] if "both fool" in order["claim"]]
    assert {(order["verdict"], order["numbers"]) for order in paired} == {("n/a", "no text is fooled by both")}
    assert numbers["attacks"]["textfooler"]["mean_similarity"] is None
    assert "not fooled" in page


def test_a_single_text(tmp_path: Path) -> None:
    numbers, markdown, _ = analysed(tmp_path / "a", {name: [success(0, name, ("one", "x"))] for name in ATTACKS})
    assert numbers["paired_similarity"]["bae-r"]["difference"] == {"value": 0.0, "low": None, "high": None}
    assert "on 1 text" in markdown
    assert "Only 1 text was attacked" in markdown


def test_nothing_but_errors_and_an_empty_run(tmp_path: Path) -> None:
    numbers, markdown, _ = analysed(tmp_path / "a", {name: [record(0, "error", name)] for name in ATTACKS})
    assert numbers["curve"]["attacks"]["bae-r"][0]["value"] is None
    assert "1 examples ended in an error" in markdown
    numbers, markdown, _ = analysed(tmp_path / "b", {name: [] for name in ATTACKS})
    assert "| bae-r | 0 | 0 | n/a | n/a | n/a |" in markdown


def test_similarities_that_were_not_measured(tmp_path: Path) -> None:
    records = {name: [success(0, name, ("one", "x"), similarity=None)] for name in ATTACKS}
    numbers, markdown, _ = analysed(tmp_path / "a", records)
    assert "Similarity was not measured." in markdown
    assert {order["verdict"] for order in numbers["orders"] if "similarity" in order["claim"]} == {"n/a"}


def test_texts_that_are_markup_stay_text(tmp_path: Path) -> None:
    evil = "<script>alert(1)</script> | one"
    records = {
        name: [success(0, name, ("one", "x"), original=evil, adversarial=evil.replace("one", "x<b>"))]
        for name in ATTACKS
    }
    _, _, page = analysed(tmp_path / "a", records)
    assert "<script>" not in page
    assert "x<b>" not in page


def test_a_run_of_other_attacks_or_with_a_cap_is_refused(tmp_path: Path) -> None:
    make_run(tmp_path / "other", {"pwws": [failure(0, "pwws")]}, attacks=["pwws"])
    with pytest.raises(RunError, match=r"no results of bae-r, .*found: pwws"):
        st.study("bae", out=tmp_path / "other", resume=True)
    records = {name: [failure(0, name)] for name in ATTACKS}
    for number, options in enumerate(({"max_changed": 0.2}, {"constraint": "same-pos & max-changed(share=0.2)"})):
        run = make_run(tmp_path / str(number), records, options=options)
        with pytest.raises(RunError, match="cap on changed words"):
            analyse(run)


def test_articles_put_right_are_warned_of(tmp_path: Path) -> None:
    run = make_run(tmp_path / "a", {name: [failure(0, name)] for name in ATTACKS}, options={"repair_articles": True})
    assert any("Articles" in warning for warning in analyse(run)["warnings"])


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r'no study "bea" \(found: attention, bae, masking\)\. Did you mean "bae"\?'):
        st.study("bea", "builtin:sentiment-cnn", "builtin:reviews")
    with pytest.raises(OptionError, match="MODEL and DATA are missing"):
        st.study("bae")
    with pytest.raises(OptionError, match="DATA is missing"):
        st.study("bae", "builtin:sentiment-cnn")
    with pytest.raises(RunError, match=r"has no manifest\.json"):
        st.study("bae", out=tmp_path, resume=True)


def test_no_number_of_a_page_is_infinite(tmp_path: Path) -> None:
    records = {name: [success(0, name, ("one", "x"))] for name in ATTACKS}
    run = make_run(tmp_path / "a", records)
    largest = math.exp(700)
    numbers = analyse(run, measure=lambda texts: [1.0 if " x" not in text else largest for text in texts])
    json.dumps(numbers, allow_nan=False)
