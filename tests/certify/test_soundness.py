"""Attackers that try everything: no certificate is ever broken, and the published rule is.

Victims are random tables over the texts that the base classifier can see, skewed towards class 0 so that there is
something to certify; where it says "worst case" every altered copy votes for the attacker's class.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache
from itertools import combinations, product
from math import comb

import numpy as np
import pytest
from numpy.typing import NDArray

from stockade.certify.bounds import (
    Rule,
    deletion_losses,
    edit_bound,
    insertions_radius,
    largest_radius,
    legacy_claim,
    masking_losses,
    partition_radius,
    sampled_coverage_radius,
    synonym_losses,
)
from stockade.certify.confidence import clopper_pearson_low
from stockade.certify.exact import VoteTable, coverage_radius, exact_radius, mask_array

Words = tuple[int, ...]
Array = NDArray[np.int64]


def rank(radius: int | None) -> int:
    return -1 if radius is None else radius


def masking_radii(table: VoteTable, chosen: int) -> dict[str, int | None]:
    losses, shares = masking_losses(table.words, table.kept), table.shares
    rivals = [share for label, share in enumerate(shares) if label != chosen]
    return {
        "majority": largest_radius(shares[chosen], losses, "majority"),
        "gap": largest_radius(shares[chosen] - max(rivals), losses, "gap"),
        "coverage": coverage_radius(table, chosen),
        "exact": exact_radius(table, chosen),
    }


def skewed(rng: np.random.Generator, size: int, classes: int, errors: float) -> Array:
    return np.where(rng.random(size) < errors, rng.integers(0, classes, size), 0)


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


@pytest.mark.parametrize("classes", [2, 3, 4])
def test_masking_against_the_worst_case(classes: int) -> None:
    """3000 victims: nothing is broken, the implications hold, and one change more breaks the exact criterion."""
    rng = np.random.default_rng(classes)
    certified = 0
    for _ in range(1000):
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
    assert certified > 50


def test_coverage_from_samples() -> None:
    """A sampled radius exceeds the true one no more often than alpha, and sometimes that of the majority rule."""
    rng, alpha, runs, wrong, better = np.random.default_rng(31), 0.2, 1000, 0, 0
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
    assert better > 5


def all_texts(words: int, vocabulary: int) -> Array:
    return np.array(list(product(range(vocabulary), repeat=words)))


def distances(texts: Array) -> Array:
    return (texts[:, None, :] != texts[None, :, :]).sum(axis=2)


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
    seen = np.where(masks[None], texts[:, None, :], 2) @ (3 ** np.arange(words))
    rng, useful = np.random.default_rng(words * 10 + kept), 0
    for _ in range(12):
        votes = skewed(rng, 3**words, classes, 0.15)[seen]
        winners = np.array([np.bincount(row, minlength=classes).argmax() for row in votes])
        tables = [VoteTable(words, kept, tuple(row), classes) for row in votes.tolist()]
        found = [masking_radii(table, int(winner)) for table, winner in zip(tables, winners, strict=True)]
        for name in found[0]:
            useful += assert_unbroken([radii[name] for radii in found], winners, apart)
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


def insertions(text: Words, vocabulary: int) -> Iterator[Words]:
    for place in range(len(text) + 1):
        for word in range(vocabulary):
            yield (*text[:place], word, *text[place:])


def deletions(text: Words) -> Iterator[Words]:
    for place in range(len(text)):
        yield (*text[:place], *text[place + 1 :])


def substitutions(text: Words, vocabulary: int) -> Iterator[Words]:
    for place in range(len(text)):
        for word in range(vocabulary):
            yield (*text[:place], word, *text[place + 1 :])


def ball(text: Words, cost: int, vocabulary: int, substitution: int) -> set[Words]:
    """All texts that insertions and deletions (cost 1) and substitutions (cost as given) reach."""
    reached = [{text}]
    for spent in range(1, cost + 1):
        before = reached[spent - 1]
        now = {other for base in before for other in (*insertions(base, vocabulary), *deletions(base))}
        if spent >= substitution:
            now |= {other for base in reached[spent - substitution] for other in substitutions(base, vocabulary)}
        reached.append(now)
    return set().union(*reached)


def random_votes(rng: np.random.Generator, classes: int, errors: float) -> Callable[[object], int]:
    """A victim that answers every new question at random, and the same question the same way."""
    return cache(lambda _: int(skewed(rng, 1, classes, errors)[0]))


@pytest.mark.parametrize("classes", [2, 3])
def test_hash_partition(classes: int) -> None:
    """Groups by word, other words removed: against insertions, deletions and (at cost 2) substitutions."""
    rng, vocabulary, groups, attacked, useful = np.random.default_rng(classes), 6, 6, 0, 0
    for _ in range(160):
        group_of = rng.integers(0, groups, vocabulary)
        victim = random_votes(rng, classes, 0.3)

        def counts(text: Words, group_of: Array = group_of, victim: Callable[[object], int] = victim) -> list[int]:
            parts = [(group, tuple(word for word in text if group_of[word] == group)) for group in range(groups)]
            votes = [victim(part) for part in parts]
            return [votes.count(label) for label in range(classes)]

        text = tuple(rng.integers(0, vocabulary, int(rng.integers(3, 6))).tolist())
        before = counts(text)
        winner = before.index(max(before))
        radius = partition_radius(before, winner)
        assert radius is not None
        useful += radius > 0
        for other in ball(text, min(radius, 2), vocabulary, substitution=2):
            after = counts(other)
            assert after.index(max(after)) == winner
            attacked += 1
    assert useful > 60
    assert attacked > 10_000


def parts_of(text: Words) -> Iterator[Words]:
    for size in range(len(text) + 1):
        yield from combinations(text, size)


def longest_common(first: Words, second: Words) -> int:
    row = [0] * (len(second) + 1)
    for word in first:
        above = row
        row = [0]
        for place, other in enumerate(second):
            row.append(above[place] + 1 if word == other else max(row[-1], above[place + 1]))
    return row[-1]


@pytest.mark.parametrize("rule", ["majority", "gap"])
@pytest.mark.parametrize("worst_case", [False, True])
def test_deletion_smoothing(rule: Rule, worst_case: bool) -> None:
    """Each word stays with chance 1/8, exact probabilities, all edits of cost 1 and 2; the edit bound pair by pair."""
    rng, vocabulary, classes, chance = np.random.default_rng(5 + worst_case), 3, 3, 0.125
    losses, attacked, radii, equal = deletion_losses(chance, 2), 0, [], 0
    for _ in range(60):
        text = tuple(rng.integers(0, vocabulary - 1, int(rng.integers(2, 5))).tolist())
        answer, own = random_votes(rng, classes, rng.choice([0.0, 0.2, 0.5])), set(parts_of(text))

        @cache
        def shares(
            other: Words, answer: Callable[[object], int] = answer, own: set[Words] = own
        ) -> tuple[Fraction, ...]:
            weights = [0] * classes
            for part in parts_of(other):
                label = 1 if worst_case and part not in own else answer(part)
                weights[label] += 7 ** (len(other) - len(part))
            return tuple(Fraction(weight, 8 ** len(other)) for weight in weights)

        before = shares(text)
        chosen = before.index(max(before))
        margin = before[chosen] - (0 if rule == "majority" else max(before[:chosen] + before[chosen + 1 :]))
        radius = largest_radius(margin, losses, rule)
        radii.append(rank(radius))
        near = {other: cost for cost in (2, 1, 0) for other in ball(text, cost, vocabulary, substitution=1)}
        inserted = insertions_radius(before[chosen], chance, 2)
        for other, cost in near.items():
            after = shares(other)
            common = longest_common(text, other)
            bound = edit_bound(before[chosen], chance, len(text) - common, len(other) - common)
            assert after[chosen] >= bound
            equal += cost > 0 and after[chosen] == bound > 0
            wins = all(after[chosen] > share for label, share in enumerate(after) if label != chosen)
            if cost <= rank(radius):
                assert wins
            if common == len(text) and cost <= rank(inserted):
                assert wins
            attacked += 1
    assert attacked > 5000
    assert {0, 1, 2} <= set(radii), "some of everything"
    assert equal > 0 or not worst_case, "the bound is reached"


@pytest.mark.parametrize("worst_case", [False, True])
def test_synonym_smoothing(worst_case: bool) -> None:
    """Sets of three of seven words around a circle; every text of synonyms attacks, probabilities are exact."""
    rng, size, around, classes = np.random.default_rng(8), 3, 7, 3
    sets = [{(word + step) % around for step in range(-1, 2)} for word in range(around)]
    overlap = [min(Fraction(len(sets[word] & sets[other]), size) for other in sets[word]) for word in range(around)]
    assert set(overlap) == {Fraction(2, 3)}
    useful = attacked = 0
    for _ in range(150):
        text = tuple(rng.integers(0, around, 3).tolist())
        answer = random_votes(rng, classes, rng.choice([0.0, 0.1, 0.3, 0.5]))
        own = set(product(*(sorted(sets[word]) for word in text)))

        @cache
        def counts(other: Words, answer: Callable[[object], int] = answer, own: set[Words] = own) -> list[int]:
            drawn = product(*(sorted(sets[word]) for word in other))
            votes = [1 if worst_case and words not in own else answer(words) for words in drawn]
            return [votes.count(label) for label in range(classes)]

        before = counts(text)
        chosen = before.index(max(before))
        losses = synonym_losses([overlap[word] for word in text])
        total = size ** len(text)
        majority = largest_radius(Fraction(before[chosen], total), losses, "majority")
        second = max(before[:chosen] + before[chosen + 1 :])
        radius = largest_radius(Fraction(before[chosen] - second, total), losses, "gap")
        assert rank(majority) <= rank(radius)
        useful += rank(radius) > 0
        for other in product(*(sorted(sets[word]) for word in text)):
            changed = sum(a != b for a, b in zip(text, other, strict=True))
            if changed <= rank(radius):
                after = counts(other)
                assert all(after[chosen] > votes for label, votes in enumerate(after) if label != chosen)
                attacked += 1
    assert useful > 20
    assert attacked > 200


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
