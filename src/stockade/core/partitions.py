"""The words of a text in groups, and texts that lose words at random.

A group sees no other group's words, so what an attacker changes reaches few groups: by position one changed word is in
one group; by hash an inserted or deleted word is in one and a replaced word in two at most. Groups by position depend
on the number of words only, those by hash on each word by itself, never on its neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Literal

import numpy as np

from stockade.core.example import Scores
from stockade.core.masks import Keep

Layout = Literal["blocks", "interleaved"]
"""Whether the words of a group stand next to each other, or as far apart as can be."""


@dataclass(frozen=True, slots=True)
class Votes:
    """How many groups vote for each class; a group without words does not vote."""

    counts: tuple[int, ...]

    @property
    def voters(self) -> int:
        """How many groups vote."""
        return sum(self.counts)

    @property
    def label(self) -> int:
        """The class of most votes, the first of them in a tie."""
        return self.counts.index(max(self.counts))

    def shares(self) -> Scores:
        """The votes as probabilities; only where there is a vote."""
        return Scores(tuple(count / self.voters for count in self.counts))


def position_groups(words: int, groups: int, layout: Layout) -> Keep:
    """So many words in `groups` groups of like size, a row each; as many groups as words where there are fewer."""
    rows = min(groups, words)
    places = np.arange(words)
    group = places % groups if layout == "interleaved" else places * rows // max(1, words)
    keep: Keep = group[None, :] == np.arange(rows)[:, None]
    return keep


def cell_offsets(cells: int, overlap: int) -> tuple[int, ...]:
    """Which of so many cells the first of overlapping groups is made of; those of group i are the same, i further on.

    As far as can be, no two groups share more than one cell: differences of offsets repeat only where they must.
    """
    offsets, differences = [0], {0}
    for strict in (True, False):
        for offset in range(1, cells):
            if len(offsets) == min(overlap, cells):
                break
            new = {(sign * (offset - other)) % cells for other in offsets for sign in (1, -1)}
            if offset not in offsets and not (strict and new & differences):
                offsets.append(offset)
                differences |= new
    return tuple(sorted(offsets))


def overlapping_groups(cells: Keep, offsets: Sequence[int]) -> Keep:
    """Groups of several cells, as many groups as cells: the words of each, from the words of each cell.

    Each cell is in as many groups as a group has cells (finite aggregation).
    """
    groups: Keep = np.logical_or.reduce([np.roll(cells, -offset, axis=0) for offset in offsets])
    return groups


def hash_groups(words: Sequence[str], groups: int, key: str) -> tuple[int, ...]:
    """The group of each word: a keyed hash of its lower-cased form, the same on every machine."""
    # The key is hashed first so that it may have any length.
    keyed = blake2b(key=blake2b(_bytes(key)).digest(), digest_size=8)
    numbers = []
    for word in words:
        hasher = keyed.copy()
        hasher.update(_bytes(word.lower()))
        numbers.append(int.from_bytes(hasher.digest(), "big") % groups)
    return tuple(numbers)


def group_texts(words: Sequence[str], groups_of_words: Sequence[int], groups: int) -> tuple[tuple[str, ...], ...]:
    """The words of each group in their order, the others removed; some groups may have none."""
    texts: list[list[str]] = [[] for _ in range(groups)]
    for word, group in zip(words, groups_of_words, strict=True):
        texts[group].append(word)
    return tuple(map(tuple, texts))


def keep_words(rng: np.random.Generator, words: int, chance: float, copies: int) -> Keep:
    """For each copy the words that stay: each with this chance, whatever becomes of the others."""
    keep: Keep = rng.random((copies, words)) < chance
    return keep


def deletion_chance(words: int, kept_chance: float, mean_kept: float | None = None) -> float:
    """The chance of a word to stay in a text of so many words: such that `mean_kept` stay in the mean, but at most
    `kept_chance`.
    """
    return kept_chance if mean_kept is None or not words else min(kept_chance, mean_kept / words)


def deletion_group_size(chance: float) -> int:
    """How many copies one draw for each word makes: see `keep_antithetic_words`."""
    share = min(chance, 1 - chance)
    return int(1 / share) if share > 0 else 1


def keep_antithetic_words(rng: np.random.Generator, words: int, chance: float, groups: int) -> Keep:
    """Copies in antithetic groups: no two of a group show the same word, so that their mean varies less.

    Each word goes to one copy of the group, or to none: to each copy with the chance to stay. If more words stay than
    go, no two copies lose the same word instead. A copy alone is distributed like one of `keep_words`; the copies of a
    group are negatively dependent (antithetic variates), the groups are independent.

    Parameters
    ----------
    rng : Generator
        Where the draws come from.
    words : int
        How many words the text has.
    chance : float
        The chance of each word to stay.
    groups : int
        How many groups to draw, each of `deletion_group_size` copies.
    """
    share, size = min(chance, 1 - chance), deletion_group_size(chance)
    if not share > 0:
        return np.full((groups, words), chance > 0)
    copy_of_word = np.floor(rng.random((groups, words)) / share)
    chosen: Keep = copy_of_word[:, None, :] == np.arange(size)[None, :, None]
    keep: Keep = chosen if share == chance else ~chosen
    return keep.reshape(groups * size, words)


def _bytes(string: str) -> bytes:
    return string.encode("utf-8", "surrogatepass")
