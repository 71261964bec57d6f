"""The plain baseline for FIVE: answer from a text and a copy with its most important words hidden."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from stockade.core.errors import OptionError
from stockade.core.example import Scores
from stockade.core.protocols import Classifier, ImportanceObjective
from stockade.core.registry import published
from stockade.core.text import Text
from stockade.defenses.combine import Combination, combine
from stockade.defenses.switch import check_importance, ranked_words
from stockade.engine.requests import Importance, Masked, Score
from stockade.lexicon.stopwords import StopList


@published(
    "mask-top",
    paper="a baseline for FIVE of Mein et al. 2020, FireBERT, section 2.1.5",
    presets={"paper": {}, "mnli": {}, "imdb": {"copies": 10, "combine": "probability"}},
)
@dataclass(frozen=True, slots=True, kw_only=True)
class MaskTop:
    """Answer with what a text and copies of it with the most important words hidden say together.

    FIVE without noise: instead of random vectors the most important words, which are no stop words, are a mask each. A
    word is hidden with the punctuation that stands at it. All copies are alike, so they are computed once and only say
    how much the hidden text counts beside the text itself.

    Parameters
    ----------
    words
        How many of the most important words are hidden.
    copies
        How many times the hidden text counts.
    combine
        How the answers become one.
    stop_words
        Which list of stop words.
    importance
        What the importance of a word is the gradient of.
    mask
        What hides a word from a black box; other models have a mask token.
    """

    innermost: ClassVar[bool] = True
    words: int = 1
    copies: int = 8
    combine: Combination = "logit"
    stop_words: StopList = "function"
    importance: ImportanceObjective = "loss_pred"
    mask: str = "[MASK]"

    def __post_init__(self) -> None:
        if self.words < 1 or self.copies < 1:
            raise OptionError(
                f"mask-top hides {self.words} words in {self.copies} copies, expected at least 1 of each."
            )

    @property
    def randomised(self) -> bool:
        return False

    def check(self, inner: Classifier) -> None:
        check_importance("mask-top", inner)

    def surrogate(self) -> MaskTop:
        return replace(self, combine="probability")

    async def answer(self, text: Text, rng: np.random.Generator) -> Scores:
        (clean,) = await Score([text])
        top = ranked_words(text, await Importance(text, self.importance), self.stop_words)[: self.words]
        if not top:
            return clean
        pieces = str(text).split()
        keep = np.ones((1, len(pieces)), dtype=np.bool_)
        keep[0, [piece_of(text, index) for index in top]] = False
        hidden = await Masked(pieces, text.premise, keep, self.mask)
        return combine(np.vstack([clean.probabilities, *[hidden] * self.copies]), self.combine)


def piece_of(text: Text, index: int) -> int:
    """Which of the pieces between blanks a word stands in."""
    before = str(text)[: text.starts[index]]
    return len(before.split()) - (bool(before) and not before[-1].isspace())
