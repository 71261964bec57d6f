"""RanMASK: hide words at random, ask about many copies, take what they say together."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from stockade.core.errors import OptionError
from stockade.core.example import Scores
from stockade.core.masks import Keep, draw_masks, draw_weighted_masks, kept_words
from stockade.core.protocols import Classifier
from stockade.core.registry import published
from stockade.core.seeds import derive_seed
from stockade.core.text import Text
from stockade.defenses.combine import Combination, Draws, combine, combine_normalised
from stockade.engine.requests import Masked, Score, Surprisal

if TYPE_CHECKING:
    from stockade.training.objective import Objective, TrainingKit

Sampling = Literal["uniform", "lm"]


@published(
    "ranmask",
    paper="Zeng et al. 2021, RanMASK, sections 2 and 3",
    presets={
        "paper": {},
        "vote": {"combine": "vote"},
        "authors": {"combine": "normalised-logit", "kept": 2},
        "ag-news": {"rate": 0.9},
        "sst2": {"rate": 0.3},
        "imdb": {"rate": 0.3},
        "snli": {"rate": 0.15},
    },
)
@dataclass(frozen=True, slots=True)
class RanMask:
    """Hide words at random: train on masked texts, answer with what many masked copies say together.

    `rate` is the share of words that are hidden, `kept` the fewest that stay; words are what blanks separate, of a pair
    those of the hypothesis. `combine` is how the `copies` become one answer. With `draws=fixed` texts of equal length
    always have the same masks. With `sampling=lm` words that a masked LM did not expect are hidden more often (section
    4.3); which words are hidden then depends on the words, so no certificate holds. `curriculum` is the rate that
    training begins with; it rises to `rate` in the first 60 % of the training. `mask` is what hides a word from a black
    box; other models have a mask token. Preset `vote` answers with votes, as the paper does; `authors` as the released
    code does when it takes logits, with two words kept at least.

    Differences to the paper: one function says how many words stay, in training, prediction and certificates (the
    released code keeps two words at least and certifies as if it did not); training always draws uniformly; mean
    probabilities are the default, because votes starve attackers that follow scores and so flatter the defense.
    """

    innermost: ClassVar[bool] = True
    independent_copies: ClassVar[bool] = True
    rate: float = 0.3
    copies: int = 100
    combine: Combination = "probability"
    kept: int = 1
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

    @property
    def randomised(self) -> bool:
        return self.draws == "fresh"

    def check(self, inner: Classifier) -> None:
        """Any model will do."""

    def twin(self) -> RanMask:
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
        kept = kept_words(words, self.rate, self.kept)
        if weights is None:
            return draw_masks(rng, words, kept, self.copies)
        return draw_weighted_masks(rng, weights, kept, self.copies)

    def objective(self, kit: TrainingKit) -> Objective:
        from stockade.defenses.masked_training import MaskedTraining

        return MaskedTraining(kit.encoder, kit.plain, self.rate, self.kept, self.curriculum)
