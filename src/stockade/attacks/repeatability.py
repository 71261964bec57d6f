"""Whether a text fools a randomised model repeatedly: at least half of its answers, decided by a sequential test.

Twenty draws cannot tell a text that fools the model with chance .4 from one that does so with chance .5: the first has
ten hits or more among them 24 % of the time. So the model is asked until it is clear (Wald 1945, the sequential
probability ratio test of .4 against .6 with errors of at most 5 %). Both chances are as far from one half, so the ratio
depends on hits minus misses alone: the text is repeatable as soon as there are 8 hits more than misses, and not as soon
as there are 8 misses more than hits. After 200 draws without a decision the majority decides, and a tie counts as half.

A text with chance .4 then counts 3.8 % of the time, one with .6 96.2 %, one with .45 or .55 17 % or 83 %. A text that
always fools, or never, takes 8 draws; the mean is 20 at .3, 37 at .4 and 63 at .5. Draws come in groups of the fewest
that can decide, so none is asked for in vain and the decision is that of one draw after the other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stockade.core.example import Example, Scores
from stockade.core.text import Text
from stockade.engine.requests import Confirm

NOT_REPEATABLE, REPEATABLE = 0.4, 0.6
"""Chances that are told apart with an error of at most `ERROR`."""
ERROR = 0.05
LEAD = math.ceil(math.log((1 - ERROR) / ERROR) / math.log(REPEATABLE / NOT_REPEATABLE))
"""How many more hits than misses, or misses than hits, decide: each moves the log-likelihood ratio by ln(.6 / .4)."""
MOST_DRAWS = 200


@dataclass(frozen=True, slots=True)
class Tally:
    """Answers of a randomised model to one text so far.

    Parameters
    ----------
    hits
        How many of them are fooled.
    draws
        How many there are.
    """

    hits: int = 0
    draws: int = 0

    def add(self, hits: int, draws: int) -> Tally:
        """With so many more."""
        return Tally(self.hits + hits, self.draws + draws)

    @property
    def lead(self) -> int:
        """Hits minus misses."""
        return 2 * self.hits - self.draws

    @property
    def needed(self) -> int:
        """The fewest draws after which there can be a decision; 0 if there is one."""
        return max(0, min(LEAD - abs(self.lead), MOST_DRAWS - self.draws))

    @property
    def repeatable(self) -> bool:
        """Whether the text fools the model at least half of the time, as far as these answers can tell."""
        return self.draws > 0 and self.lead >= 0


@dataclass(frozen=True, slots=True)
class Repetition:
    """A text, and what a randomised model answered when it was asked again and again.

    Parameters
    ----------
    text
        The text.
    answers
        In order.
    tally
        How many of them are fooled.
    """

    text: Text
    answers: Sequence[Scores]
    tally: Tally

    @property
    def hit_rate(self) -> float:
        """The share of answers that are fooled."""
        return self.tally.hits / self.tally.draws


async def repeat(example: Example, text: Text) -> Repetition:
    """Ask a randomised model about a text, alone and with fresh random choices, until it is clear whether it is fooled
    at least half of the time.
    """
    answers: list[Scores] = []
    tally = Tally()
    while tally.needed:
        group = await Confirm(text, tally.needed)
        tally = tally.add(sum(map(example.fooled, group)), len(group))
        answers += group
    return Repetition(text, answers, tally)


def not_fooled(example: Example, repetition: Repetition) -> Scores:
    """What a search is shown of a text that does not fool the model repeatedly: the mean of the answers.

    Where even the mean would fool, as with few but confident wrong answers, the answer that comes nearest to it.
    """
    mean = Scores(tuple(np.mean([scores.probabilities for scores in repetition.answers], axis=0).tolist()))
    if not example.fooled(mean):
        return mean
    return max((scores for scores in repetition.answers if not example.fooled(scores)), key=example.gain)
