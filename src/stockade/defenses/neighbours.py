"""Words of like meaning, from a table of neighbours: for a word, and for the tokens of a model's vocabulary."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stockade.core.errors import ModelError
from stockade.core.files import FileState, file_state
from stockade.core.text import is_single_word
from stockade.lexicon.neighbours import Neighbours, load_neighbours, read_neighbours, use_neighbours
from stockade.lexicon.pos import load_tagger

NEAREST = 100
"""How many neighbours of a word are considered."""
Tokens = NDArray[np.int64]
_BLOCK = 512


def neighbour_table(path: str | None) -> Neighbours:
    """The table in a file, else the package's: a defense does not change with the table that an attacker uses."""
    if path is not None:
        return _table_of(path, file_state(path))
    with use_neighbours(None):
        return load_neighbours()


def table_resources(path: str | None) -> dict[str, str]:
    """The fingerprint of a table in a file, as a defense's `resources`; empty for the package's table."""
    return {} if path is None else {"neighbours": neighbour_table(path).fingerprint()}


@lru_cache(maxsize=2)
def _table_of(path: str, _state: FileState | None) -> Neighbours:
    return read_neighbours(path)


@lru_cache(maxsize=1 << 15)
def replacements(table: Neighbours, word: str, count: int, same_pos: bool) -> tuple[str, ...]:
    """The first `count` of a word's nearest neighbours, in lower case.

    With `same_pos` only those whose most frequent Penn tag is the word's.
    """
    near = [neighbour.word for neighbour in table.neighbours(word, count=NEAREST) if is_single_word(neighbour.word)]
    if same_pos and near:
        tagger = load_tagger()
        tag = tagger.tag_alone(word)
        near = [candidate for candidate in near if tagger.tag_alone(candidate) == tag]
    return tuple(near[:count])


def word_tokens(tokenizer: Any) -> dict[int, str]:
    """The tokens of a vocabulary that are whole words of letters only, by number."""
    from stockade.models.word_tokens import whole_words  # needs torch, which defenses only import when they train

    words = {
        number: word
        for number, (word, whole) in enumerate(whole_words(tokenizer))
        if whole and word.isalpha() and is_single_word(word)
    }
    if all(len(word) == 1 for word in words.values()):
        raise ModelError(
            "The model's vocabulary has no whole words (it reads characters or bytes), so no token can stand for "
            "another word; train a model that reads words or word pieces."
        )
    return words


def neighbour_tokens(tokenizer: Any, table: Neighbours, count: int, min_cosine: float) -> Tokens:
    """For each token a row: itself, then at most `count` tokens of like meaning, nearest first.

    The rest of a row repeats the token itself. A token is only near to tokens of its own case: lower-case ones, or ones
    with a capital first letter.
    """
    return neighbour_rows(word_tokens(tokenizer), len(tokenizer), table, count, min_cosine)


def neighbour_rows(words: Mapping[int, str], size: int, table: Neighbours, count: int, min_cosine: float) -> Tokens:
    """The same for `words` with their numbers, which are below `size`."""
    rows = np.repeat(np.arange(size, dtype=np.int64)[:, None], count + 1, axis=1)
    place = {word: row for row, word in enumerate(table.words)}
    for cased in (str.islower, str.istitle):
        in_table = {
            place[word.lower()]: number for number, word in words.items() if cased(word) and word.lower() in place
        }
        _fill(rows, in_table, table, count, min_cosine)
    return rows


def _fill(rows: Tokens, in_table: Mapping[int, int], table: Neighbours, count: int, min_cosine: float) -> None:
    """Write the neighbours of tokens (place in the table → token) into their rows."""
    places = np.array(sorted(in_table), dtype=np.int64)
    if not len(places):
        return
    tokens = np.array([in_table[place] for place in places.tolist()], dtype=np.int64)
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
        chosen = rank < count
        rows[tokens[start + word[chosen]], 1 + rank[chosen]] = tokens[near[chosen]]
