"""SAFER: replace words by synonyms at random, ask about many copies, take what they say together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from stockade.core.errors import OptionError
from stockade.core.example import Scores
from stockade.core.protocols import Classifier
from stockade.core.registry import published
from stockade.core.text import Text, TextInput, match_case
from stockade.defenses.combine import Combination, Draws, combine
from stockade.defenses.replacements import neighbour_table
from stockade.engine.requests import Score
from stockade.lexicon.perturbation_sets import PerturbationSets, WordSet, load_perturbation_sets

if TYPE_CHECKING:
    from torch import Tensor, nn

    from stockade.training.objective import Batch, Objective, TrainingKit


@published(
    "safer",
    paper="Ye et al. 2020, SAFER: A Structure-free Approach for Certified Robustness to Adversarial Word Substitutions",
    presets={"paper": {}, "vote": {"combine": "vote"}, "authors": {"combine": "vote", "copies": 2000}},
)
@dataclass(frozen=True, slots=True)
class Safer:
    """Replace words by synonyms at random: train on such texts, answer with what many copies say together.

    Each word that has a perturbation set is replaced by a draw from it, all of its words as likely, in the case of the
    word that stood there; of a pair the hypothesis only. The sets come from `vectors`, a table of neighbours or a file
    of counter-fitted vectors (by default the table of the package): words of a cosine of at least `min_cosine` are
    joined, after `directions` principal directions were taken away, and a set has at most `maximum` words. `combine` is
    how the `copies` become one answer. With `draws=fixed` texts of equal length always have the same draws. Preset
    `vote` answers with votes, as the paper does; `authors` with as many copies as the released code.

    Differences to the paper: mean probabilities are the default, because votes starve attackers that follow scores.
    The released training script does not perturb the texts; this one does, as the paper says.
    """

    independent_copies: ClassVar[bool] = True
    copies: int = 100
    combine: Combination = "probability"
    min_cosine: float = 0.8
    maximum: int = 100
    directions: int = 8
    draws: Draws = "fresh"
    vectors: str | None = None

    def __post_init__(self) -> None:
        if self.copies < 1 or self.maximum < 1 or self.directions < 0:
            raise OptionError(
                f"safer has {self.copies} copies, sets of {self.maximum} words at most, and takes {self.directions} "
                "directions away; expected at least 1, 1 and 0."
            )
        if not 0 < self.min_cosine <= 1:
            raise OptionError(f"The min_cosine of safer is {self.min_cosine}, expected one above 0 and at most 1.")

    @property
    def randomised(self) -> bool:
        return self.draws == "fresh"

    def check(self, inner: Classifier) -> None:
        """Any classifier will do."""

    def resources(self) -> Mapping[str, str]:
        return {} if self.vectors is None else {"vectors": neighbour_table(self.vectors).fingerprint()}

    def twin(self) -> Safer:
        return replace(self, combine="probability")

    async def answer(self, text: Text, rng: np.random.Generator) -> Scores:
        copies = self.perturbed(text, rng, self.copies)
        return combine(np.array([scores.probabilities for scores in await Score(copies)]), self.combine)

    def sets(self) -> PerturbationSets:
        """Which words may stand for which; made once."""
        return load_perturbation_sets(self.vectors, self.min_cosine, self.directions, self.maximum)

    def word_sets(self, text: Text) -> tuple[WordSet, ...]:
        """The perturbation set of each word that has one, with its least overlap q: what a certificate is made from."""
        return self.sets().in_text(text)

    def perturbed(self, text: Text, rng: np.random.Generator, copies: int) -> list[Text]:
        """Copies of a text with every word that has a set replaced by a draw; one copy if no word has one."""
        sets = [(index, found) for index, word in enumerate(text.words) if (found := self.sets().of(word))]
        if not sets:
            return [text]
        return [_replaced(text, sets, row) for row in rng.random((copies, len(sets)))]

    def objective(self, kit: TrainingKit) -> Objective:
        return SynonymTraining(self, kit.plain)


@dataclass(frozen=True, slots=True)
class SynonymTraining:
    """Replaces words of every text of a batch anew, then trains as `plain` does."""

    safer: Safer
    plain: Objective

    def augment(self, batch: Batch) -> Batch:
        return self.plain.augment(self._reworded(batch))

    def validation_batch(self, batch: Batch) -> Batch:
        from stockade.training.objective import validation_batch

        return validation_batch(self.plain, self._reworded(batch))

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        return self.plain.loss(model, batch)

    def _reworded(self, batch: Batch) -> Batch:
        return batch.with_inputs([self._perturbed(one, batch.rng) for one in batch.inputs])

    def _perturbed(self, one: TextInput, rng: Random) -> TextInput:
        return self.safer.perturbed(Text.of(one), np.random.default_rng(rng.getrandbits(64)), 1)[0].input


def _replaced(text: Text, sets: Sequence[tuple[int, Sequence[str]]], shares: NDArray[np.float64]) -> Text:
    """The text with the word that is so far along in its set, from 0 to 1, in the place of each.

    The word's own spelling is not kept when it is drawn itself: a copy must not tell what stood there.
    """
    drawn = {index: words[int(share * len(words))] for (index, words), share in zip(sets, shares.tolist(), strict=True)}
    return text.replace_all({index: match_case(word, text.words[index]) for index, word in drawn.items()})
