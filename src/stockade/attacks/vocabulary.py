"""The words that an attack may write anywhere: the victim's own vocabulary, or the lexicon's where it shows none."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from stockade.core.protocols import WordVocabulary
from stockade.core.text import is_single_word
from stockade.engine.requests import Vocabulary
from stockade.lexicon.neighbours import Neighbours, load_neighbours


async def known_words() -> WordVocabulary:
    """The victim's words; those of the neighbour table, without vectors, for a black box or a model of characters."""
    shown = await Vocabulary(required=False)
    return shown if shown.words else _of_table(load_neighbours())


@lru_cache(maxsize=2)
def _of_table(table: Neighbours) -> WordVocabulary:
    words = tuple(word for word in table.words if word.isalpha() and is_single_word(word))
    return WordVocabulary(words, np.zeros((len(words), 0), dtype=np.float32))
