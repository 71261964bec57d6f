"""All copies known: the two criteria against brute force, and the bounds that take over when texts get longer."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from math import comb

import numpy as np
import pytest

from stockade.certificates import exact
from stockade.certificates.bounds import largest_radius, masking_losses
from stockade.certificates.exact import VoteTable, coverage_radius, exact_radius, mask_array
from stockade.core.errors import OptionError


def random_table(rng: np.random.Generator, words: int, kept: int, classes: int, errors: float) -> VoteTable:
    copies = comb(words, kept)
    votes = np.where(rng.random(copies) < errors, rng.integers(0, classes, copies), 0)
    return VoteTable(words, kept, tuple(votes.tolist()), classes)


def rank(radius: int | None) -> int:
    return -1 if radius is None else radius


def brute_force(table: VoteTable, chosen: int, against_half: bool) -> int | None:
    """Straight from the criteria, with nothing but Python's integers and loops."""
    copies, radius = len(table.votes), None
    for d in range(table.words + 1):
        for changed in combinations(range(table.words), d):
            stays = [0] * table.classes
            for mask, vote in zip(combinations(range(table.words), table.kept), table.votes, strict=True):
                if not set(mask) & set(changed):
                    stays[vote] += 1
            altered = copies - comb(table.words - d, table.kept)
            if against_half and 2 * stays[chosen] <= copies:
                return radius
            rivals = [stays[j] for j in range(table.classes) if j != chosen]
            if not against_half and stays[chosen] <= max(rivals) + altered:
                return radius
        radius = d
    return radius


def test_masks_are_in_the_order_of_combinations() -> None:
    rows = [tuple(np.flatnonzero(row).tolist()) for row in mask_array(6, 3)]
    assert rows == list(combinations(range(6), 3))
    assert mask_array(3, 0).tolist() == [[False, False, False]]


def test_shares_are_exact() -> None:
    table = VoteTable(3, 1, (0, 1, 0), 2)
    assert table.counts == (2, 1)
    assert table.shares == (Fraction(2, 3), Fraction(1, 3))


def test_a_table_by_hand() -> None:
    # Five words, one kept: each word votes. A changed word may vote as the attacker likes.
    assert exact_radius(VoteTable(5, 1, (0, 0, 0, 0, 0), 2), 0) == 2
    assert exact_radius(VoteTable(5, 1, (0, 0, 0, 0, 1), 2), 0) == 1
    assert exact_radius(VoteTable(5, 1, (0, 0, 0, 1, 1), 2), 0) == 0
    assert exact_radius(VoteTable(4, 1, (0, 0, 1, 1), 2), 0) is None
    # With three classes the lead over the second counts, not half of the votes.
    table = VoteTable(7, 1, (0, 0, 0, 0, 1, 2, 2), 3)
    assert coverage_radius(table, 0) == 0
    assert exact_radius(table, 0) == 0
    table = VoteTable(8, 1, (0, 0, 0, 0, 1, 2, 3, 4), 5)
    assert coverage_radius(table, 0) is None
    assert exact_radius(table, 0) == 1


@pytest.mark.parametrize("seed", range(40))
def test_both_criteria_agree_with_brute_force(seed: int) -> None:
    rng = np.random.default_rng(seed)
    words = int(rng.integers(2, 7))
    table = random_table(rng, words, int(rng.integers(1, 3)), int(rng.integers(2, 5)), rng.random() * 0.5)
    for chosen in range(2):
        assert exact_radius(table, chosen) == brute_force(table, chosen, against_half=False)
        assert coverage_radius(table, chosen) == brute_force(table, chosen, against_half=True)


@pytest.mark.parametrize(("words", "kept"), [(7, 2), (8, 3), (9, 2), (6, 1)])
def test_trying_all_sets_agrees_with_sums_over_subsets(words: int, kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(words)
    tables = [random_table(rng, words, kept, 3, 0.3) for _ in range(30)]
    expected = [(exact_radius(table, 0), coverage_radius(table, 0)) for table in tables]
    monkeypatch.setattr(exact, "_LATTICE_WORDS", 0)
    assert [(exact_radius(table, 0), coverage_radius(table, 0)) for table in tables] == expected


def test_where_sets_are_too_many_bounds_never_say_more_and_no_less_than_the_simple_rules(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(5)
    tables = [random_table(rng, words, 2, 4, errors) for words in (9, 12) for errors in (0.0, 0.1, 0.2, 0.3, 0.4) * 8]
    truth = [(exact_radius(table, 0), coverage_radius(table, 0)) for table in tables]
    monkeypatch.setattr(exact, "_LATTICE_WORDS", 0)
    monkeypatch.setattr(exact, "_PAIRS", 0)
    smaller = 0
    for table, (best, half) in zip(tables, truth, strict=True):
        bounded, bounded_half = exact_radius(table, 0), coverage_radius(table, 0)
        losses, shares = masking_losses(table.words, table.kept), table.shares
        majority = largest_radius(shares[0], losses, "majority")
        gap = largest_radius(shares[0] - max(shares[1:]), losses, "gap")
        assert rank(majority) <= rank(bounded_half) <= rank(half)
        assert max(rank(gap), rank(bounded_half)) <= rank(bounded) <= rank(best)
        smaller += bounded != best
    assert smaller, "the bounds are known to be loose somewhere; else this test has compared a thing with itself"


def test_greedy_bounds_enclose_the_maximum() -> None:
    rng = np.random.default_rng(9)
    for _ in range(20):
        masks, weights = mask_array(8, 3), rng.integers(0, 3, comb(8, 3))
        best = exact._most_touched_of_each_size(masks, weights)
        least, most = exact._greedy_bounds(masks, weights)
        assert np.all(least <= best)
        assert np.all(best <= most)


def test_a_long_text_stays_cheap() -> None:
    # 60 words, one kept: no set needs to be tried. 60 votes of one class: 29 may change sides.
    assert exact_radius(VoteTable(60, 1, (0,) * 60, 2), 0) == 29
    assert coverage_radius(VoteTable(60, 1, (1,) * 10 + (0,) * 50, 2), 0) == 19


def test_nonsense_is_refused() -> None:
    for call in (
        lambda: VoteTable(4, 2, (0,) * 5, 2),
        lambda: VoteTable(2, 3, (), 2),
        lambda: VoteTable(2, 1, (0, 2), 2),
        lambda: VoteTable(2, 1, (0, -1), 2),
        lambda: VoteTable(2, 1, (0, 0), 1),
        lambda: exact_radius(VoteTable(2, 1, (0, 0), 2), 2),
        lambda: coverage_radius(VoteTable(2, 1, (0, 0), 2), -1),
    ):
        with pytest.raises(OptionError, match=r"\.$"):
            call()
