"""Which words of a text are hidden: how many stay, and which, drawn at random.

One function says how many words are kept, for training, prediction and certificates alike: it depends on the number of
words and the rate only, never on the words.
"""

from __future__ import annotations

from math import comb

import numpy as np
from numpy.typing import NDArray

Keep = NDArray[np.bool_]
"""A row for each copy of a text, a column for each word: whether the word stays."""


def kept_words(words: int, rate: float, minimum: int = 1, maximum: int | None = None) -> int:
    """How many of so many words stay at a mask rate: words - round(rate * words) in Python's rounding, but no more than
    `maximum`, and at least `minimum` (all of a text that has no more).
    """
    kept = words - round(rate * words)
    return min(words, max(minimum, kept if maximum is None else min(kept, maximum)))


def draw_masks(rng: np.random.Generator, words: int, kept: int, copies: int) -> Keep:
    """For each copy `kept` of the words, every choice as likely as any other."""
    return _lowest(rng.random((copies, words)), kept)


def antithetic_group_size(words: int, kept: int) -> int:
    """How many copies one shuffle of the words makes: see `draw_antithetic_masks`.

    Parameters
    ----------
    words, kept : int
        How many words the text has, and how many of them each copy shows.
    """
    block = _block(words, kept)
    return words // block if block else 1


def draw_antithetic_masks(rng: np.random.Generator, words: int, kept: int, groups: int) -> Keep:
    """Masks in antithetic groups: the copies of a group share no visible word, so that their mean varies less.

    For each group the words are shuffled and cut into blocks of `kept` words, until too few are left: a random
    partition of the words. Each copy shows the words of one block; if more words stay than are hidden, each copy hides
    the words of one block instead. A copy alone is distributed like one of `draw_masks`; the copies of a group are
    negatively dependent (antithetic variates), the groups are independent.

    Parameters
    ----------
    rng : Generator
        Where the shuffles come from.
    words, kept : int
        How many words the text has, and how many of them each copy shows.
    groups : int
        How many groups to draw, each of `antithetic_group_size` copies.
    """
    block, size = _block(words, kept), antithetic_group_size(words, kept)
    if not block:
        return np.full((groups, words), kept > 0)
    block_of_word = rng.random((groups, words)).argsort(axis=1).argsort(axis=1) // block
    in_block: Keep = block_of_word[:, None, :] == np.arange(size)[None, :, None]
    keep: Keep = in_block if block == kept else ~in_block
    return keep.reshape(groups * size, words)


def draw_weighted_masks(rng: np.random.Generator, weights: NDArray[np.float64], kept: int, copies: int) -> Keep:
    """For each copy words to hide, drawn one after another without replacement, by weight; `kept` of them stay.

    Words of weight 0 are hidden last. Exponential clocks give the order of such draws: the word whose clock of rate
    `weight` rings first is drawn first.
    """
    words = len(weights)
    clocks = rng.exponential(size=(copies, words)) / np.maximum(weights, 1e-300)
    return ~_lowest(clocks, words - kept)


def masks_by_number(numbers: NDArray[np.int64], words: int, kept: int) -> Keep:
    """The masks with these numbers, in the order in which `itertools.combinations` lists the choices of kept words."""
    keep = np.zeros((len(numbers), words), dtype=np.bool_)
    left, before = np.full(len(numbers), kept), np.array(numbers, dtype=np.int64)
    enough = int(before.max(initial=0)) + 1  # where most words stay there are more ways to go on than an int64 can hold
    for word in range(words):
        missing, which = np.unique(left, return_inverse=True)
        ways = [min(comb(words - word - 1, more - 1), enough) if more else 0 for more in missing.tolist()]
        with_it = np.array(ways, dtype=np.int64)[which]
        keep[:, word] = stays = before < with_it
        before -= np.where(stays, 0, with_it)
        left -= stays
    return keep


def _block(words: int, kept: int) -> int:
    """How many words make a block: those that stay or those that are hidden, whichever are fewer."""
    return min(kept, words - kept)


def _lowest(keys: NDArray[np.float64], count: int) -> Keep:
    """The `count` lowest of each row."""
    chosen = np.zeros(keys.shape, dtype=np.bool_)
    if 0 < count < keys.shape[1]:
        np.put_along_axis(chosen, np.argpartition(keys, count - 1, axis=1)[:, :count], True, axis=1)
    elif count:
        chosen[:] = True
    return chosen
