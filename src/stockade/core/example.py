"""A labelled text, the model's scores for it, and what it means to fool the model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from stockade.core.text import Text

PREDICTED = -1
"""In place of a class: whatever the model predicts for the clean text, for texts without labels."""
_LOG_ODDS_LIMIT = 30.0
_DIGITS = 3
"""Scores move a little with the shape of the batch they were computed in; differences below 1e-3 of log-odds are
noise.
"""


@dataclass(frozen=True, slots=True)
class Scores:
    """The class probabilities of one text."""

    probabilities: tuple[float, ...]

    @property
    def answered(self) -> bool:
        """Whether there is an answer at all; only `NoScores` is none."""
        return bool(self.probabilities)

    @property
    def label(self) -> int:
        """The predicted class: the most probable one, the first of them in a tie."""
        return self.probabilities.index(max(self.probabilities))

    def probability(self, label: int) -> float:
        """The probability of a class."""
        return self.probabilities[label]

    def log_odds(self, label: int) -> float:
        """ln(p / (1 - p)), rounded. Summing the other classes instead of taking 1 - p keeps its digits near p = 1."""
        probability = self.probabilities[label]
        if len(self.probabilities) == 2:
            others = self.probabilities[1 - label]
        else:
            others = sum(self.probabilities[:label]) + sum(self.probabilities[label + 1 :])
        if probability <= 0.0:
            return -_LOG_ODDS_LIMIT
        if others <= 0.0:
            return _LOG_ODDS_LIMIT
        return round(max(-_LOG_ODDS_LIMIT, min(_LOG_ODDS_LIMIT, math.log(probability / others))), _DIGITS)


@dataclass(frozen=True, slots=True)
class NoScores(Scores):
    """Stands for the scores of a text that the model did not answer: the query budget did not reach it, or it failed.

    Such a text fools nobody and is worse than any other, so a search that compares candidates goes on without it.

    Parameters
    ----------
    probabilities
        None.
    reason
        Why the model failed on the text; None where the budget did not reach it.
    """

    probabilities: tuple[float, ...] = ()
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Example:
    """A text with its true class and, for targeted attacks, the class the attacker wants instead.

    Parameters
    ----------
    id
        The name of the example in its data.
    text
        The text to attack.
    label
        Its true class; `PREDICTED` before the model has been asked, if nobody knows it.
    target
        The class that a targeted attack wants; None for any wrong class.
    visible
        The words that the model reads, if it truncates the text: changing another has no effect.
    """

    id: str
    text: Text
    label: int
    target: int | None = None
    visible: Sequence[int] | None = None

    @property
    def indices(self) -> Sequence[int]:
        """The words worth changing."""
        return self.text.indices if self.visible is None else self.visible

    def fooled(self, scores: Scores) -> bool:
        """Whether these scores mean that the attack has succeeded."""
        if not scores.probabilities:
            return False
        return scores.label != self.label if self.target is None else scores.label == self.target

    def score(self, scores: Scores) -> float:
        """How far the attacker has come, on the papers' scale: 1 - p(true class), or p(target); 0 without an answer."""
        if not scores.probabilities:
            return 0.0
        return 1.0 - scores.probabilities[self.label] if self.target is None else scores.probabilities[self.target]

    def gain(self, scores: Scores) -> float:
        """The same on the log-odds scale and rounded: use it to compare candidates, it ranks them alike in every
        batch. Without an answer it is -inf.
        """
        if not scores.probabilities:
            return -math.inf
        return -scores.log_odds(self.label) if self.target is None else scores.log_odds(self.target)
