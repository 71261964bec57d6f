"""Options chosen by what is certified: the mask rate of the largest MCB, as the study of the rates finds it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import stockade as st
from stockade.core.errors import OptionError, StockadeError
from stockade.studies.masking.study import MaskingResult
from stockade.workflows.tune.ranges import Choices, Numbers
from stockade.workflows.tune.samplers import grid
from stockade.workflows.tune.trials import Goal
from tests.studies.masking.toys import ROWS, masked, victim
from tests.workflows.evaluate.kit import Shielding

RATES = (0.2, 0.7, 0.8)
SEARCH: dict[str, Any] = {
    "ranges": f"rate={'|'.join(map(str, RATES))}",
    "sampler": "grid",
    "objective": "mcb",
    "method": "ranmask-gap:most=300",
    "limit": None,
}


def tune(**options: Any) -> st.TuneResult:
    return st.tune(victim(), ROWS, "ranmask:copies=10", **{**SEARCH, **options})


def test_the_rate_of_the_largest_mcb_is_the_studys(tmp_path: Path) -> None:
    tuned = tune(out=tmp_path / "t")
    models = {f"m{rate}": masked(victim(), rate) for rate in RATES}
    studied = st.study("masking", models, ROWS, copies=300)
    assert isinstance(studied, MaskingResult)
    medians = {entry.rate: entry.certificates.sound.median_radius for entry in studied.numbers.rates}
    assert {trial.options["rate"]: trial.median_radius for trial in tuned.trials} == medians
    assert len(set(medians.values())) > 1, "or nothing would be chosen"
    assert studied.numbers.chosen is not None
    assert tuned.best is not None
    assert tuned.best.median_radius == studied.numbers.chosen.median_radius
    assert tuned.best.options["rate"] == studied.numbers.chosen.rate
    page = tuned.document().to_markdown()
    assert f"MCB {tuned.best.median_radius}, clean accuracy" in page
    assert "Objective: MCB by ranmask-gap:most=300." in page
    assert st.load(tmp_path / "t").summary == tuned.summary


def test_a_grid_tries_every_choice_once() -> None:
    assert [trial.options["rate"] for trial in tune().trials] == list(RATES)
    assert [trial.options["rate"] for trial in tune(trials=2).trials] == list(RATES[:2])
    space = {"b": Choices((1, 2)), "a": Choices(("x", "y", "x"))}
    assert grid(space) == [{"a": "x", "b": 1}, {"a": "x", "b": 2}, {"a": "y", "b": 1}, {"a": "y", "b": 2}]
    with pytest.raises(OptionError, match=r'list its values, as in --range "a=A\|B\|C"'):
        grid({"a": Numbers(0.1, 0.9)})


def test_ties_go_to_the_more_accurate_and_nothing_certified_is_no_best() -> None:
    goal = Goal(least_clean=0.5)
    assert goal.certified(0.9, 3) == 3
    assert goal.certified(0.9, None) == -1
    assert goal.certified(0.4, 9) < goal.certified(0.9, None)
    wrong = [(text, "negative") for text, _ in ROWS]
    tuned = st.tune(victim(), wrong, "ranmask:copies=10", **SEARCH)
    assert tuned.best is None
    assert "None of 3 trials certifies the true class of half of the texts" in (tuned.problem() or "")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"attacks": "pwws"}, "--objective mcb rates options by what is certified alone"),
        ({"clean_weight": 1.0}, "--objective mcb rates options by what is certified alone"),
        ({"objective": "robust", "attacks": "pwws"}, "--method certifies texts for --objective mcb"),
        ({"ranges": "rate=0.1..0.9"}, "A grid tries every value"),
    ],
)
def test_bad_options_leave_no_folder(tmp_path: Path, options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(OptionError, match=sentence):
        tune(**options, out=tmp_path / "t")
    assert not (tmp_path / "t").exists()


def test_a_defense_without_a_certificate_is_refused_before_the_first_trial(tmp_path: Path) -> None:
    options: dict[str, Any] = {**SEARCH, "ranges": "label=0|1", "method": None}
    with pytest.raises(StockadeError, match="certif"):
        st.tune(victim(), ROWS, Shielding(), **options, out=tmp_path / "t")
    assert not (tmp_path / "t").exists()
