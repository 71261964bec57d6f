"""Rows of several copies to one answer, by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.defenses.combine import combine

ROWS = np.array([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8]])


def test_votes_are_shares_of_the_copies() -> None:
    assert combine(ROWS, "vote").probabilities == pytest.approx((2 / 3, 1 / 3))
    assert combine(np.array([[0.5, 0.5, 0.0]]), "vote").probabilities == (1.0, 0.0, 0.0)  # the first of a tie


def test_mean_probabilities() -> None:
    assert combine(ROWS, "probability").probabilities == pytest.approx((1.7 / 3, 1.3 / 3))


def test_mean_logits_are_the_mean_log_odds() -> None:
    odds = (math.log(9) + math.log(1.5) + math.log(0.25)) / 3
    assert combine(ROWS, "logit").probabilities[0] == pytest.approx(1 / (1 + math.exp(-odds)))


def test_normalised_logits_count_every_copy_alike() -> None:
    """Of two classes every row has the length 1, so only its sign is left: (1 + 1 - 1) / 3 of (1, -1) / sqrt 2."""
    odds = 2 / math.sqrt(2) / 3
    assert combine(ROWS, "normalised-logit").probabilities[0] == pytest.approx(1 / (1 + math.exp(-odds)))
    assert combine(np.array([[0.5, 0.5]]), "normalised-logit").probabilities == pytest.approx((0.5, 0.5))


@given(st.lists(st.lists(st.floats(-30, 30), min_size=3, max_size=3), min_size=1, max_size=6))
def test_mean_logits_need_no_logits(logits: list[list[float]]) -> None:
    """Computed from probabilities it is the softmax of the mean of the logits themselves."""
    raw = np.array(logits)
    shares = np.exp(raw - raw.max(1, keepdims=True))
    mean = raw.mean(0)
    expected = np.exp(mean - mean.max()) / np.exp(mean - mean.max()).sum()
    assert combine(shares / shares.sum(1, keepdims=True), "logit").probabilities == pytest.approx(expected, abs=1e-9)


def test_a_probability_of_zero_is_survived() -> None:
    for how in ("logit", "normalised-logit"):
        found = combine(np.array([[1.0, 0.0], [0.4, 0.6]]), how)  # type: ignore[arg-type]
        assert found.label == 0
        assert all(math.isfinite(value) for value in found.probabilities)
