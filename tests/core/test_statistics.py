"""Intervals that end where shares end, and the paired test from both sides."""

from __future__ import annotations

import math
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.core.statistics import below_chance, mcnemar, paired_difference, sign_flip_test, sign_flips, wilson


def test_the_interval_of_all_and_of_none_ends_at_one_and_zero() -> None:
    for trials in range(1, 300):
        assert wilson(trials, trials)["high"] == 1.0
        assert wilson(0, trials)["low"] == 0.0


def test_the_interval_is_all_shares_that_the_count_does_not_speak_against() -> None:
    """Wilson's ends are the shares from which the count is 1.96 standard errors away, each with its own error."""
    for hits, trials in [(41, 50), (1, 3), (5, 10), (0, 8), (7, 7), (199, 1000)]:
        interval = wilson(hits, trials)
        low, high = interval["low"], interval["high"]
        assert interval["value"] == hits / trials
        assert low is not None
        assert high is not None
        for end in {low, high} - {0.0, 1.0}:
            assert abs(hits / trials - end) == pytest.approx(1.959964 * math.sqrt(end * (1 - end) / trials))
        assert low <= hits / trials <= high
        assert 0 < high - low < 1
    assert wilson(0, 0) == {"value": None, "low": None, "high": None}


@pytest.mark.parametrize(("first", "second", "p"), [(0, 0, 1.0), (3, 3, 1.0), (5, 1, 14 / 64), (10, 0, 2 / 1024)])
def test_the_paired_test_is_exact_and_two_sided(first: int, second: int, p: float) -> None:
    assert mcnemar(first, second) == pytest.approx(p)
    assert mcnemar(second, first) == pytest.approx(p)


@given(st.lists(st.integers(-3, 3), max_size=9))
def test_sign_flips_count_all_the_ways_to_give_signs(differences: list[int]) -> None:
    sums = [sum(signs) for signs in product(*((-abs(size), abs(size)) for size in differences))]
    as_far = sum(abs(total) >= abs(sum(differences)) for total in sums)
    assert sign_flips(differences) == pytest.approx(as_far / len(sums))


@pytest.mark.parametrize(("first", "second"), [(0, 0), (3, 3), (5, 1), (10, 0), (300, 240)])
def test_sign_flips_of_one_seed_are_mcnemars_test(first: int, second: int) -> None:
    assert sign_flips([1] * first + [-1] * second + [0] * 7) == pytest.approx(mcnemar(first, second))


def test_the_same_texts_with_more_seeds_are_no_more_texts() -> None:
    assert sign_flips([3] * 5 + [-3]) == pytest.approx(mcnemar(5, 1))
    assert mcnemar(15, 3) < 0.01 < mcnemar(5, 1)


@pytest.mark.parametrize(
    ("right", "texts", "classes", "so"),
    [(0, 4, 2, False), (0, 5, 2, True), (1, 7, 2, False), (1, 8, 2, True), (5, 20, 4, False)],
)
def test_below_chance_is_what_guessing_does_less_than_once_in_twenty(
    right: int, texts: int, classes: int, so: bool
) -> None:
    """Coins: none of 4 is 1/16, none of 5 1/32; at most one of 7 is 8/128, at most one of 8 is 9/256."""
    assert below_chance(right, texts, classes) == so


def test_the_interval_of_a_paired_difference_as_published() -> None:
    """Newcombe 1998, Table II: 12 and 2 of 50 texts disagree; Tango's interval there is 0.0611 to 0.3447."""
    interval = paired_difference(12, 2, 50)
    assert interval["value"] == pytest.approx(0.2)
    assert interval["low"] == pytest.approx(0.0611, abs=1e-4)
    assert interval["high"] == pytest.approx(0.3447, abs=1e-4)


@given(st.integers(0, 30), st.integers(0, 30), st.integers(0, 60))
def test_a_paired_difference_lies_in_its_interval_and_turns_with_it(first: int, second: int, same: int) -> None:
    trials = first + second + same
    interval, turned = paired_difference(first, second, trials), paired_difference(second, first, trials)
    if not trials:
        assert interval == {"value": None, "low": None, "high": None}
        return
    value, low, high = (interval[part] for part in ("value", "low", "high"))
    assert value is not None
    assert low is not None
    assert high is not None
    assert -1 <= low <= value <= high <= 1
    assert low < high, "not empty, even where the two never disagree"
    assert turned["low"] == pytest.approx(-high, abs=1e-6)
    assert turned["high"] == pytest.approx(-low, abs=1e-6)


@given(st.lists(st.integers(-3, 3), max_size=12))
def test_flipping_signs_is_exact_for_few_texts(differences: list[int]) -> None:
    assert sign_flip_test(differences) == pytest.approx(sign_flips(differences), abs=1e-9)


def test_flipping_signs_of_many_texts_is_drawn_and_the_same_every_time() -> None:
    differences = [1] * 40 + [-1] * 22
    assert sign_flip_test(differences) == sign_flip_test(differences)
    assert sign_flip_test(differences) == pytest.approx(sign_flips(differences), abs=0.005)
    assert sign_flip_test([0.1] * 100) < 0.001
    assert sign_flip_test([]) == 1.0
