"""NLTK's averaged perceptron tagger on single words, from its published weights: a second opinion for tests."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import pytest

NLTK = Path(__file__).parents[3] / "shared" / "data" / "nltk_bits" / "averaged_perceptron_tagger.json.gz"
needs_nltk = pytest.mark.skipif(not NLTK.exists(), reason="NLTK's tagger is not on this machine")


class NltkTagger:
    """Tags a lower-case word that stands alone, as `nltk.pos_tag([word])` does."""

    @cached_property
    def _model(self) -> dict[str, Any]:
        with gzip.open(NLTK, "rt", encoding="utf-8") as file:
            content: dict[str, Any] = json.load(file)
        return content

    @property
    def dictionary(self) -> dict[str, str]:
        """Words that have a single tag nearly everywhere in the Wall Street Journal."""
        words: dict[str, str] = self._model["tagdict"]
        return {word: tag for word, tag in words.items() if word.isalpha() and word.islower()}

    def tag(self, word: str) -> str:
        """The dictionary's tag; for other words the class with the largest sum of weights."""
        if word in self.dictionary:
            return self.dictionary[word]
        scores: Counter[str] = Counter()
        for feature in _features(word):
            scores.update(self._model["weights"].get(feature, {}))
        return max(self._model["classes"], key=lambda tag: (scores[tag], tag))


def _features(word: str) -> tuple[str, ...]:
    """What the tagger sees of a sentence of one word: the word, and the edges on both sides."""
    return (
        "bias",
        f"i word {word}",
        f"i suffix {word[-3:]}",
        f"i pref1 {word[0]}",
        "i-1 tag -START-",
        "i-2 tag -START2-",
        "i tag+i-2 tag -START- -START2-",
        f"i-1 tag+i word -START- {word}",
        "i-1 word -START-",
        "i-1 suffix RT-",
        "i-2 word -START2-",
        "i+1 word -END-",
        "i+1 suffix ND-",
        "i+2 word -END2-",
    )


@lru_cache(maxsize=1)
def nltk_tagger() -> NltkTagger:
    """The tagger, read once."""
    return NltkTagger()
