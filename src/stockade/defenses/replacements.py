"""The words that may stand for another: its nearest neighbours of the same part of speech."""

from __future__ import annotations

from functools import lru_cache

from stockade.core.files import FileState, file_state
from stockade.core.text import is_single_word
from stockade.lexicon import Neighbours, load_neighbours, load_tagger, read_neighbours, use_neighbours

NEAREST = 100
"""How many neighbours are looked at."""


def neighbour_table(path: str | None) -> Neighbours:
    """The table of a file, else the package's own: a defense does not change with the table an attacker was given."""
    if path is not None:
        return _table_of(path, file_state(path))
    with use_neighbours(None):
        return load_neighbours()


def table_resources(path: str | None) -> dict[str, str]:
    """What is in a table of one's own, for the fingerprint of a defense; nothing for the package's."""
    return {} if path is None else {"neighbours": neighbour_table(path).fingerprint()}


@lru_cache(maxsize=2)
def _table_of(path: str, _state: FileState | None) -> Neighbours:
    return read_neighbours(path)


@lru_cache(maxsize=1 << 15)
def replacements(table: Neighbours, word: str, count: int, same_pos: bool) -> tuple[str, ...]:
    """The first `count` of the word's nearest neighbours, in lower case; with `same_pos` of those that have its Penn
    tag when both are tagged alone.
    """
    near = [one.word for one in table.neighbours(word, count=NEAREST) if is_single_word(one.word)]
    if same_pos and near:
        own, *tags = load_tagger().tag_candidates([word], 0, [word, *near])
        near = [candidate for candidate, tag in zip(near, tags, strict=True) if tag == own]
    return tuple(near[:count])
