"""The tokens of a vocabulary that are whole words, and which of them have like meanings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stockade.core.errors import ModelError
from stockade.core.text import is_single_word
from stockade.lexicon import Neighbours
from stockade.models.vocabulary import whole_words

Tokens = NDArray[np.int64]
_BLOCK = 512


def word_tokens(tokenizer: Any) -> dict[int, str]:
    """The tokens that are whole words of letters only, by number."""
    found = {
        number: word
        for number, (word, whole) in enumerate(whole_words(tokenizer))
        if whole and word.isalpha() and is_single_word(word)
    }
    if all(len(word) == 1 for word in found.values()):
        raise ModelError(
            "The model's vocabulary has no whole words (it reads characters or bytes), so no token can stand for "
            "another word; train a model that reads words or word pieces."
        )
    return found


def neighbour_tokens(tokenizer: Any, table: Neighbours, count: int, min_cosine: float) -> Tokens:
    """For each token a row: itself, then at most `count` tokens of like meaning, nearest first. What is left of the row
    repeats the token itself.

    A token is only near to tokens of its own case: lower-case ones, or ones with a capital first letter.
    """
    return neighbour_rows(word_tokens(tokenizer), len(tokenizer), table, count, min_cosine)


def neighbour_rows(words: Mapping[int, str], size: int, table: Neighbours, count: int, min_cosine: float) -> Tokens:
    """The same for `words` with their numbers, which are below `size`."""
    rows = np.repeat(np.arange(size, dtype=np.int64)[:, None], count + 1, axis=1)
    place = {word: row for row, word in enumerate(table.words)}
    for cased in (str.islower, str.istitle):
        known = {place[word.lower()]: number for number, word in words.items() if cased(word) and word.lower() in place}
        _fill(rows, known, table, count, min_cosine)
    return rows


def _fill(rows: Tokens, known: Mapping[int, int], table: Neighbours, count: int, min_cosine: float) -> None:
    """Write the neighbours of the tokens `known` (place in the table → token) into their rows."""
    places = np.array(sorted(known), dtype=np.int64)
    if not len(places):
        return
    tokens = np.array([known[at] for at in places.tolist()], dtype=np.int64)
    vectors = table.matrix[places]
    lengths = np.sqrt(np.square(vectors).sum(1, dtype=np.float64))
    for start in range(0, len(places), _BLOCK):
        block = slice(start, start + _BLOCK)
        cosines = (vectors[block] @ vectors.T) / lengths / lengths[block, None]
        word, near = np.nonzero(cosines >= min_cosine)
        order = np.lexsort((near, -cosines[word, near], word))
        order = order[(near != word + start)[order]]
        word, near = word[order], near[order]
        rank = np.arange(len(word)) - np.searchsorted(word, word)
        wanted = rank < count
        rows[tokens[start + word[wanted]], 1 + rank[wanted]] = tokens[near[wanted]]
