"""A job that was killed between its last result and its summary gets the summary when it is next looked at."""

from __future__ import annotations

from pathlib import Path

import pytest

import stockade as st
from stockade.experiment.result import DIGEST, SUMMARY, Result
from tests.toys import WeightVictim


@pytest.fixture
def run(tmp_path: Path) -> Result:
    data = [("a good film", 1), ("a bad film", 0)]
    victim = WeightVictim({"good": 1, "bad": -1})
    result: Result = st.attack(victim, data, "deepwordbug", out=tmp_path / "run", similarity=False)
    return result


@pytest.mark.parametrize("missing", [SUMMARY, DIGEST])
def test_what_is_missing_is_written(run: Result, missing: str) -> None:
    (run.folder / missing).unlink()
    run.complete_summary()
    assert st.load(run.folder).verify(WeightVictim({"good": 1, "bad": -1})).holds


def test_a_summary_of_other_rows_is_written_again(run: Result) -> None:
    (run.folder / DIGEST).write_text("0" * 64)
    (run.folder / SUMMARY).write_text("{}")
    run.complete_summary()
    assert st.load(run.folder).verify(WeightVictim({"good": 1, "bad": -1})).holds


def test_a_summary_of_these_rows_stays_as_it_is(run: Result) -> None:
    before = (run.folder / SUMMARY).stat().st_mtime_ns
    run.complete_summary()
    assert (run.folder / SUMMARY).stat().st_mtime_ns == before
