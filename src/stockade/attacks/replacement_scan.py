"""Finds, among all words of a vocabulary, the one to write in a place of a source sentence.

Success first: of all words with which the translation is what the attacker wants, the one that moves the encoder's
sentence vector least (L1). Else, of the words that bring the translation nearer to it, the one that moves the vector
least or the one that brings it nearest, as the attack wants.

Each word costs a translation, so most are only estimated, as `nearest_flip` does:

1. A random sample of words is measured: translated, and compared with the goal.
2. Kernel ridge regression on the input vectors carries loss and distance over to all words. The words with the smallest
   estimated loss are measured, half of them from a second estimate that has learnt from the first half.
3. After a success, words are measured that may succeed and be nearer, until there are none; without a success, the
   words that are estimated to move the vector least.

`exhaustive` measures every word instead; so does a vocabulary not larger than what would be measured.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from stockade.attacks.misspellings import levenshtein
from stockade.attacks.nearest_flip import Estimate
from stockade.core.attacked_translation import TranslationExample
from stockade.core.protocols import WordVocabulary
from stockade.core.text import Text, match_case
from stockade.engine.translation_requests import Attempt, SourceVectors

_AT_ONCE = 64
_FEW = 32
"""Words after which the estimate is made anew while nearer successes are looked for."""


class Measuring(Protocol):
    """An attack that says how far translations are from what it wants."""

    @property
    def exhaustive(self) -> bool: ...

    @property
    def sample(self) -> int: ...

    @property
    def most(self) -> int: ...

    @property
    def caution(self) -> float: ...

    @property
    def steepest(self) -> bool: ...

    async def attempts(self, example: TranslationExample, texts: Sequence[Text]) -> list[Attempt]:
        """The translations of texts, or of the first of them where the query budget ends, and their losses."""

    async def allowed(self, candidates: Sequence[Text], before: Text, index: int) -> Sequence[Text]:
        """The candidates that hold the user's constraint."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A source that was translated: how far its translation is from the goal, and how far its vector has moved."""

    text: Text
    loss: float
    distance: float
    reached: bool


@dataclass(slots=True, kw_only=True)
class ReplacementScan:
    """A scan of a vocabulary for one place of a source.

    Parameters
    ----------
    attack : Measuring
        What is wanted, and how thoroughly it is looked for.
    example : TranslationExample
        The sentence under attack.
    text : Text
        The source so far.
    index : int
        The word to replace.
    loss : float
        How far the translation of `text` is from the goal.
    vocabulary : WordVocabulary
        The words that may take its place.
    excluded : frozenset of str
        Words that may not, in lower case.
    """

    attack: Measuring
    example: TranslationExample
    text: Text
    index: int
    loss: float
    vocabulary: WordVocabulary
    excluded: frozenset[str] = frozenset()
    cut_short: bool = False
    """Whether the query budget ended before all words were measured."""
    _candidates: dict[int, Candidate] = field(default_factory=dict)
    _home: NDArray[np.float32] = field(default_factory=lambda: np.zeros(0, dtype=np.float32))

    async def search(self, rng: Random) -> Candidate | None:
        """The source with the best word in that place; None if no word improves on what there is."""
        self._home = (await SourceVectors([self.text]))[0]
        replaced = self.text.words[self.index].lower()
        banned = self.excluded | {replaced}
        words = [number for number, word in enumerate(self.vocabulary.words) if word.lower() not in banned]
        budget = self.attack.sample + self.attack.most
        if self.attack.exhaustive or len(words) <= budget:
            await self._measure(words)
        elif not self.vocabulary.vectors.shape[1]:
            await self._measure(rng.sample(words, budget))
        else:
            await self._measure(rng.sample(words, self.attack.sample))
            await self._measure_the_likely(words)
        return self._best()

    def _best(self) -> Candidate | None:
        reached = [candidate for candidate in self._candidates.values() if candidate.reached]
        if reached:
            return min(reached, key=lambda candidate: candidate.distance)
        better = [candidate for candidate in self._candidates.values() if candidate.loss < self.loss]
        if self.attack.steepest:
            return min(better, key=lambda candidate: (candidate.loss, candidate.distance), default=None)
        return min(better, key=lambda candidate: candidate.distance, default=None)

    async def _measure_the_likely(self, words: list[int]) -> None:
        half = self.attack.most // 2
        for _ in range(2):
            if self._reached_distance() == math.inf:
                await self._measure(self._first(words, half, -self._estimate().margins), until_reached=True)
        if self._reached_distance() < math.inf:
            await self._measure_the_nearer(words)
        elif not self.attack.steepest:
            await self._measure(self._first(words, half, self._estimate().distances))

    async def _measure_the_nearer(self, words: list[int]) -> None:
        """Measure words that may succeed and be nearer than the nearest success, nearest first."""
        for _ in range(-(-self.attack.most // _FEW)):
            estimate, nearest = self._estimate(), self._reached_distance()
            words = [
                number
                for number in words
                if estimate.margin_may_be_positive(number) and estimate.least_distance(number) < nearest
            ]
            chosen = self._first(words, _FEW, estimate.distances)
            if not chosen or self.cut_short:
                return
            await self._measure(chosen)

    def _first(self, words: Iterable[int], count: int, values: NDArray[np.float64]) -> list[int]:
        """The words of the smallest values that are not measured yet."""
        unmeasured = [number for number in words if number not in self._candidates]
        return sorted(unmeasured, key=lambda number: (float(values[number]), number))[:count]

    def _estimate(self) -> Estimate:
        measured = {number: (item.distance, -item.loss) for number, item in self._candidates.items()}
        return Estimate.fitted(self.vocabulary.vectors, measured, self.attack.caution)

    def _reached_distance(self) -> float:
        return min((item.distance for item in self._candidates.values() if item.reached), default=math.inf)

    async def _measure(self, numbers: list[int], until_reached: bool = False) -> None:
        """Translate the source with each of these words in the place."""
        for start in range(0, len(numbers), _AT_ONCE):
            if self.cut_short or (until_reached and self._reached_distance() < math.inf):
                return
            texts = {self._written(number): number for number in numbers[start : start + _AT_ONCE]}
            allowed = await self.attack.allowed(list(texts), self.text, self.index)
            if not allowed:
                continue
            attempts = await self.attack.attempts(self.example, allowed)
            self.cut_short = len(attempts) < len(allowed)
            translated = allowed[: len(attempts)]
            for text, attempt, distance in zip(translated, attempts, await self._distances(translated), strict=True):
                number = texts.get(text, -1 - len(self._candidates))  # with its article put right it is another text
                goal = self.example.goal
                reached = goal is not None and goal.reached(attempt.translation)
                self._candidates[number] = Candidate(text, attempt.loss, distance, reached)

    async def _distances(self, texts: Sequence[Text]) -> list[float]:
        """How far the sentence vector moves; in a black box, by how many letters the word differs."""
        if self._home.shape[0]:
            moved = np.abs(await SourceVectors(texts) - self._home).sum(1)
            return [round(float(distance), 4) for distance in moved]
        return [float(levenshtein(self.text.words[self.index], text.words[self.index])) for text in texts]

    def _written(self, number: int) -> Text:
        return self.text.replace(self.index, match_case(self.vocabulary.words[number], self.text.words[self.index]))
