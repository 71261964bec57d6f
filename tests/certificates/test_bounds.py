"""Losses, thresholds and radii against numbers that can be checked by hand, by counting or in print."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, product
from math import comb, nextafter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.certificates.bounds import (
    deletion_losses,
    divergence_check,
    edit_bound,
    insertion_leads,
    insertions_radius,
    largest_radius,
    legacy_claim,
    masking_losses,
    partition_radius,
    sampled_coverage_radius,
    synonym_losses,
    threshold,
)
from stockade.certificates.confidence import clopper_pearson_high
from stockade.core.errors import OptionError


def test_overlaps_that_were_rounded_up_certify_no_more() -> None:
    """Quotients of the sizes of all sets there can be: some floats are above what they stand for."""
    exact = [Fraction(common, size) for size in range(1, 101) for common in range(size + 1)]
    assert any(Fraction(float(share)) > share for share in exact)
    for share in exact:
        (_, loss), (_, exact_loss) = synonym_losses([float(share)]), synonym_losses([share])
        assert exact_loss == 1 - share <= loss
        assert loss - exact_loss < Fraction(1, 10**15)
    assert list(synonym_losses([1.0, 0.0])) == [0, 1, 1]


def test_losses_of_a_headline_of_43_words_that_keeps_4() -> None:
    spared = [round(float(1 - loss), 3) for loss in masking_losses(43, 4)[1:8]]
    assert spared == [0.907, 0.821, 0.741, 0.666, 0.598, 0.535, 0.477]


@given(st.integers(0, 8).flatmap(lambda words: st.tuples(st.just(words), st.integers(0, words))))
def test_masking_losses_are_shares_of_counted_masks(size: tuple[int, int]) -> None:
    words, kept = size
    losses = masking_losses(words, kept)
    assert len(losses) == words + 1
    for changed, loss in enumerate(losses):
        touched = sum(any(word < changed for word in mask) for mask in combinations(range(words), kept))
        assert loss == Fraction(touched, comb(words, kept))
        assert loss == 1 or changed <= words - kept


def test_deletion_losses_are_never_below_the_truth_and_next_to_it() -> None:
    for chance in (0.1, 0.3, 1 / 3, 0.5, 0.97, 1.0, 0.0):
        for edits, loss in enumerate(deletion_losses(chance, 60)):
            true = 1 - (1 - Fraction(chance)) ** edits
            assert loss >= true
            assert loss == 0 or nextafter(loss, 0) < true
    assert deletion_losses(0.5, 3) == (0.0, 0.5, 0.75, 0.875)


def test_synonym_losses_take_the_worst_words_first() -> None:
    losses = synonym_losses([1, Fraction(1, 2), Fraction(4, 5)])
    assert list(losses) == [0, Fraction(1, 2), Fraction(3, 5), Fraction(3, 5)]


def test_thresholds() -> None:
    assert threshold(Fraction(1, 10), "majority") == Fraction(3, 5)
    assert threshold(0.25, "gap") == Fraction(1, 2)
    assert threshold(0.1, "majority") == Fraction(1, 2) + Fraction(0.1), "no rounding: 0.1 is a little more than 1/10"


def test_the_radius_is_the_last_success() -> None:
    losses = [Fraction(0), Fraction(1, 10), Fraction(2, 10), Fraction(4, 10)]
    assert largest_radius(0.75, losses, "majority") == 2
    assert largest_radius(Fraction(7, 10), losses, "majority") == 1, "a share equal to the threshold is not enough"
    assert largest_radius(0.5, losses, "majority") is None
    assert largest_radius(0.500001, losses, "majority") == 0
    assert largest_radius(Fraction(81, 100), losses, "gap") == 3
    assert largest_radius(Fraction(0), losses, "gap") is None
    assert largest_radius(1, losses, "gap") == 3, "never more than the losses say anything about"


def test_a_success_after_a_failure_does_not_count() -> None:
    assert largest_radius(0.9, [0.0, 0.45, 0.1], "majority") == 0


def test_insertions_need_less_than_substitutions() -> None:
    # 0.9^6 = .531, 0.9^7 = .478; times p = 1.
    assert insertions_radius(1, insertion_leads(0.1, 20)) == 6
    assert insertions_radius(1, insertion_leads(0.1, 4)) == 4
    # p = .75: .75 * .9^3 = .547, .75 * .9^4 = .492; for edits of any kind .75 > 1/2 + 1 - .9^d only up to d = 2.
    assert insertions_radius(0.5, insertion_leads(0.1, 20)) == 3
    assert largest_radius(0.75, deletion_losses(0.1, 20), "majority") == 2
    assert insertions_radius(0, insertion_leads(0.1, 20)) is None


def test_the_edit_bound_by_hand() -> None:
    half = Fraction(1, 2)
    assert edit_bound(1, 0.5, 1, 1) == half
    assert edit_bound(Fraction(3, 4), 0.5, 1, 1) == Fraction(1, 4)
    assert edit_bound(Fraction(3, 4), 0.5, 1, 0) == half
    assert edit_bound(Fraction(3, 4), 0.5, 0, 1) == Fraction(3, 8)
    assert edit_bound(half, 0.5, 2, 0) == 0
    assert edit_bound(1, 1.0, 1, 0) == 0, "nothing is ever deleted: nothing is known about another text"
    assert edit_bound(Fraction(3, 4), 0.5, 0, 0) == Fraction(3, 4)


@given(st.fractions(0, 1), st.sampled_from([0.125, 0.25, 0.5, 0.75]), st.integers(0, 5))
def test_as_many_substitutions_are_the_worst_edits(p: Fraction, chance: float, edits: int) -> None:
    worst = edit_bound(p, chance, edits, edits)
    assert worst == max(Fraction(0), p - Fraction(deletion_losses(chance, edits)[-1]))
    for removed, added in product(range(edits + 1), repeat=2):
        assert edit_bound(p, chance, removed, added) >= worst


@pytest.mark.parametrize(
    ("counts", "chosen", "radius"),
    [
        ((5, 0), 0, 2),
        ((0, 5), 1, 2),
        ((4, 0), 0, 2),  # 2 : 2 is a tie, and class 0 wins ties
        ((0, 4), 1, 1),  # 2 : 2 is a tie, which class 1 loses
        ((2, 2), 0, 0),
        ((2, 2), 1, None),
        ((1, 2), 0, None),
        ((7, 3, 2), 0, 2),
        ((3, 2, 7), 2, 1),
    ],
)
def test_partition_radius(counts: tuple[int, ...], chosen: int, radius: int | None) -> None:
    assert partition_radius(counts, chosen) == radius


@given(st.lists(st.integers(0, 6), min_size=2, max_size=4), st.data())
def test_the_partition_radius_is_exactly_how_many_votes_may_move(counts: list[int], data: st.DataObject) -> None:
    chosen = data.draw(st.integers(0, len(counts) - 1))

    def wins(votes: list[int]) -> bool:
        return votes.index(max(votes)) == chosen

    def broken(moved: int) -> bool:
        moved = min(moved, counts[chosen])
        for rival in set(range(len(counts))) - {chosen}:
            votes = [*counts]
            votes[chosen], votes[rival] = votes[chosen] - moved, votes[rival] + moved
            if not wins(votes):
                return True
        return False

    radius = partition_radius(counts, chosen)
    assert (radius is None) == (not wins(counts))
    if radius is not None:
        assert not broken(radius)
        assert broken(radius + 1) or radius + 1 > counts[chosen]


def test_coverage_from_samples_by_hand() -> None:
    # 1000 copies, 100 errors; every one of them hides word 0, none hides word 1 or 2.
    each = 0.05 / 4
    ceiling, nothing = clopper_pearson_high(100, 1000, each), clopper_pearson_high(0, 1000, each)
    assert (round(ceiling, 3), round(nothing, 4)) == (0.123, 0.0044)
    # One word: .5 - .3 > .123. Two words: only word 0 hides errors, so at most .0044 stay: .5 - .45 > .0044.
    assert sampled_coverage_radius(100, (100, 0, 0), 1000, (0.0, 0.3, 0.45, 0.499), 0.05) == 2
    assert sampled_coverage_radius(100, (100, 100, 0), 1000, (0.0, 0.3, 0.45, 0.499), 0.05) == 1
    # The attacker takes word 0 first: all the errors stay.
    assert sampled_coverage_radius(100, (0, 0, 100), 1000, (0.0, 0.45, 0.46, 0.47), 0.05) == 0
    assert sampled_coverage_radius(600, (0, 0, 0), 1000, (0.0, 0.3, 0.45, 0.499), 0.05) is None


def test_the_published_claim_of_the_counter_example() -> None:
    exact = legacy_claim(184, 210, 10, 4, None)
    assert exact.p_low == exact.beta == 184 / 210
    assert round(exact.bounds[1], 4) == 0.5257, "with all 210 copies known: p - p Δ_1 = 184/210 * 6/10"
    assert (exact.radius, exact.last_passing) == (2, 1)
    assert largest_radius(Fraction(184, 210), masking_losses(10, 4), "majority") == 0


def test_the_published_claim_from_samples_uses_a_lower_limit_once() -> None:
    claim = legacy_claim(4381, 5000, 10, 4, 0.05)
    assert claim.p_low < claim.beta == 4381 / 5000
    assert claim.bounds[1] == pytest.approx(claim.p_low - claim.beta * 0.4)
    assert (claim.radius, claim.last_passing) == (2, 1)
    assert legacy_claim(184, 210, 10, 4, 0.05).radius == 1
    abstained = legacy_claim(100, 210, 10, 4, 0.05)
    assert (abstained.radius, abstained.last_passing) == (None, None)


def test_the_published_divergence_cannot_see_what_voids_the_claim() -> None:
    shares = np.random.default_rng(0).uniform(0.6, 1, 1000)
    assert divergence_check((1.25 * shares).tolist(), shares.tolist()) == pytest.approx(0, abs=1e-15)
    raised = divergence_check((shares + 0.05).tolist(), shares.tolist())
    assert round(raised, 7) == 8.9e-6, "and the paper calls 2.5e-5 very small"
    # With beta higher by .05 the first change of a text of 10 words of which 4 are kept costs .02 more.
    assert 0.86 - 0.86 * 0.4 > 0.5 > 0.86 - (0.86 + 0.05) * 0.4
    assert divergence_check([1.0, 3.0], [3.0, 1.0]) == pytest.approx(0.75 * np.log(1.5) + 0.25 * np.log(0.5))


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (masking_losses, (3, 4)),
        (masking_losses, (3, -1)),
        (deletion_losses, (1.5, 3)),
        (deletion_losses, (0.5, -1)),
        (synonym_losses, ([1.2],)),
        (threshold, (0.1, "plurality")),
        (insertion_leads, (-0.1, 3)),
        (insertion_leads, (0.1, -3)),
        (edit_bound, (0.9, 0.1, -1, 0)),
        (edit_bound, (1.9, 0.1, 1, 0)),
        (partition_radius, ((3,), 0)),
        (partition_radius, ((3, 4), 2)),
        (sampled_coverage_radius, (1, (2,), 10, (0.0,), 0.05)),
        (sampled_coverage_radius, (1, (1,), 10, (0.0,), 1.0)),
        (legacy_claim, (11, 10, 5, 2, 0.05)),
        (legacy_claim, (0, 0, 5, 2, 0.05)),
        (divergence_check, ([0.5], [0.5, 0.5])),
        (divergence_check, ([], [])),
        (divergence_check, ([0.0, 1.0], [0.5, 0.5])),
    ],
)
def test_nonsense_is_refused(function: Any, arguments: tuple[Any, ...]) -> None:
    with pytest.raises(OptionError, match=r"\.$"):
        function(*arguments)


@pytest.mark.parametrize(("chance", "leads"), [(0.1, 7), (0.3, 2), (0.5, 1), (0.9, 1), (1.0, 1), (0.001, 51)])
def test_leads_for_insertions(chance: float, leads: int) -> None:
    """By hand: 0.9^6 is the last power above a half, 0.7 that of the next; 50 is the limit for the last."""
    found = insertion_leads(chance, 50)
    assert len(found) == leads
    for inserted, lead in enumerate(found):
        assert float(lead) == pytest.approx(1 / (1 - chance) ** inserted - 1)
