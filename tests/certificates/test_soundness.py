"""Attackers that try everything: no certificate is ever broken, and the published rule is.

Victims are random tables over the texts that the base classifier can see, skewed towards class 0 so that there is
something to certify; where it says "worst case" every altered copy votes for the attacker's class.
"""

from __future__ import annotations

from functools import cache
from itertools import combinations, product
from math import comb

import numpy as np
import pytest
from numpy.typing import NDArray

from stockade.certificates.bounds import (
    largest_radius,
    legacy_claim,
    masking_losses,
    partition_radius,
    sampled_coverage_radius,
)
from stockade.certificates.confidence import clopper_pearson_low
from stockade.certificates.exact import VoteTable, coverage_radius, exact_radius, mask_array
from tests.certificates.kit import Array, Words, rank, skewed


def masking_radii(table: VoteTable, chosen: int) -> dict[str, int | None]:
    losses, shares = masking_losses(table.words, table.kept), table.shares
    rivals = [share for label, share in enumerate(shares) if label != chosen]
    return {
        "majority": largest_radius(shares[chosen], losses, "majority"),
        "gap": largest_radius(shares[chosen] - max(rivals), losses, "gap"),
        "coverage": coverage_radius(table, chosen),
        "exact": exact_radius(table, chosen),
    }


@cache
def touched_copies(words: int, kept: int) -> tuple[list[Words], NDArray[np.bool_]]:
    """All sets of changed words, and for each which copies show one of them."""
    sets = [changed for d in range(words + 1) for changed in combinations(range(words), d)]
    masks = mask_array(words, kept)
    return sets, np.array([masks[:, list(changed)].any(axis=1) for changed in sets])


def counts_after_the_worst(table: VoteTable) -> tuple[Array, Array]:
    """By set of changed words, attacker's class and class: the votes when every altered copy votes as he likes."""
    sets, touched = touched_copies(table.words, table.kept)
    votes = np.array(table.votes)
    stays = np.stack([(~touched & (votes == label)).sum(axis=1) for label in range(table.classes)], axis=1)
    altered = touched.sum(axis=1)
    after = stays[:, None, :] + altered[:, None, None] * np.eye(table.classes, dtype=np.int64)[None]
    return np.array([len(changed) for changed in sets]), after


def first_broken(table: VoteTable, chosen: int) -> int:
    """The fewest changes with which the worst attacker keeps `chosen` from having most votes alone; words + 1: none."""
    sizes, after = counts_after_the_worst(table)
    others = np.delete(after, chosen, axis=2).max(axis=2)
    broken = (after[:, :, chosen] <= others).any(axis=1)
    return int(sizes[broken].min()) if broken.any() else table.words + 1


