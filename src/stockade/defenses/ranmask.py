"""RanMASK: hide words at random, ask about many copies, take what they say together."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from stockade.core.errors import OptionError
from stockade.core.example import Scores
from stockade.core.masks import Keep, draw_masks, draw_weighted_masks, kept_words
from stockade.core.registry import published
from stockade.core.seeds import derive_seed
from stockade.core.text import Text
from stockade.defenses.combine import Combination, Draws, combine, combine_normalised
from stockade.defenses.text_perturbation import PerturbedTexts, with_masked_words
from stockade.engine.requests import Masked, Score, Surprisal

if TYPE_CHECKING:
    from stockade.training.objective import Batch, Objective, TrainingKit

Sampling = Literal["uniform", "lm"]
RISING = 0.6
"""The share of the training in which the rate of a curriculum rises."""
ENOUGH = 0.5
"""A risk below this protects."""


@published(
    "ranmask",
    paper="Zeng et al. 2021, RanMASK, sections 2 and 3",
    presets={
        "default": {},
        "paper": {"combine": "vote"},
        "vote": {"combine": "vote"},
        "authors": {"combine": "normalised-logit", "kept": 2},
        "ag-news": {"rate": 0.9},
        "sst2": {"rate": 0.3},
        "imdb": {"rate": 0.3},
        "snli": {"rate": 0.15},
    },
)
@dataclass(frozen=True, slots=True, kw_only=True)
class RanMask:
    """Hide words at random: train on masked texts, answer with what many masked copies say together.

    Words are what blanks separate, of a pair those of the hypothesis. Preset `paper` answers with votes, as the paper
    does (`vote` is another name of it); `authors` as the released code does when it takes logits, with at least two
    words kept; those named after data sets have the paper's rates and nothing else of it.

    Differences to the paper: one function says how many words stay, in training, prediction and certificates (the
    released code keeps at least two words and certifies as if it did not); training always draws uniformly; without
    a preset mean probabilities answer, because votes starve attackers that follow scores and so flatter the defense.

    Parameters
    ----------
    rate
        The share of words that are hidden.
    copies
        How many masked copies a text is answered from.
    combine
        How the answers to the copies become one.
    kept
        The fewest words that stay.
    most_kept
        The most words that stay, so that more of a long text is hidden than of a short one: how many may depend on
        the number of words, which no replaced word changes. None for `rate` at every length.
    draws
        `fresh` for other masks with every question; `fixed` for the same ones for all texts of equal length.
    sampling
        `uniform`, or `lm` to hide words that a masked LM did not expect more often (section 4.3). Which words are
        hidden then depends on the words, so no certificate holds.
    curriculum
        The rate that training begins with; it rises to `rate` in the first 60 % of the training. None for `rate`
        throughout.
    mask
        What hides a word from a black box; other models have a mask token.
    """

    innermost: ClassVar[bool] = True
    independent_copies: ClassVar[bool] = True
    rate: float = 0.3
    copies: int = 100
    combine: Combination = "probability"
    kept: int = 1
    most_kept: int | None = None
    draws: Draws = "fresh"
    sampling: Sampling = "uniform"
    curriculum: float | None = None
    mask: str = "[MASK]"

    def __post_init__(self) -> None:
        for name, value in (("rate", self.rate), ("curriculum", self.curriculum)):
            if value is not None and not 0 < value < 1:
                raise OptionError(
                    f"The {name} of ranmask is {value}, expected a share of words between 0 and 1, such as 0.3: at 0 "
                    "nothing is hidden, at 1 everything."
                )
        if self.copies < 1 or self.kept < 1:
            raise OptionError(f"ranmask has {self.copies} copies and keeps {self.kept} words, expected at least 1.")
        if self.most_kept is not None and self.most_kept < self.kept:
            raise OptionError(
                f"ranmask keeps at most {self.most_kept} words (most_kept) and at least {self.kept} (kept): expected "
                "no fewer at most than at least."
            )

    @property
    def randomised(self) -> bool:
        return self.draws == "fresh"

    def surrogate(self) -> RanMask:
        return replace(self, combine="probability")

    async def answer(self, text: Text, rng: np.random.Generator) -> Scores:
        words = str(text).split()
        if not words:
            return (await Score([text]))[0]
        weights = None if self.sampling == "uniform" else np.array(await Surprisal(tuple(words)))
        keep = self.masks(rng, len(words), weights)
        if self.combine == "normalised-logit":
            return combine_normalised(await Masked(words, text.premise, keep, self.mask, logits=True))
        return combine(await Masked(words, text.premise, keep, self.mask), self.combine)

    def masks(self, rng: np.random.Generator, words: int, weights: NDArray[np.float64] | None = None) -> Keep:
        """Which words each copy of a text of so many words shows; words of more weight are hidden more often."""
        if self.draws == "fixed":
            rng = np.random.default_rng(derive_seed("ranmask", int(rng.integers(2**63)), words))
        kept = self.kept_of(words)
        if weights is None:
            return draw_masks(rng, words, kept, self.copies)
        return draw_weighted_masks(rng, weights, kept, self.copies)

    def kept_of(self, words: int) -> int:
        """How many of so many words each copy shows."""
        return kept_words(words, self.rate, self.kept, self.most_kept)

    def objective(self, kit: TrainingKit) -> Objective:
        def mask_words(batch: Batch) -> Batch:
            rate = self.training_rate(batch.progress)

            def draw(generator: np.random.Generator, words: int) -> Keep:
                return draw_masks(generator, words, kept_words(words, rate, self.kept, self.most_kept), 1)

            return with_masked_words(batch, kit.encoder, draw)

        return PerturbedTexts(mask_words, kit.plain)

    def training_rate(self, progress: float) -> float:
        """The mask rate when the share `progress` of the training is over."""
        if self.curriculum is None:
            return self.rate
        return self.curriculum + (self.rate - self.curriculum) * min(1.0, progress / RISING)


@dataclass(frozen=True, slots=True)
class Risk:
    """The chance that every attacked word of a text survives the masking, with the counts it was computed from."""

    words: int
    attacked: int
    hidden: int
    probability: float


def risk(words: int, rate: float, attacked: float, kept: int = 1, most_kept: int | None = None) -> Risk:
    """The risk of a mask rate: how likely an attack is seen whole (section 4.3, equation 10).

    C(words - attacked, hidden) / C(words, hidden), as a product of shares; 0 when fewer words stay than were changed.

    Differences to the paper: it asks for a rate at which the risk is greater than one half; what protects is a risk
    smaller than that.

    Parameters
    ----------
    words
        How many words the text has.
    rate
        The share of words that are hidden.
    attacked
        The share of words that an attacker changed.
    kept, most_kept
        The fewest and the most words that stay.
    """
    for name, share in (("mask rate", rate), ("share of attacked words", attacked)):
        if not 0 <= share <= 1:
            raise OptionError(f"The {name} is {share}, expected a share between 0 and 1, such as 0.3.")
    if words < 1:
        raise OptionError(f"A text of {words} words has no risk; give at least 1.")
    shown, changed = kept_words(words, rate, kept, most_kept), round(attacked * words)
    chance = 1.0
    for survivor in range(changed):
        chance *= max(0, shown - survivor) / (words - survivor)
    return Risk(words, changed, words - shown, chance)


def lowest_rate(words: int, attacked: float, enough: float = ENOUGH, kept: int = 1) -> float | None:
    """The lowest mask rate, in steps of 5 %, whose risk is below `enough`; None where even 95 % is too risky."""
    rates = (step / 20 for step in range(1, 20))
    return next((rate for rate in rates if risk(words, rate, attacked, kept).probability < enough), None)
