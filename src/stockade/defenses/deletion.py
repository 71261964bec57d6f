"""Deletion: delete words at random, ask about many shortened copies, take what they say together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import compress
from random import Random
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from stockade.core.errors import OptionError
from stockade.core.example import Scores
from stockade.core.masks import Keep
from stockade.core.partitions import deletion_chance, keep_words
from stockade.core.registry import published
from stockade.core.seeds import derive_seed
from stockade.core.text import Text
from stockade.defenses.combine import Combination, Draws, combine
from stockade.defenses.text_perturbation import PerturbedTexts, with_changed_texts
from stockade.engine.requests import ClassNames, Score

if TYPE_CHECKING:
    from stockade.training.objective import Batch, Objective, TrainingKit

NO_VOTE = -1
"""The vote of a copy without words."""


@published(
    "deletion",
    paper="Huang et al. 2023, RS-Del: Edit Distance Robustness Certificates for Sequence Classifiers via Randomized "
    "Deletion; on words Huang et al. 2024, CERT-ED; with mean_kept Huang et al. 2025, AdaptDel",
    presets={
        "default": {},
        "paper": {"combine": "vote"},
        "vote": {"combine": "vote"},
        "adaptive": {"mean_kept": 10.0},
    },
)
@dataclass(frozen=True, slots=True, kw_only=True)
class Deletion:
    """Delete words at random: train on shortened texts, answer with what many shortened copies say together.

    Every word of a text stays with the same chance, whatever becomes of the others; those that stay are joined by
    single blanks. Words are what blanks separate, of a pair those of the hypothesis. In training a text never loses all
    its words: one of them, drawn at random, stays then.

    A copy that lost all its words says nothing: with `combine=vote` a class has the share of all copies that vote for
    it, which may sum to less than 1; means are over the copies with words. If no copy has words the text itself is
    asked.

    Differences to the papers: copies without words vote for no class; without a preset mean probabilities answer,
    because votes starve attackers that follow scores and so flatter the defense. Preset `paper` answers with votes
    (`vote` is another name of it).

    Parameters
    ----------
    kept_chance
        The chance with which a word stays.
    mean_kept
        How many words stay in the mean, where that is less than what `kept_chance` leaves: the chance is then so much
        smaller the longer the text is. None for the same chance at every length.
    copies
        How many shortened copies a text is answered from.
    combine
        How the answers to the copies become one.
    draws
        `fresh` for other deletions with every question; `fixed` for the same ones for all texts of equal length.
    """

    independent_copies: ClassVar[bool] = True
    kept_chance: float = 0.3
    mean_kept: float | None = None
    copies: int = 100
    combine: Combination = "probability"
    draws: Draws = "fresh"

    def __post_init__(self) -> None:
        if not 0 < self.kept_chance < 1:
            raise OptionError(
                f"The kept_chance of deletion is {self.kept_chance}, expected a chance between 0 and 1, such as 0.3: "
                "at 0 nothing stays, at 1 everything."
            )
        if self.mean_kept is not None and not self.mean_kept > 0:
            raise OptionError(f"The mean_kept of deletion is {self.mean_kept}, expected more than 0 words, such as 10.")
        if self.copies < 1:
            raise OptionError(f"deletion has {self.copies} copies, expected at least 1.")

    @property
    def randomised(self) -> bool:
        return self.draws == "fresh"

    def surrogate(self) -> Deletion:
        return replace(self, combine="probability")

    async def answer(self, text: Text, rng: np.random.Generator) -> Scores:
        words = str(text).split()
        if self.draws == "fixed":
            rng = np.random.default_rng(derive_seed("deletion", int(rng.integers(2**63)), len(words)))
        keep = self.kept(rng, len(words), self.copies)
        if not keep.any():
            return (await Score([text]))[0]
        if self.combine != "vote":
            return combine(await _rows(words, text.premise, keep[keep.any(1)]), self.combine)
        votes = await self.copy_votes(words, text.premise, keep)
        counts = np.bincount(votes[votes != NO_VOTE], minlength=len(await ClassNames()))
        return Scores(tuple((counts / self.copies).tolist()))

    def kept(self, rng: np.random.Generator, words: int, copies: int) -> Keep:
        """Which of so many words stay in each copy."""
        return keep_words(rng, words, self.chance_of(words), copies)

    def chance_of(self, words: int) -> float:
        """The chance of a word to stay in a text of so many words."""
        return deletion_chance(words, self.kept_chance, self.mean_kept)

    async def copy_votes(self, words: Sequence[str], premise: str | None, keep: Keep) -> NDArray[np.int64]:
        """The class that each copy votes for, `NO_VOTE` for one without words: what a certificate is computed from."""
        votes = np.full(len(keep), NO_VOTE, dtype=np.int64)
        shown = keep.any(1)
        if shown.any():
            votes[shown] = (await _rows(words, premise, keep[shown])).argmax(1)
        return votes

    def objective(self, kit: TrainingKit) -> Objective:
        def shorten(batch: Batch) -> Batch:
            return with_changed_texts(batch, self._with_fewer_words)

        return PerturbedTexts(shorten, kit.plain)

    def _with_fewer_words(self, string: str, rng: Random) -> str:
        words = string.split()
        if not words:
            return string
        generator = np.random.default_rng(rng.getrandbits(64))
        keep = self.kept(generator, len(words), 1)
        if not keep.any():
            keep[0, generator.integers(len(words))] = True
        [copy] = shortened(words, keep)
        return copy


def shortened(words: Sequence[str], keep: Keep) -> list[str]:
    """The copies of a text of these words with those that stay, joined by blanks."""
    return [" ".join(compress(words, row)) for row in keep.tolist()]


async def _rows(words: Sequence[str], premise: str | None, keep: Keep) -> NDArray[np.float64]:
    """The class probabilities of each copy, a row each."""
    strings = shortened(words, keep)
    texts = {string: Text.parse(string, premise) for string in dict.fromkeys(strings)}
    return np.array([scores.probabilities for scores in await Score([texts[string] for string in strings])])