@pytest.mark.parametrize("victims", [200, pytest.param(1000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("classes", [2, 3, 4])
def test_masking_against_the_worst_case(classes: int, victims: int) -> None:
    """Nothing is broken, the implications hold, and one change more breaks the exact criterion."""
    rng = np.random.default_rng(classes)
    certified = 0
    for _ in range(victims):
        words = int(rng.integers(3, 9))
        kept = int(rng.integers(1, max(2, words // 2)))
        votes = skewed(rng, comb(words, kept), classes, rng.choice([0.0, 0.1, 0.3, 0.6]))
        table = VoteTable(words, kept, tuple(votes.tolist()), classes)
        chosen = int(np.argmax(table.counts))
        radii = {name: rank(radius) for name, radius in masking_radii(table, chosen).items()}
        assert radii["exact"] + 1 == first_broken(table, chosen), "exact: never broken, and tight"
        assert radii["majority"] <= radii["coverage"] <= radii["exact"]
        assert radii["majority"] <= radii["gap"] <= radii["exact"]
        if classes == 2:
            assert radii["majority"] == radii["gap"]
            assert radii["coverage"] == radii["exact"]
        certified += radii["majority"] > 0
    assert certified > 0.05 * victims


@pytest.mark.parametrize("runs", [200, pytest.param(1000, marks=pytest.mark.slow)])
def test_coverage_from_samples(runs: int) -> None:
    """A sampled radius exceeds the true one no more often than alpha, and sometimes that of the majority rule."""
    rng, alpha, wrong, better = np.random.default_rng(31), 0.2, 0, 0
    for _ in range(runs):
        words, kept = int(rng.integers(7, 10)), int(rng.integers(1, 4))
        masks = mask_array(words, kept)
        errors = rng.random(len(masks)) < 0.2
        table = VoteTable(words, kept, tuple(errors.astype(int).tolist()), 2)
        losses, drawn = masking_losses(words, kept), rng.integers(0, len(masks), 2000)
        hidden = tuple((~masks[drawn][errors[drawn]]).sum(axis=0).tolist())
        radius = sampled_coverage_radius(int(errors[drawn].sum()), hidden, 2000, losses, alpha)
        truth, simple = coverage_radius(table, 0), largest_radius(table.shares[0], losses, "majority")
        wrong += rank(radius) > rank(truth)
        better += rank(simple) < rank(radius) <= rank(truth)
    assert clopper_pearson_low(wrong, runs, 0.001) <= alpha
    assert better > 0.005 * runs


def all_texts(words: int, vocabulary: int) -> Array:
    return np.array(list(product(range(vocabulary), repeat=words)))


def distances(texts: Array) -> Array:
    apart: Array = (texts[:, None, :] != texts[None, :, :]).sum(axis=2)
    return apart


def assert_unbroken(radii: list[int | None], winners: Array, apart: Array) -> int:
    """No text within the radius of another has another winner. Says how many radii allow a change."""
    for row, radius in enumerate(radii):
        if radius is not None:
            assert np.all(winners[apart[row] <= radius] == winners[row])
    return sum(rank(radius) > 0 for radius in radii)


@pytest.mark.parametrize(("words", "kept", "classes"), [(4, 1, 2), (5, 1, 3), (5, 2, 2), (6, 1, 4)])
def test_masking_of_every_text_by_every_text(words: int, kept: int, classes: int) -> None:
    """A victim that is a table over all masked texts of two words; every text is certified, every other attacks it."""
    texts, masks = all_texts(words, 2), mask_array(words, kept)
    apart = distances(texts)
    shown = np.where(masks[None], texts[:, None, :], 2) @ (3 ** np.arange(words))
    rng, useful = np.random.default_rng(words * 10 + kept), 0
    for _ in range(12):
        votes = skewed(rng, 3**words, classes, 0.15)[shown]
        winners = np.array([np.bincount(row, minlength=classes).argmax() for row in votes])
        tables = [VoteTable(words, kept, tuple(row), classes) for row in votes.tolist()]
        radii = [masking_radii(table, int(winner)) for table, winner in zip(tables, winners, strict=True)]
        for name in radii[0]:
            useful += assert_unbroken([by_rule[name] for by_rule in radii], winners, apart)
    assert useful > 100


@pytest.mark.parametrize(("words", "groups", "classes"), [(6, 6, 2), (6, 5, 3), (7, 5, 4), (5, 3, 2)])
def test_position_partition(words: int, groups: int, classes: int) -> None:
    texts, rng = all_texts(words, 3 if words < 7 else 2), np.random.default_rng(words * 10 + groups)
    apart, useful = distances(texts), 0
    for _ in range(6):
        votes = np.zeros((len(texts), groups), dtype=np.int64)
        for group in range(groups):
            inside = texts[:, group::groups]
            votes[:, group] = skewed(rng, 3 ** inside.shape[1], classes, 0.3)[inside @ 3 ** np.arange(inside.shape[1])]
        counts = np.stack([(votes == label).sum(axis=1) for label in range(classes)], axis=1)
        winners = counts.argmax(axis=1)
        pairs = zip(counts.tolist(), winners.tolist(), strict=True)
        useful += assert_unbroken([partition_radius(row, winner) for row, winner in pairs], winners, apart)
    assert useful > 100


def test_the_published_claim_is_broken_by_one_word() -> None:
    """Ten words, four kept; the victim errs on 26 of the 126 copies that hide word 0, and is right on all others."""
    masks = mask_array(10, 4)
    hiding = np.flatnonzero(~masks[:, 0])
    votes = np.zeros(210, dtype=np.int64)
    votes[hiding[:26]] = 1
    table = VoteTable(10, 4, tuple(votes.tolist()), 2)
    claim = legacy_claim(table.counts[0], 210, 10, 4, None)
    assert claim.last_passing == 1
    assert claim.radius == 2
    altered = np.where(masks[:, 0], 1, votes)
    assert round(float(np.mean(altered == 0)), 3) == 0.476
    assert masking_radii(table, 0) == {"majority": 0, "gap": 0, "coverage": 0, "exact": 0}


def test_the_published_claim_is_often_broken() -> None:
    """Victims that err when a key word is hidden, as sentiment models do."""
    rng, claimed, broken, too_large = np.random.default_rng(21), 0, 0, 0
    for _ in range(400):
        words = int(rng.integers(5, 9))
        masks = mask_array(words, 2)
        votes = np.where(~masks[:, 0] & (rng.random(len(masks)) < 0.3), 1, 0)
        table = VoteTable(words, 2, tuple(votes.tolist()), 2)
        claim, safe = legacy_claim(table.counts[0], len(votes), words, 2, None), first_broken(table, 0) - 1
        claimed += rank(claim.last_passing) > 0
        broken += rank(claim.last_passing) > max(safe, 0)
        too_large += rank(claim.radius) > max(safe, 0)
    assert claimed > 200
    assert broken > 0.2 * claimed, "even with the last that passes"
    assert too_large > 0.9 * claimed, "with the first that fails, as published"
