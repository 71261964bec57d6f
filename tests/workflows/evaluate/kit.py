"""A victim, texts and defenses whose table a person can compute."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from stockade.core.errors import ModelError
from stockade.core.example import Scores
from stockade.core.protocols import Classifier
from stockade.core.text import Text
from stockade.defenses.combine import Combination
from stockade.engine.requests import Score
from tests.toys import WeightVictim

ATTACK = "deepwordbug@textattack"
"""Greedy: misspells the words whose hiding changes the score most, as long as the score follows."""

DATA: list[tuple[str, str]] = [
    ("good film", "positive"),  # log-odds 2.5, 0.5 without "good": robust
    ("bad film", "negative"),  # log-odds -1.5, 0.5 without "bad": fooled
    ("plain film", "positive"),  # log-odds 0.5 whatever is misspelled: robust
    ("plain story", "negative"),  # log-odds 0.5: wrong
]

TWO_WORDS: list[tuple[str, str]] = [
    (f"this {thing} was awful and boring for all our friends", "negative")
    for thing in ("film", "story", "book", "play", "song", "show", "game", "trip")
]
"""Log-odds -1.5; fooled only when both "awful" and "boring" are gone, and one alone changes no vote."""


def victim() -> WeightVictim:
    return WeightVictim({"good": 2.0, "bad": -2.0, "awful": -1.0, "boring": -1.0}, bias=0.5)


@dataclass(frozen=True, slots=True)
class Hiding:
    """Says only which class wins, as unanimous votes do; its surrogate shows the probabilities. Random in name only."""

    combine: Combination = "vote"

    @property
    def randomised(self) -> bool:
        return True

    def check(self, inner: Classifier) -> None:
        pass

    def surrogate(self) -> Hiding:
        return replace(self, combine="probability")

    async def answer(self, text: Text, rng: np.random.Generator) -> Scores:
        scores = (await Score([text]))[0]
        if self.combine == "probability":
            return scores
        return Scores(tuple(float(at == scores.label) for at in range(len(scores.probabilities))))


@dataclass(frozen=True, slots=True)
class Shielding:
    """Adds to one class's probability, so that no text is fooled any more; clean answers of that class stay."""

    label: int = 0

    @property
    def randomised(self) -> bool:
        return False

    def check(self, inner: Classifier) -> None:
        pass

    async def answer(self, text: Text, rng: np.random.Generator) -> Scores:
        await Score([text])
        return Scores((0.9, 0.1) if self.label == 0 else (0.1, 0.9))


@dataclass(frozen=True, slots=True)
class Noisy:
    """Answers with a random number, whatever the text."""

    low: float = 0.0

    @property
    def randomised(self) -> bool:
        return True

    def check(self, inner: Classifier) -> None:
        pass

    async def answer(self, text: Text, rng: np.random.Generator) -> Scores:
        positive = float(rng.uniform(self.low, 1))
        return Scores((1 - positive, positive))


@dataclass(frozen=True, slots=True)
class Demanding:
    """Needs what a function does not have."""

    randomised: bool = False

    def check(self, inner: Classifier) -> None:
        raise ModelError("demanding needs the model's input vectors, and this model does not show them.")

    async def answer(self, text: Text, rng: np.random.Generator) -> Scores:
        raise AssertionError


TOYS: dict[str, Any] = {"hiding": Hiding, "shielding": Shielding, "noisy": Noisy, "demanding": Demanding}
