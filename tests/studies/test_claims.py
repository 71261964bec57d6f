"""A claim is held, not held or undecided: by a test or an interval, never by a number that happens to be larger."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.studies.claims import Claim, PairedTest, all_of, by_interval, by_test, claims_in_short, within


def interval(low: float | None, high: float | None) -> dict[str, float | None]:
    return {"value": 0.0, "low": low, "high": high}


@pytest.mark.parametrize(
    ("difference", "p", "verdict"),
    [
        (0.2, 0.01, True),
        (-0.2, 0.01, False),
        (0.2, 0.05, None),
        (0.0, 0.01, None),
        (None, None, None),
        (0.2, None, None),
    ],
)
def test_a_difference_is_decided_by_its_test(difference: float | None, p: float | None, verdict: bool | None) -> None:
    assert by_test(difference, p) is verdict


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [(0.1, 0.3, True), (-0.3, -0.1, False), (-0.1, 0.3, None), (0.0, 0.3, None), (None, None, None)],
)
def test_an_interval_on_both_sides_of_the_line_decides_nothing(
    low: float | None, high: float | None, verdict: bool | None
) -> None:
    assert by_interval(interval(low, high)) is verdict


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [(-0.02, 0.02, True), (0.04, 0.08, False), (-0.08, -0.04, False), (-0.01, 0.05, None), (0.0, 0.03, None)],
)
def test_a_negligible_difference_is_so_in_its_whole_interval(low: float, high: float, verdict: bool | None) -> None:
    assert within(interval(low, high), 0.03) is verdict


def test_a_claim_of_several_parts_needs_all_of_them_and_falls_with_one() -> None:
    assert all_of([True, True]) is True
    assert all_of([True, None]) is None
    assert all_of([True, None, False]) is False
    assert all_of([]) is None


def test_paired_texts_get_the_exact_test() -> None:
    assert PairedTest.of([1] * 6).positive is True
    assert PairedTest.of([-1] * 6).positive is False
    assert PairedTest.of([1] * 5).positive is None, "p = 2 / 2**5"
    assert PairedTest.of([1, -1] * 50).positive is None
    assert PairedTest.of([0] * 100).positive is None
    assert PairedTest.of([]) == PairedTest(0, None, None)
    assert PairedTest.of([0.1] * 6).p == 2 / 2**6
    assert str(PairedTest.of([1] * 6)) == "p = 0.031 on 6 texts"


@given(st.lists(st.sampled_from([-1, 0, 1]), max_size=40))
def test_the_other_way_round_the_verdict_is_the_opposite(differences: list[float]) -> None:
    test, turned = PairedTest.of(differences), PairedTest.of([-value for value in differences])
    assert test.reverse.positive is turned.positive
    assert (test.positive is None) == (turned.positive is None)
    if test.positive is not None:
        assert test.positive is not turned.positive


def test_the_headline_counts_all_three() -> None:
    claims = [Claim("a", True, ""), Claim("b", None, ""), Claim("c", False, ""), Claim("d", None, "")]
    assert [claim.verdict for claim in claims] == ["held", "undecided", "not held", "undecided"]
    assert claims_in_short(claims) == "Of the paper's 4 claims, 1 held, 1 not held, 2 undecided here."
