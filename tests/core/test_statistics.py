"""Intervals that end where shares end, and the paired test from both sides."""

from __future__ import annotations

import pytest

from stockade.core.statistics import below_chance, mcnemar, wilson


def test_the_interval_of_all_and_of_none_ends_at_one_and_zero() -> None:
    for trials in range(1, 300):
        assert wilson(trials, trials)["high"] == 1.0
        assert wilson(0, trials)["low"] == 0.0


@pytest.mark.parametrize(("one", "other", "p"), [(0, 0, 1.0), (3, 3, 1.0), (5, 1, 14 / 64), (10, 0, 2 / 1024)])
def test_the_paired_test_is_exact_and_two_sided(one: int, other: int, p: float) -> None:
    assert mcnemar(one, other) == pytest.approx(p)
    assert mcnemar(other, one) == pytest.approx(p)


@pytest.mark.parametrize(
    ("right", "texts", "classes", "so"),
    [(0, 4, 2, False), (0, 5, 2, True), (1, 7, 2, False), (1, 8, 2, True), (5, 20, 4, False)],
)
def test_below_chance_is_what_guessing_does_less_than_once_in_twenty(
    right: int, texts: int, classes: int, so: bool
) -> None:
    """Coins: none of 4 is 1/16, none of 5 1/32; at most one of 7 is 8/128, at most one of 8 is 9/256."""
    assert below_chance(right, texts, classes) == so
