"""Smoothed toys: models whose smoothed answers can be computed by trying every copy."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, product
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from stockade.core.example import Scores
from stockade.core.masks import Keep, kept_words, masks_by_number
from stockade.core.protocols import Classifier
from stockade.core.text import Text
from stockade.defenses.combine import combine
from stockade.engine.requests import Masked

Words = tuple[int, ...]
Array = NDArray[np.int64]

ROWS = [
    ("a good and rather moving film", "positive"),
    ("a bad and rather dull film", "negative"),
    ("good fun for all of us", "positive"),
    ("bad from the very first scene", "negative"),
    ("neither good nor bad but long", "negative"),
    ("good", "positive"),
]


@dataclass(frozen=True, slots=True)
class EveryMask:
    """The exact smoothed classifier: every mask of a text is asked, and each has one vote."""

    innermost: ClassVar[bool] = True
    randomised: ClassVar[bool] = False
    rate: float = 0.7

    def check(self, inner: Classifier) -> None:
        """Any model will do."""

    async def answer(self, text: Text, rng: np.random.Generator) -> Scores:
        words = str(text).split()
        return combine(await Masked(words, text.premise, every_mask(len(words), self.rate)), "vote")


def every_mask(words: int, rate: float) -> Keep:
    kept = kept_words(words, rate)
    number = len(list(combinations(range(words), kept)))
    return masks_by_number(np.arange(number), words, kept)


def every_change(words: list[str], changes: int, vocabulary: list[str]) -> list[str]:
    """All texts with at most so many words replaced by words of a vocabulary."""
    texts = []
    for places in combinations(range(len(words)), changes):
        for chosen in product(vocabulary, repeat=changes):
            other = list(words)
            for place, word in zip(places, chosen, strict=True):
                other[place] = word
            texts.append(" ".join(other))
    return texts


def skewed(rng: np.random.Generator, size: int, classes: int, errors: float) -> Array:
    return np.where(rng.random(size) < errors, rng.integers(0, classes, size), 0)


def rank(radius: int | None) -> int:
    return -1 if radius is None else radius
