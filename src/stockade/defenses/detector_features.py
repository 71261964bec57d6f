"""Features of a detector: the numbers that tell an attacked text from a clean one.

disagreement  the share of masked copies whose class is not that of the text
fall          how much less probable the text's class is in the mean of the copies
masked-margin how far the first class is ahead of the second in the mean of the copies
surprise-mean, surprise-max, surprise-top
              how unexpected a masked LM finds the words: all, the most unexpected, the upper tenth
frequency-shift
              how much less probable the class is when rare words become frequent synonyms (as in Mozes et al. 2021,
              Frequency-Guided Word Substitutions)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stockade.core.example import Scores
from stockade.core.masks import draw_masks, kept_words
from stockade.core.text import Text
from stockade.engine.requests import Masked, Score, Surprisal

MASKING = ("disagreement", "fall", "masked-margin")
SURPRISE = ("surprise-mean", "surprise-max", "surprise-top")
FREQUENCY = ("frequency-shift",)
FEATURES = (*MASKING, *SURPRISE, *FREQUENCY)


@dataclass(frozen=True, slots=True)
class Evidence:
    """The model's answers to a text and to its masked copies, and the numbers made from them."""

    plain: Scores
    rows: NDArray[np.float64]
    numbers: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceReader:
    """Asks the model, and the masked LM where a number needs it, about a text.

    The fields are those of a `Detector`; `mask` is what hides a word from a black box.
    """

    features: Sequence[str]
    rate: float
    kept: int
    copies: int
    rare: int
    counts: Mapping[str, int]
    mask: str = "[MASK]"

    async def read(self, text: Text, rng: np.random.Generator) -> Evidence:
        plain = (await Score([text]))[0]
        words = str(text).split()
        rows = np.array([plain.probabilities])
        if words:
            keep = draw_masks(rng, len(words), kept_words(len(words), self.rate, self.kept), self.copies)
            rows = await Masked(words, text.premise, keep, self.mask)
        numbers = dict(zip(MASKING, _of_copies(plain, rows), strict=True))
        if set(SURPRISE) & set(self.features):
            numbers |= zip(SURPRISE, _of_surprise(await Surprisal(tuple(words)) if words else ()), strict=True)
        if set(FREQUENCY) & set(self.features):
            frequent = (await Score([self.frequent(text)]))[0]
            numbers["frequency-shift"] = plain.probability(plain.label) - frequent.probability(plain.label)
        return Evidence(plain, rows, tuple(numbers[name] for name in self.features))

    def frequent(self, text: Text) -> Text:
        """The text with the most frequent synonym in place of each rare word that has a more frequent one."""
        from stockade.lexicon.wordnet import load_wordnet

        swaps = {}
        for index, word in enumerate(text.words):
            count = self.counts.get(word.lower(), 0)
            if count > self.rare:
                continue
            synonyms = [(self.counts.get(synonym.lower(), 0), synonym) for synonym in load_wordnet().synonyms(word)]
            best = max(synonyms, key=lambda pair: pair[0], default=(0, word))  # the first of equals, in WordNet's order
            if best[0] > count:
                swaps[index] = best[1]
        return text.replace_all(swaps) if swaps else text


def _of_copies(plain: Scores, rows: NDArray[np.float64]) -> tuple[float, float, float]:
    mean = rows.mean(0)
    first, second = sorted(mean.tolist(), reverse=True)[:2]
    disagreement = float((rows.argmax(1) != plain.label).mean())
    return disagreement, plain.probability(plain.label) - float(mean[plain.label]), first - second


def _of_surprise(values: Sequence[float]) -> tuple[float, float, float]:
    if not values:
        return 0.0, 0.0, 0.0
    ordered = sorted(values, reverse=True)
    upper = ordered[: max(1, -(-len(ordered) // 10))]
    return sum(values) / len(values), ordered[0], sum(upper) / len(upper)
