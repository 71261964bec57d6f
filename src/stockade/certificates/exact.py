"""Certificates when every masked copy of a text has been asked: no sampling, no alpha, and the sharpest criteria.

Let D be the set of changed words and a_j(D) the share of copies that hide all of D and vote for j; these copies are
the same before and after. The others, a share Δ_d, may vote for anything. So for every text that differs in D

    p_c(x') >= a_c(D)    and    p_j(x') <= a_j(D) + Δ_d

and a classifier that agrees on all copies of x attains both: let every altered copy vote j. A larger D turns copies
that stay into copies that may do the worst, so that sets of exactly d words are enough.

    exact       min over D and j of a_c(D) - a_j(D) > Δ_d      necessary and sufficient, given the votes
    coverage    min over D of a_c(D) > 1/2                     weaker, needs no second class

In terms of copies that show a word of D, with weights 1[c] - 1[j] + 1 (exact) or 1[c] (coverage): the weight of the
copies that any d words can touch must stay below the lead. That is weighted maximum coverage, hard in general. Texts
of few words are solved for all sets at once; else all sets of d words are tried if they are not too many; else upper
bounds take the place of the maximum, which can only make a radius smaller.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, islice

import numpy as np
from numpy.typing import NDArray

from stockade.core.errors import OptionError
from stockade.core.masks import Keep, masks_by_number

Weights = NDArray[np.int64]

_LATTICE_WORDS = 18
"""Up to so many words all subsets are solved at once (2^words sums)."""
_PAIRS = 20_000_000
"""At most so many pairs of a set of words and a copy are tried for one d."""


@dataclass(frozen=True, slots=True)
class VoteTable:
    """The vote of every copy that keeps `kept` of the words, in the order of `itertools.combinations`."""

    words: int
    kept: int
    votes: tuple[int, ...]
    classes: int

    def __post_init__(self) -> None:
        if not 0 <= self.kept <= self.words or len(self.votes) != math.comb(self.words, self.kept):
            raise OptionError(
                f"A table of all copies that keep {self.kept} of {self.words} words needs one vote for each "
                f"(found: {len(self.votes)})."
            )
        if self.classes < 2 or not all(0 <= vote < self.classes for vote in self.votes):
            raise OptionError(
                f"Votes must be for one of at least two classes, numbered from 0 (found: {self.classes})."
            )

    @property
    def counts(self) -> tuple[int, ...]:
        """Votes by class."""
        return tuple(np.bincount(np.asarray(self.votes, dtype=np.int64), minlength=self.classes).tolist())

    @property
    def shares(self) -> tuple[Fraction, ...]:
        """p_j, exactly."""
        return tuple(Fraction(count, len(self.votes)) for count in self.counts)


def mask_array(words: int, kept: int) -> Keep:
    """All choices of `kept` words: a row each, in the order of `itertools.combinations`."""
    return masks_by_number(np.arange(math.comb(words, kept)), words, kept)


def exact_radius(table: VoteTable, chosen: int) -> int | None:
    """The largest d for which no attacker can keep `chosen` from having most votes alone; None if it has not got them.

    Where the races against single classes are only bounded, that for half of the votes may be known better.
    """
    votes, counts = _checked(table, chosen), table.counts
    for_chosen = (votes == chosen).astype(np.int64)
    rivals = [label for label in range(table.classes) if label != chosen]
    masks = mask_array(table.words, table.kept)
    races = [_Race(masks, for_chosen - (votes == rival) + 1, counts[chosen] - counts[rival]) for rival in rivals]
    half = _Race(masks, 2 * for_chosen, 2 * counts[chosen] - len(votes))
    return _last(table.words, lambda changes: all(race.safe(changes) for race in races) or half.safe(changes))


def coverage_radius(table: VoteTable, chosen: int) -> int | None:
    """The largest d for which no attacker can push `chosen` down to half of the votes; None if it has no more now."""
    votes = _checked(table, chosen)
    for_chosen = (votes == chosen).astype(np.int64)
    half = _Race(mask_array(table.words, table.kept), 2 * for_chosen, 2 * table.counts[chosen] - len(votes))
    return _last(table.words, half.safe)


class _Race:
    """Whether the weight of the copies that d words can touch stays below a lead."""

    def __init__(self, masks: Keep, weights: Weights, lead: int) -> None:
        self.masks, self.weights, self.lead = masks, weights, lead
        if masks.shape[1] <= _LATTICE_WORDS:
            self.least = self.most = _most_touched_of_each_size(masks, weights)
        else:
            self.least, self.most = _greedy_bounds(masks, weights)

    def safe(self, changes: int) -> bool:
        if self.most[changes] < self.lead:
            return True
        if self.least[changes] >= self.lead:
            return False
        copies, words = self.masks.shape
        if math.comb(words, changes) * copies > _PAIRS:
            return False
        return _most_touched(self.masks, self.weights, changes) < self.lead


def _last(words: int, safe: Callable[[int], bool]) -> int | None:
    radius = None
    for changes in range(words + 1):
        if not safe(changes):
            break
        radius = changes
    return radius


def _most_touched_of_each_size(masks: Keep, weights: Weights) -> Weights:
    """For d = 0 … words the largest weight that d words touch, by sums over all subsets of the words."""
    words = masks.shape[1]
    inside = np.zeros(2**words, dtype=np.int64)
    np.add.at(inside, masks @ (1 << np.arange(words)), weights)
    sizes = np.zeros(1, dtype=np.int64)
    for word in range(words):
        pairs = inside.reshape(-1, 2, 2**word)
        pairs[:, 1] += pairs[:, 0]
        sizes = np.concatenate([sizes, sizes + 1])
    # `inside` now holds, for each set of words, the weight of the copies that show no other: the untouched ones.
    return np.array([weights.sum() - inside[sizes == words - changes].min() for changes in range(words + 1)])


def _most_touched(masks: Keep, weights: Weights, changes: int) -> int:
    """The largest weight that so many words touch, by trying all sets of them."""
    copies, words = masks.shape
    shown, best = masks.T.astype(np.float32), 0
    for sets in _batches(words, changes, max(1, 2_000_000 // copies)):
        chosen = np.zeros((len(sets), words), dtype=np.float32)
        np.put_along_axis(chosen, sets, 1, axis=1)
        best = max(best, int((((chosen @ shown) > 0) @ weights).max()))
    return best


def _batches(words: int, size: int, most: int) -> Iterator[NDArray[np.int64]]:
    every = combinations(range(words), size)
    while batch := list(islice(every, most)):
        yield np.array(batch, dtype=np.int64).reshape(len(batch), size)


def _greedy_bounds(masks: Keep, weights: Weights) -> tuple[Weights, Weights]:
    """For d = 0 … words what the greedy choice of d words touches, and a limit to what any d words can touch.

    The weight touched is submodular in the set: any d words touch at most what a set S does plus the d largest gains
    on top of S, for every S; the greedy prefixes are tried. And d words touch a known number of copies, which weigh at
    most as much as that many of the heaviest.
    """
    copies, words = masks.shape
    kept = int(masks[0].sum())
    heaviest = np.concatenate([[0], np.cumsum(np.sort(weights)[::-1])])
    most = np.array([heaviest[copies - math.comb(words - changes, kept)] for changes in range(words + 1)])
    untouched, least = weights.copy(), []
    for _ in range(words + 1):
        gains = untouched @ masks
        covered = weights.sum() - untouched.sum()
        least.append(covered)
        most = np.minimum(most, covered + np.concatenate([[0], np.cumsum(np.sort(gains)[::-1])]))
        untouched[masks[:, int(gains.argmax())]] = 0
    return np.array(least), most


def _checked(table: VoteTable, chosen: int) -> Weights:
    if not 0 <= chosen < table.classes:
        raise OptionError(f"The chosen class must be one of {table.classes}, numbered from 0 (found: {chosen}).")
    return np.asarray(table.votes, dtype=np.int64)
