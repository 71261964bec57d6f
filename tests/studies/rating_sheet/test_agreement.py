"""Agreement of raters on the example that Krippendorff computes by hand, and at its ends."""

from __future__ import annotations

from itertools import permutations

import pytest

from stockade.studies.rating_sheet.agreement import krippendorff_alpha

BY_OBSERVER = (
    (1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None),
    (1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3),
    (None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None),
    (1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None),
)
"""Krippendorff (2011), section C: four observers, twelve units, some of them not seen by all."""
UNITS = [[value for value in column if value is not None] for column in zip(*BY_OBSERVER, strict=True)]


def test_the_published_example() -> None:
    assert krippendorff_alpha(UNITS) == pytest.approx(0.743, abs=5e-4)
    assert krippendorff_alpha(UNITS, "ordinal") == pytest.approx(0.815, abs=5e-4)


def test_two_observers_and_two_values_by_hand() -> None:
    # Krippendorff (2011), section A: ten units, 0 or 1; six are alike, o01 = 4, n0 = 14, n1 = 6: 1 - 19 * 4 / 84
    first, second = (0, 1, 0, 0, 0, 0, 0, 0, 1, 0), (1, 1, 1, 0, 0, 1, 0, 0, 0, 0)
    assert krippendorff_alpha(list(zip(first, second, strict=True))) == pytest.approx(1 - 19 * 4 / 84, abs=1e-6)


def test_the_ends_of_the_scale_and_what_cannot_be_told() -> None:
    assert krippendorff_alpha([["a", "a", "a"], ["b", "b", "b"]]) == 1.0
    assert krippendorff_alpha([["a", "b"], ["b", "a"]]) < 0  # type: ignore[operator]
    assert krippendorff_alpha([["a", "a"], ["a", "a"]]) is None, "no variation, nothing to agree on"
    assert krippendorff_alpha([["a"], ["b"]]) is None, "one rater agrees with nobody"
    assert krippendorff_alpha([]) is None


def test_neither_the_order_of_raters_nor_names_matter_and_near_ranks_agree_more() -> None:
    assert {krippendorff_alpha([order, [1, 2], [3, 3]], "ordinal") for order in permutations((1, 2, 4))} == {
        krippendorff_alpha([[1, 2, 4], [1, 2], [3, 3]], "ordinal")
    }
    near, far = [[1, 2], [4, 5], [3, 3]], [[1, 5], [4, 2], [3, 3]]
    assert krippendorff_alpha(near, "ordinal") > krippendorff_alpha(far, "ordinal")  # type: ignore[operator]
