"""Copies of a text whose words are random mixtures with words of like meaning, as hull asks a model about them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from stockade.core.protocols import MixedCopies, WordVocabulary
from stockade.core.text import Text
from stockade.lexicon import Neighbours


@dataclass(frozen=True, slots=True, eq=False)
class WordHulls:
    """The words of a model's vocabulary and, in the rows of `entries`, each with its neighbours, by number. What is
    left of a row repeats the word itself.
    """

    numbers: Mapping[str, int]
    entries: NDArray[np.int64]
    cased: bool

    def number_of(self, word: str) -> int | None:
        """The number of a word that has neighbours."""
        number = self.numbers.get(word if self.cased else word.lower())
        return None if number is None or self.entries[number, 1] == number else number

    def drawn(self, text: Text, concentration: float, copies: int, rng: np.random.Generator) -> MixedCopies | None:
        """Copies with every word that has neighbours mixed, by weights of the Dirichlet law; None if no word has."""
        from stockade.defenses.adversarial.dirichlet import dirichlet_scores

        found = {index: number for index, word in enumerate(text.words) if (number := self.number_of(word)) is not None}
        if not found:
            return None
        entries = self.entries[list(found.values())]
        columns = entries != entries[:, :1]
        columns[:, 0] = True
        scores = np.where(columns, dirichlet_scores(rng, concentration, (copies, *entries.shape)), -np.inf)
        shares = np.exp(scores - scores.max(2, keepdims=True))
        weights = (shares / shares.sum(2, keepdims=True)).astype(np.float32)
        return MixedCopies(text, tuple(found), entries, weights)


@lru_cache(maxsize=4)
def word_hulls(vocabulary: WordVocabulary, table: Neighbours, count: int, min_cosine: float) -> WordHulls:
    """The hulls of a vocabulary's words: the same neighbours as in training."""
    from stockade.defenses.adversarial.vocabulary import neighbour_rows

    words = dict(enumerate(vocabulary.words))
    entries = neighbour_rows(words, len(words), table, count, min_cosine)
    cased = any(word != word.lower() for word in vocabulary.words)
    return WordHulls({word: number for number, word in words.items()}, entries, cased)
