"""Attackers that insert, delete and replace words, and try everything: no certificate is ever broken.

Victims are random tables over the texts that the base classifier can see, skewed towards class 0 so that there is
something to certify.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache
from itertools import combinations, product

import numpy as np
import pytest

from stockade.certificates.bounds import (
    Rule,
    deletion_losses,
    edit_bound,
    insertion_leads,
    insertions_radius,
    largest_radius,
    partition_radius,
    synonym_losses,
)
from tests.certificates.kit import Array, Words, rank, skewed


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
        inserted = insertions_radius(2 * before[chosen] - 1, insertion_leads(chance, 2))
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
