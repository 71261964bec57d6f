"""What a trial is worth, which is the best, and how it is written."""

from __future__ import annotations

import pytest

from stockade.workflows.tune.trials import Goal, Trial, best_of, reference


def test_goals() -> None:
    assert Goal().value(0.9, 0.4) == 0.4
    assert Goal(clean_weight=0.5).value(0.9, 0.4) == pytest.approx(0.85)
    strict = Goal(least_clean=0.8)
    assert strict.value(0.8, 0.1) == 0.1
    assert strict.value(0.5, 0.5) < strict.value(0.7, 0.0) < strict.value(0.8, 0.0)


def test_the_first_of_equals_is_the_best() -> None:
    trials = [Trial(2, {}, 1, 1.0, 0.5, 0.5), Trial(1, {}, 1, 1.0, 0.5, 0.5), Trial(0, {}, error="no")]
    assert best_of(trials) == trials[1]
    assert best_of(trials[2:]) is None
    assert best_of([Trial(0, {}, 1, 0.7, 0.5, Goal(least_clean=0.8).value(0.7, 0.5))]) is None
    assert best_of([Trial(0, {}, 1, 0.8, 0.5, 0.5), *trials]) == trials[1], "with more clean accuracy"


def test_references_can_be_pasted() -> None:
    assert reference("ranmask", "default", {"rate": 0.25, "copies": 5}) == "ranmask:copies=5,rate=0.25"
    assert reference("ranmask", "paper", {"rate": 0.25}) == "ranmask@paper:rate=0.25", "which votes"
    assert reference("five", "paper", {"samples": 3}) == "five:samples=3", "its default"
    assert reference("ranmask", "imdb", {"curriculum": None}) == "ranmask@imdb:curriculum=none"
    assert reference("ranmask", "default", {}) == "ranmask"
    assert reference("mine:Defense", "custom", {}) == "mine:Defense"


def test_an_objective_of_zero_is_better_than_one_below() -> None:
    """Options that cost too many clean texts have an objective below zero."""
    goal = Goal(least_clean=0.8)
    costly, cheap = (Trial(at, {}, 9, clean, 0.0, goal.value(clean, 0.0)) for at, clean in enumerate((0.5, 0.9)))
    assert best_of([costly, cheap]) == cheap
