"""What attacks on translators share that replace a few words of the source by any words of the vocabulary, greedily.

Each round takes one word more:

    where   the word without which the translation comes nearest to the goal: its input vectors are zeroed (a black box:
            the word is deleted). If that helps with no word, the one with the largest effect.
    what    a word of the vocabulary, see `replacement_scan`.

A word that was replaced stays. A place at which no word of the vocabulary helps is left alone for good, and counts as
a round.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import ClassVar

from stockade.attacks.constraints import Constraint, MaxChanged, conjunction
from stockade.attacks.replacement_scan import ReplacementScan
from stockade.attacks.word_attack import NOT_EVEN_ONE, WordAttack, replacement_words
from stockade.core.attacked_translation import Goal, Task, TranslationExample
from stockade.core.errors import BudgetExhausted, OptionError
from stockade.core.protocols import WordVocabulary
from stockade.core.records import Outcome
from stockade.core.shares import at_most
from stockade.core.text import Text
from stockade.core.translation import ZeroableSource
from stockade.engine.translation_requests import Attempt, Translate


@dataclass(frozen=True, slots=True, kw_only=True)
class SubstitutionAttack(WordAttack):
    """The options of attacks on translators that replace words.

    Parameters
    ----------
    words : int
        The most words that may change.
    exhaustive : bool
        Translate the source with every word of the vocabulary instead of those that an estimate finds likely.
    sample : int
        How many random words the estimate is made from.
    most : int
        How many likely words are tried after that, in each round.
    caution : float
        How many times its leave-one-out error the estimate may be off before a nearer word is ruled out.
    max_changed, constraint, repair_articles
        As for every `WordAttack`.
    """

    task: ClassVar[Task] = "translation"
    ends_with_best: ClassVar[bool] = False
    """Whether a search that fails ends with the best source it has, because less than the goal is also something."""

    words: int = 3
    exhaustive: bool = False
    sample: int = 64
    most: int = 128
    caution: float = 2.0

    def __post_init__(self) -> None:
        if self.words < 1 or self.sample < 1 or self.most < 0 or not 0 <= self.caution < math.inf:
            raise OptionError(
                f"words is {self.words}, sample {self.sample}, most {self.most} and caution {self.caution}; expected "
                "at least one word and one sample, and 0 or more."
            )

    @property
    def steepest(self) -> bool:
        """Whether a word that is no success is chosen by its loss instead of its distance."""
        return True

    def limits(self, *recipe: Constraint | None) -> Constraint | None:
        """The user's constraints; an article that is put right counts as a changed word."""
        count = MaxChanged(self.max_changed, self.words) if self.repair_articles else None
        return conjunction(*recipe, self.constraint, count)

    def goal_for(self, example: TranslationExample, rng: Random) -> Goal | None:
        """What is wanted of the translation."""
        raise NotImplementedError

    def excluded(self, example: TranslationExample) -> frozenset[str]:
        """Words that may not be written, in lower case."""
        return frozenset()

    async def losses(self, example: TranslationExample, sources: Sequence[ZeroableSource]) -> list[Attempt]:
        """The translations of sources and how far each is from the goal; fewer where the query budget ends."""
        assert example.goal is not None
        goal = example.goal
        translations = await Translate(sources, partial=True)
        return [Attempt(translation, round(goal.distance(translation), 3)) for translation in translations]

    async def attempts(self, example: TranslationExample, texts: Sequence[Text]) -> list[Attempt]:
        """The same for texts without a zeroed word."""
        return await self.losses(example, [ZeroableSource(text) for text in texts])

    async def search(self, example: TranslationExample, rng: Random) -> Outcome:
        """Replace words round by round until the goal is reached or no more may change."""
        rounds = min(self.words, len(example.text))
        if self.max_changed is not None:
            rounds = min(rounds, at_most(self.max_changed, len(example.text)))
        if not rounds:
            return Outcome.failed(NOT_EVEN_ONE)
        vocabulary = await replacement_words()
        text, loss = example.text, (await self.attempts(example, [example.text]))[0].loss
        tried: set[int] = set()
        try:
            for _ in range(rounds):
                index = await self._weakest(example, text, loss, tried)
                if index is None:
                    break
                tried.add(index)
                best = await self._scan(example, text, index, loss, vocabulary).search(rng)
                if best is not None and best.reached:
                    return Outcome.found(best.text)
                if best is not None:
                    text, loss = best.text, best.loss
        except BudgetExhausted as stopped:  # what there is by then may be worth something
            return self._failure(str(stopped), text)
        return self._failure("no words that were tried reach the goal", text)

    def _scan(
        self, example: TranslationExample, text: Text, index: int, loss: float, vocabulary: WordVocabulary
    ) -> ReplacementScan:
        return ReplacementScan(
            attack=self,
            example=example,
            text=text,
            index=index,
            loss=loss,
            vocabulary=vocabulary,
            excluded=self.excluded(example),
        )

    def _failure(self, reason: str, text: Text) -> Outcome:
        """Why there is no success, with the best source if that counts."""
        return Outcome.failed(reason, text if self.ends_with_best and text is not text.original else None)

    async def _weakest(self, example: TranslationExample, text: Text, loss: float, tried: set[int]) -> int | None:
        """The word to replace next: zeroing it lowers the loss most or, if that lowers none, changes it most."""
        places = [index for index in example.indices if index not in tried]
        if not places:
            return None
        attempts = await self.losses(example, [ZeroableSource(text, place) for place in places])
        gains = [round(loss - attempt.loss, 3) for attempt in attempts]
        if max(gains) <= 0:
            gains = [abs(gain) for gain in gains]
        return places[gains.index(max(gains))]
