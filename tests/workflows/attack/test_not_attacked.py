"""Runs in which an attack had nothing to try, and runs whose successes are hardly the same texts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import stockade as st
from tests.toys import OpenVictim, WeightVictim

DATA = [("a good film", 1), ("the good old town", 1), ("fine and good", 1), ("good", 1)]
FAR_APART = {"good": (1.0, 0.0, 0.0), "film": (0.0, 1.0, 0.0), "fine": (0.0, 0.0, 1.0)}


def attacked(model: Any, attack: str, data: Any = DATA, **options: Any) -> st.AttackResult:
    return st.attack(model, data, attack, similarity=False, **options)


def test_without_anything_to_try_the_model_is_not_called_robust(tmp_path: Path) -> None:
    """In a random network no word has a near neighbour: HotFlip fools nobody, which means nothing."""
    victim = OpenVictim({"good": 2.0}, vectors=FAR_APART)
    result = attacked(victim, "hotflip", out=tmp_path / "run")
    numbers = result.summary["attacks"]["hotflip"]
    assert (numbers["attacked"], numbers["untried"]) == (4, 4)
    assert numbers["untried_reason"] == "no word has a near neighbour of the same kind"
    assert numbers["robust_accuracy"] == {"value": None, "low": None, "high": None}
    assert any("says nothing about how robust the model is" in warning for warning in result.summary["warnings"])
    shown = result.document().to_markdown()
    assert "hotflip: not attacked. On 4 of 4 texts there was nothing to try (no word has" in shown
    assert "Robust accuracy 100 %" not in shown
    again = st.load(tmp_path / "run")
    assert again.summary == result.summary
    assert again.verify(victim).holds


def test_a_few_texts_with_nothing_to_try_are_counted_and_mentioned() -> None:
    data = [*DATA, ("xqzt good", 1), ("zzqx", 1)]
    victim = WeightVictim({}, bias=1.0)
    result = attacked(victim, "list", data)
    numbers = result.summary["attacks"]["list"]
    assert (numbers["attacked"], numbers["untried"]) == (6, 1)
    assert numbers["robust_accuracy"]["value"] == 1.0
    assert any(
        "on 1 of 6 texts there was nothing to try (no word has a synonym)" in w for w in result.summary["warnings"]
    )
    (record,) = [record for record in result.records() if record.untried]
    assert record.original == "zzqx"


def test_an_evaluation_does_not_call_it_robust_either() -> None:
    victim = OpenVictim({"good": 2.0}, vectors=FAR_APART)
    evaluation = st.evaluate(victim, DATA, ["hotflip"], seeds=1)
    (row,) = evaluation.analysis.measured
    assert row.worst.robust_accuracy.value is None
    assert row.worst.untried == 4
    assert {record.outcome for record in evaluation.records()} == {"untried"}
    assert "not attacked" in evaluation.document().to_markdown()


def test_of_several_attacks_those_that_tried_decide() -> None:
    victim = OpenVictim({"good": 20.0}, vectors=FAR_APART, bias=10.0)
    evaluation = st.evaluate(victim, DATA, ["hotflip", "list"], seeds=1)
    (row,) = evaluation.analysis.measured
    assert row.attacks["hotflip"].robust_accuracy.value is None
    assert row.worst.robust_accuracy.value == 1.0
    assert [record.outcome for record in evaluation.records()].count("robust") == 4


@pytest.mark.parametrize(("max_changed", "warned"), [(None, True), (0.9, False)])
def test_successes_that_change_most_words_of_a_text_need_a_limit(max_changed: float | None, warned: bool) -> None:
    """One-shot DeepWordBug misspells every word it can before it asks."""
    data = [("good fine great warm film", 1), ("great warm fine good town", 1)]
    victim = WeightVictim({"good": 1.0, "fine": 1.0, "great": 1.0, "warm": 1.0}, bias=-0.5)
    result = attacked(victim, "deepwordbug", data, max_changed=max_changed)
    assert result.summary["attacks"]["deepwordbug"]["median_perturbed_percent"] > 100 / 3
    warnings = [warning for warning in result.summary["warnings"] if "--max-changed" in warning]
    assert bool(warnings) == warned
    if warned:
        assert "half of the successes change" in warnings[0]
