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
from stockade.core.registry import published
from stockade.core.text import Text, match_case
from stockade.defenses.combine import Combination, Draws, combine
from stockade.defenses.neighbours import neighbour_table
from stockade.defenses.text_perturbation import PerturbedTexts, with_changed_texts
from stockade.engine.requests import Score
from stockade.lexicon.perturbation_sets import PerturbationSets, WordSet, load_perturbation_sets

if TYPE_CHECKING:
    from stockade.training.objective import Batch, Objective, TrainingKit


@published(
    "safer",
    paper="Ye et al. 2020, SAFER: A Structure-free Approach for Certified Robustness to Adversarial Word Substitutions",
    presets={
        "default": {},
        "paper": {"combine": "vote"},
        "vote": {"combine": "vote"},
        "authors": {"combine": "vote", "copies": 2000},
    },
)
@dataclass(frozen=True, slots=True, kw_only=True)
class Safer:
    """Replace words by synonyms at random: train on such texts, answer with what many copies say together.

    Each word that has a perturbation set is replaced by a draw from it, all of its words as likely, in the case of the
    word that stood there; of a pair the hypothesis only. Preset `paper` answers with votes, as the paper does (`vote`
    is another name of it); `authors` with votes of as many copies as the released code.

    Differences to the paper: without a preset mean probabilities answer, because votes starve attackers that follow
    scores.
    The released training script does not perturb the texts; this one does, as the paper says.

    Parameters
    ----------
    copies
        How many reworded copies a text is answered from.
    combine
        How the answers to the copies become one.
    min_cosine
        Words of at least this cosine are in each other's sets.
    maximum
        How many words a set has at most.
    directions
        How many principal directions are taken away from the vectors first.
    draws
        `fresh` for other words with every question; `fixed` for the same draws for all texts of equal length.
    vectors
        A file with a table of neighbours or counter-fitted vectors in place of the package's table.
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

    def resources(self) -> Mapping[str, str]:
        return {} if self.vectors is None else {"vectors": neighbour_table(self.vectors).fingerprint()}

    def surrogate(self) -> Safer:
        return replace(self, combine="probability")

    async def answer(self, text: Text, rng: np.random.Generator) -> Scores:
        # From the string: what an edit has put in the place of a word may be read as two words, or with a neighbour.
        copies = self.perturbed(Text.of(text.input), rng, self.copies)
        return combine(np.array([scores.probabilities for scores in await Score(copies)]), self.combine)

    def sets(self) -> PerturbationSets:
        """Which words may stand for which; made once."""
        return load_perturbation_sets(self.vectors, self.min_cosine, self.directions, self.maximum)

    def word_sets(self, text: Text) -> tuple[WordSet, ...]:
        """The perturbation set of each word that has one, with its least overlap q: what a certificate needs.

        q is 0 for a word whose synonyms may be read together with a neighbour (see `perturbation_sets`).
        """
        return self.sets().in_text(Text.of(text.input))

    def perturbed(self, text: Text, rng: np.random.Generator, copies: int) -> list[Text]:
        """Copies of a text with every word that has a set replaced by a draw; one copy if no word has one."""
        sets = [(index, words) for index, word in enumerate(text.words) if (words := self.sets().of(word))]
        if not sets:
            return [text]
        return [_replaced(text, sets, row) for row in rng.random((copies, len(sets)))]

    def objective(self, kit: TrainingKit) -> Objective:
        def reword(batch: Batch) -> Batch:
            return with_changed_texts(batch, self._reworded)

        return PerturbedTexts(reword, kit.plain)

    def _reworded(self, string: str, rng: Random) -> str:
        return str(self.perturbed(Text.parse(string), np.random.default_rng(rng.getrandbits(64)), 1)[0])


def _replaced(text: Text, sets: Sequence[tuple[int, Sequence[str]]], shares: NDArray[np.float64]) -> Text:
    """The text with words drawn from their sets; a share from 0 to 1 says how far along in its set a word is.

    A word that is drawn for itself does not keep its spelling: a copy must not tell what stood there.
    """
    drawn = {index: words[int(share * len(words))] for (index, words), share in zip(sets, shares.tolist(), strict=True)}
    return text.replace_all({index: match_case(word, text.words[index]) for index, word in drawn.items()})
