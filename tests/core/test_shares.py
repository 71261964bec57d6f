"""Shares of whole numbers are cut as decimals and fractions say, not as products of floats do."""

from __future__ import annotations

import math
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from stockade.attacks.constraints import MaxChanged
from stockade.attacks.word_attack import changes_allowed
from stockade.core.example import Example
from stockade.core.shares import at_least, at_most
from stockade.core.text import Text
from stockade.training.options import TrainingOptions


def test_seventy_percent_of_ninety_is_sixty_three() -> None:
    assert int(0.7 * 90) == 62, "what floats make of it"
    assert at_most(0.7, 90) == at_least(0.7, 90) == 63
    assert math.ceil(0.07 * 100) == 8
    assert at_least(0.07, 100) == 7


def test_every_percentage_of_every_length_of_a_text() -> None:
    for percent in range(201):
        for total in range(1_001):
            assert at_most(percent / 100, total) == percent * total // 100
            assert at_least(percent / 100, total) == -(-percent * total // 100)


@given(st.integers(0, 10**8), st.integers(0, 10**5))
def test_shares_of_eight_decimals_are_exact(digits: int, total: int) -> None:
    share = float(f"{digits}e-8")
    assert at_most(share, total) == math.floor(Fraction(digits, 10**8) * total)
    assert at_least(share, total) == math.ceil(Fraction(digits, 10**8) * total)


@given(st.integers(0, 5_000), st.integers(1, 5_000))
def test_a_share_that_was_divided_gives_back_what_it_was_divided_from(count: int, total: int) -> None:
    assert at_most(count / total, total) == at_least(count / total, total) == count


@given(st.floats(0, 100, allow_nan=False), st.integers(0, 10_000))
def test_what_is_cut_is_within_the_share_and_one_more_is_not(share: float, total: int) -> None:
    low, high = at_most(share, total), at_least(share, total)
    assert total == low == high == 0 or low / total <= share < (low + 1) / total
    assert high == low or (high == low + 1 and high / total > share)


def test_no_share_of_a_text_loses_an_edit() -> None:
    example = Example("0", Text.parse(" ".join(["word"] * 90)), 0)
    assert changes_allowed(example, 0.7) == changes_allowed(example, 0.7, round_up=True) == 63
    assert MaxChanged(0.7).allowed(example.text) == 63
    hundred = Example("0", Text.parse(" ".join(["word"] * 100)), 0)
    assert changes_allowed(hundred, 0.07, round_up=True) == 7
    assert changes_allowed(hundred, 0.29) == 29
    assert TrainingOptions(warm_up=0.29).warm_up_length(100) == 29
