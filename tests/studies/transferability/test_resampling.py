"""Resampled texts: shares by hand, intervals around the value, and what changes places."""

from __future__ import annotations

import numpy as np
import pytest

from stockade.studies.transferability.resampling import (
    at_least,
    centred_interval,
    differs_from_zero,
    exchanged_shares,
    resampled_shares,
    shares,
)

HITS = np.array([[[1, 1, 0, 0], [1, 0, 0, 0]], [[0, 0, 0, 0], [1, 1, 1, 1]]], dtype=np.bool_)
COUNTED = np.array([[[1, 1, 1, 1], [1, 1, 0, 0]], [[0, 0, 0, 0], [1, 1, 1, 1]]], dtype=np.bool_)
"""Two sources, two targets, four texts."""


def test_shares_are_of_the_counted_texts() -> None:
    assert shares(HITS, COUNTED).tolist() == [[0.5, 0.5], [pytest.approx(float("nan"), nan_ok=True), 1.0]]


def test_resamples_draw_texts_not_cells() -> None:
    drawn = resampled_shares(HITS, COUNTED, resamples=200)
    assert drawn.shape == (200, 2, 2)
    assert set(np.round(4 * drawn[:, 0, 0]).tolist()) == {0.0, 1.0, 2.0, 3.0, 4.0}
    assert (drawn[:, 1, 1] == 1).all()  # a hit on every text is a hit in every resample
    assert np.isnan(drawn[:, 1, 0]).all()
    assert abs(drawn[:, 0, 0].mean() - 0.5) < 0.05
    # The first two texts are hits of one cell, the first alone of the other: both move together.
    measured = np.isfinite(drawn[:, 0, 1])
    assert (drawn[measured, 0, 0] >= drawn[measured, 0, 1] * 0.25).all()
    np.testing.assert_array_equal(drawn, resampled_shares(HITS, COUNTED, resamples=200))
    assert not np.array_equal(drawn, resampled_shares(HITS, COUNTED, resamples=200, seed=1))


def test_many_cells_are_summed_in_parts() -> None:
    hits = np.random.default_rng(0).random((40, 40, 12)) < 0.3
    counted = np.ones_like(hits)
    drawn = resampled_shares(hits, counted, resamples=3)
    np.testing.assert_array_equal(
        drawn[:, 39, 39], resampled_shares(hits[39:, 39:], counted[39:, 39:], resamples=3)[:, 0, 0]
    )


def test_texts_change_places_as_a_whole() -> None:
    hits = np.zeros((2, 2, 50), dtype=np.bool_)
    hits[0, 1] = True  # the first fools the second on every text, never the other way round
    exchanged = exchanged_shares(hits, np.ones_like(hits), resamples=300)
    np.testing.assert_allclose(exchanged[:, 0, 1] + exchanged[:, 1, 0], 1.0, atol=1e-6)
    assert abs(exchanged[:, 0, 1].mean() - 0.5) < 0.05
    assert at_least(1.0, np.abs(exchanged[:, 0, 1] - exchanged[:, 1, 0])) == pytest.approx(1 / 301, abs=1e-6)
    alike = hits | hits.swapaxes(0, 1)
    np.testing.assert_allclose(exchanged_shares(alike, np.ones_like(hits), resamples=5)[:, 0, 1], 1.0)


def test_intervals_lie_around_the_value_even_if_resamples_do_not() -> None:
    interval = centred_interval(0.2, np.linspace(0.3, 0.5, 101))
    assert interval == {"value": 0.2, "low": 0.105, "high": 0.295}
    assert centred_interval(float("nan"), np.array([1.0, 2.0])) == {"value": None, "low": None, "high": None}
    assert centred_interval(0.2, np.array([np.nan, 0.2])) == {"value": 0.2, "low": None, "high": None}


def test_a_difference_is_tested_against_the_spread_of_the_resampled_ones() -> None:
    spread = np.linspace(-1, 1, 99)
    assert differs_from_zero(2.0, spread + 2) == 0.01
    assert differs_from_zero(0.0, spread) == 1.0
    assert differs_from_zero(-0.5, spread - 0.5) == pytest.approx(0.51, abs=0.02)
    assert differs_from_zero(float("nan"), spread) is None
    assert differs_from_zero(1.0, np.array([np.nan])) is None


def test_the_interval_of_a_share_stays_a_share() -> None:
    assert centred_interval(0.05, np.linspace(0.3, 0.5, 101), (0, 1)) == {"value": 0.05, "low": 0.0, "high": 0.145}
    assert centred_interval(0.99, np.linspace(0.3, 0.5, 101), (0, 1)) == {"value": 0.99, "low": 0.895, "high": 1.0}
