"""Medians and curves of radii, and the band around the curve."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.certificates.confidence import clopper_pearson_low
from stockade.certificates.medians import certified_curve, corrected_alpha, curve_band, median_bound, median_rate
from stockade.core.errors import OptionError

RADII = st.lists(st.none() | st.integers(0, 5), min_size=1, max_size=12)


@pytest.mark.parametrize(
    ("radii", "bound"),
    [
        ([None, None, 1, 2, 3], 1),
        ([None, 1, 1, 2], 1),
        ([None, None, None, 4], None),
        ([None, 3], 3),
        ([None, None, 5], None),
        ([0], 0),
        ([2, 0, 1], 1),
    ],
)
def test_median_bound(radii: list[int | None], bound: int | None) -> None:
    assert median_bound(radii) == bound


@given(RADII)
def test_the_median_bound_is_the_largest_that_half_of_all_texts_have(radii: list[int | None]) -> None:
    held = [d for d in range(7) if 2 * sum(radius is not None and radius >= d for radius in radii) >= len(radii)]
    assert median_bound(radii) == (max(held) if held else None)


def test_median_rate_sorts_rates_not_radii() -> None:
    assert median_rate([1, 2, 3], [2, 10, 10]) == 0.3
    assert median_rate([None, None, 3], [2, 10, 10]) is None


def test_curve() -> None:
    assert certified_curve([None, 0, 2, 2]) == (0.75, 0.5, 0.5)
    assert certified_curve([None, None]) == (0.0,)


@given(RADII)
def test_the_curve_falls_and_counts_each_text_once(radii: list[int | None]) -> None:
    curve = certified_curve(radii)
    assert list(curve) == sorted(curve, reverse=True)
    assert sum(curve) * len(radii) == pytest.approx(sum(radius + 1 for radius in radii if radius is not None))


def test_the_band_by_hand() -> None:
    # 200 texts: sqrt(log(40) / 400) = .0960
    band = curve_band([None] * 50 + [0] * 140 + [1] * 10, alpha=0.05)
    assert np.array(band) == pytest.approx(np.array([[0.6540, 0.8460], [0.0, 0.1460]]), abs=1e-4)


def test_the_band_holds_for_all_radii_at_once() -> None:
    rng = np.random.default_rng(3)
    distribution, texts, runs, alpha = np.array([0.2, 0.3, 0.3, 0.2]), 100, 4000, 0.2
    truth = 1 - np.cumsum(distribution)[:3]  # at least 0, 1, 2 if the first value means no certificate
    missed = 0
    for counts in rng.multinomial(texts, distribution, runs):
        band = curve_band([None] * counts[0] + [0] * counts[1] + [1] * counts[2] + [2] * counts[3], alpha)
        missed += any(not low <= true <= high for (low, high), true in zip(band, truth, strict=True))
    assert clopper_pearson_low(missed, runs, 0.001) <= alpha
    assert missed > 0.01 * runs, "a band that never misses is too wide to be of use"


def test_the_correction_is_bonferroni() -> None:
    assert corrected_alpha(0.05, 200) == 0.00025


def test_nonsense_is_refused() -> None:
    for call in (
        lambda: median_bound([]),
        lambda: median_rate([1], [1, 2]),
        lambda: median_rate([0], [0]),
        lambda: certified_curve([]),
        lambda: curve_band([1], 0.0),
        lambda: curve_band([]),
        lambda: corrected_alpha(0.05, 0),
        lambda: corrected_alpha(5, 10),
    ):
        with pytest.raises(OptionError, match=r"\.$"):
            call()
