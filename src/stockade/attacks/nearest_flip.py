"""Finds, among all words of a vocabulary, the one that fools the victim with the least move of its sentence vector.

The nearest such word is seldom among the nearest words: most near words fool nobody. So asking about words in order of
distance asks about thousands. Instead both numbers, how far the sentence vector moves and by what margin the victim is
fooled, are estimated for every word from its features, which are its input vector and the victim's sentence vector of
the word alone (in pairs, the input vector only):

1. A random sample of words is measured: the victim is asked about each.
2. Kernel ridge regression (a Gaussian kernel on the features) carries both numbers over to all words; its
   leave-one-out errors on the sample, times `caution`, say how far it may be off.
3. Words that may fool the victim are measured by rising estimated distance, until none that is left can be nearer than
   the nearest so far. Once as many of them are measured as the sample has words, the estimate is made anew from both:
   the new ones are those it must be right about.
4. Only if none has fooled the victim, all other words follow, by falling estimated margin: the whole vocabulary is
   within reach.

`exhaustive` asks about every word instead; so does a vocabulary without vectors, or one not much larger than the
sample.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from random import Random

import numpy as np
from numpy.typing import NDArray

from stockade.attacks.word_attack import WordAttack
from stockade.core.example import Example, Scores
from stockade.core.protocols import WordVocabulary
from stockade.core.records import Outcome
from stockade.core.text import Text, match_case
from stockade.engine.requests import Fallback, Represent, WordFeatures

Numbers = NDArray[np.float64]
_AT_ONCE = 128
_RIDGE = 0.05
_SURE = 0.99
"""The share of leave-one-out errors that the slack must cover before `caution` multiplies it."""


@dataclass(slots=True, kw_only=True)
class NearestFlip:
    """A scan of a vocabulary: the words measured so far, and the nearest that fooled the victim.

    Parameters
    ----------
    attack : WordAttack
        Whose constraint the candidates must hold.
    example : Example
        The text under attack.
    index : int
        The word to replace.
    vocabulary : WordVocabulary
        The words that may take its place.
    sample, exhaustive, caution
        As for `OneWord`.
    """

    attack: WordAttack
    example: Example
    index: int
    vocabulary: WordVocabulary
    sample: int
    exhaustive: bool
    caution: float
    best: Text | None = None
    best_distance: float = math.inf
    _measured: dict[int, tuple[float, float]] = field(default_factory=dict)
    _home: NDArray[np.float32] = field(default_factory=lambda: np.zeros(0, dtype=np.float32))
    _features: NDArray[np.float32] = field(default_factory=lambda: np.zeros((0, 0), dtype=np.float32))

    async def search(self, rng: Random) -> Outcome:
        self._home = (await Represent([self.example.text], probe=True))[0][1]
        replaced = self.example.text.words[self.index].lower()
        words = [number for number, word in enumerate(self.vocabulary.words) if word.lower() != replaced]
        if self.exhaustive or len(words) <= 2 * self.sample or not self.vocabulary.vectors.shape[1]:
            await self._measure(words)
        else:
            alone = self.example.text.premise is None  # a word alone says little about a pair
            self._features = await WordFeatures(self.vocabulary) if alone else self.vocabulary.vectors
            await self._measure(rng.sample(words, self.sample))
            await self._measure_the_likely(words)
        if self.best is not None:
            return Outcome.found(self.best)
        return Outcome.failed(f'no word of the vocabulary in place of "{replaced}" fools it')

    async def _measure_the_likely(self, words: list[int]) -> None:
        await self._follow(self._estimate(), words, self.sample)
        estimate = self._estimate()
        await self._follow(estimate, words, len(words))
        numbers = np.array(self._unmeasured(words), dtype=np.intp)
        rest: list[int] = numbers[np.argsort(-estimate.margins[numbers], kind="stable")].tolist()
        for start in range(0, len(rest), _AT_ONCE):
            if self.best is not None:
                break
            await self._measure(rest[start : start + _AT_ONCE])

    def _estimate(self) -> Estimate:
        return Estimate.fitted(self._features, self._measured, self.caution)

    def _unmeasured(self, words: list[int]) -> list[int]:
        return [number for number in words if number not in self._measured]

    async def _follow(self, estimate: Estimate, words: list[int], most: int) -> None:
        """Ask about at most so many words that may fool the victim and be nearer than the best, nearest first."""
        numbers = np.array(self._unmeasured(words), dtype=np.intp)
        numbers = numbers[estimate.margins[numbers] + estimate.margin_slack > 0]
        likely: list[int] = numbers[np.argsort(estimate.distances[numbers], kind="stable")].tolist()
        for start in range(0, min(most, len(likely)), _AT_ONCE):
            if estimate.least_distance(likely[start]) > self.best_distance:
                break
            await self._measure(likely[start : min(most, start + _AT_ONCE)])

    async def _measure(self, numbers: list[int]) -> None:
        """Ask the victim about these words and remember the nearest that fools it."""
        for start in range(0, len(numbers), _AT_ONCE):
            group = numbers[start : start + _AT_ONCE]
            texts = {self._written(number): number for number in group}
            allowed = await self.attack.allowed(list(texts), self.example.text, self.index)
            answers = await Represent(allowed) if allowed else []
            for text, (scores, vector) in zip(allowed, answers, strict=True):
                if not scores.answered:
                    continue
                distance = round(float(np.abs(vector - self._home).sum()), 4)
                if text in texts:
                    self._measured[texts[text]] = (distance, margin(self.example, scores))
                if self.example.fooled(scores) and distance < self.best_distance:
                    self.best, self.best_distance = text, distance
            if self.best is not None:
                await Fallback(Outcome.found(self.best))

    def _written(self, number: int) -> Text:
        text = self.example.text
        return text.replace(self.index, match_case(self.vocabulary.words[number], text.words[self.index]))


@dataclass(frozen=True, slots=True)
class Estimate:
    """Distance and margin of every word, with how much lower and how much higher they may well be."""

    distances: Numbers
    margins: Numbers
    distance_slack: float
    margin_slack: float

    def margin_may_be_positive(self, number: int) -> bool:
        return bool(self.margins[number] + self.margin_slack > 0)

    def least_distance(self, number: int) -> float:
        return float(self.distances[number] - self.distance_slack)

    @classmethod
    def fitted(cls, vectors: NDArray[np.float32], measured: dict[int, tuple[float, float]], caution: float) -> Estimate:
        """Kernel ridge regression from the measured words to all words."""
        numbers = np.fromiter(measured, dtype=np.intp)
        values = np.array(list(measured.values()), dtype=np.float64).reshape(-1, 2)
        if len(numbers) == 0:
            nothing = np.zeros(len(vectors))
            return cls(nothing, nothing, math.inf, math.inf)
        kernel = GaussianKernel.over(vectors, numbers)
        mean = values.mean(0)
        inverse = np.linalg.inv(kernel.between(numbers).astype(np.float64) + _RIDGE * np.eye(len(numbers)))
        weights = inverse @ (values - mean)
        small = weights.astype(np.float32)
        predicted = np.concatenate([kernel.between(part) @ small for part in _parts(len(vectors))]).astype(float) + mean
        errors = weights / np.diag(inverse)[:, None]  # leave-one-out: what is true minus what the others predict
        slack = caution * np.maximum(0.0, np.quantile(errors * (-1, 1), _SURE, axis=0))
        return cls(predicted[:, 0], predicted[:, 1], float(slack[0]), float(slack[1]))


@dataclass(frozen=True, slots=True)
class GaussianKernel:
    """Nearness of words to some anchors by their vectors; the scale is the anchors' median squared distance."""

    vectors: NDArray[np.float32]
    lengths: NDArray[np.float32]
    anchors: NDArray[np.intp]
    scale: float

    @classmethod
    def over(cls, vectors: NDArray[np.float32], anchors: NDArray[np.intp]) -> GaussianKernel:
        lengths = np.square(vectors).sum(1)
        raw = cls(vectors, lengths, anchors, 1.0)._squared(anchors)
        return cls(vectors, lengths, anchors, max(2 * float(np.median(raw)), 1e-12))

    def between(self, numbers: NDArray[np.intp]) -> NDArray[np.float32]:
        nearness = self._squared(numbers)
        nearness /= np.float32(-self.scale)
        np.exp(nearness, out=nearness)
        return nearness

    def _squared(self, numbers: NDArray[np.intp]) -> NDArray[np.float32]:
        """Squared distances to the anchors; computed in place, because this is what an estimate costs most."""
        squared: NDArray[np.float32] = self.vectors[numbers] @ self.vectors[self.anchors].T
        squared *= np.float32(-2)
        squared += self.lengths[numbers][:, None]
        squared += self.lengths[self.anchors][None]
        np.maximum(squared, 0.0, out=squared)
        return squared


def margin(example: Example, scores: Scores) -> float:
    """By how much the attacker leads, in logarithms of probabilities: positive where the model is fooled."""
    wanted = example.label if example.target is None else example.target
    level = math.log(max(scores.probabilities[wanted], 1e-300))
    rival = math.log(max(max(p for label, p in enumerate(scores.probabilities) if label != wanted), 1e-300))
    return rival - level if example.target is None else level - rival


def _parts(size: int) -> list[NDArray[np.intp]]:
    """All numbers in parts that keep the kernel small."""
    return [np.arange(start, min(size, start + 4096)) for start in range(0, size, 4096)]
