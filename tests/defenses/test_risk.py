"""The risk of a mask rate, against values that were computed apart."""

from __future__ import annotations

from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.core.errors import OptionError
from stockade.defenses.ranmask import lowest_rate, risk


def test_two_lengths_of_the_paper() -> None:
    short = risk(19, 0.3, 0.1)
    assert (short.attacked, short.hidden) == (2, 6)
    assert short.probability == pytest.approx(0.456, abs=5e-4)
    long = risk(43, 0.9, 0.1)
    assert (long.attacked, long.hidden) == (4, 39)
    assert long.probability == pytest.approx(8.1e-6, rel=1e-2)


@given(st.integers(1, 60), st.floats(0, 1), st.floats(0, 1), st.integers(1, 3))
def test_it_is_the_ratio_of_the_numbers_of_masks(words: int, rate: float, attacked: float, kept: int) -> None:
    found = risk(words, rate, attacked, kept)
    masks = comb(words - found.attacked, found.hidden) / comb(words, found.hidden)
    assert found.probability == pytest.approx(masks)


def test_the_lowest_rate_that_protects() -> None:
    rate = lowest_rate(19, 0.1)
    assert rate is not None
    assert risk(19, rate, 0.1).probability < 0.5 <= risk(19, rate - 0.05, 0.1).probability
    assert lowest_rate(19, 0.0) is None  # nothing was attacked, so nothing can be hidden


@pytest.mark.parametrize(("words", "rate", "attacked"), [(0, 0.3, 0.1), (5, 1.2, 0.1), (5, 0.3, -0.1)])
def test_bad_input(words: int, rate: float, attacked: float) -> None:
    with pytest.raises(OptionError):
        risk(words, rate, attacked)
