"""FIVE: answer from a text and copies of it with noise on its most important tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, TypeGuard

import numpy as np

from stockade.core.errors import ModelError, OptionError
from stockade.core.example import Scores
from stockade.core.protocols import (
    Classifier,
    ImportanceObjective,
    NoisedClassifier,
    NoisedCopies,
    TokenScores,
    WhiteBoxClassifier,
)
from stockade.core.registry import published
from stockade.core.text import Text
from stockade.defenses.combine import Combination, Draws, combine
from stockade.defenses.switch import check_importance, order_of
from stockade.engine.requests import Importance, Noised, Score
from stockade.lexicon.stopwords import StopList, is_stop_word

_IMDB = {"deviation": 2.3, "samples": 10, "combine": "probability"}
_AUTHORS = {"deviation": 0.05, "samples": 10, "tokens": 2, "importance": "half_sq_norm"}
_NOISY = 0.2
"""Below this ratio a vector with noise has a cosine of less than 0.2 with the one without: ratio / √(1 + ratio²)."""


@published(
    "five",
    paper="Mein et al. 2020, FireBERT, section 2.1.5",
    presets={"paper": {}, "mnli": {}, "imdb": _IMDB, "authors": _AUTHORS},
)
@dataclass(frozen=True, slots=True, kw_only=True)
class Five:
    """Answer with what a text and copies with Gaussian noise on its most important tokens say together (FIVE).

    The text counts as much as each copy. Only tokens of words that are no stop words get noise, all chosen ones in each
    copy. At the published deviation the noise is some hundred times as long as the vector (`signal_to_noise`), so a
    token is overwritten rather than moved: compare with mask-top. Preset `authors` holds the defaults of the released
    code.

    Differences to the paper and its code: importance is the gradient of the predicted class's loss; with several tokens
    all of them are perturbed (the code perturbs only the last); tokens of punctuation are never chosen.

    Parameters
    ----------
    deviation
        The standard deviation of the noise that is added to input vectors.
    samples
        How many copies with noise a text has.
    tokens
        How many of the most important tokens get noise.
    combine
        How the answers become one.
    stop_words
        Which list of stop words.
    importance
        What the importance of a token is the gradient of.
    draws
        `fresh` for other noise with every question, `fixed` for the same.
    """

    innermost: ClassVar[bool] = True
    deviation: float = 8.14
    samples: int = 8
    tokens: int = 1
    combine: Combination = "logit"
    stop_words: StopList = "function"
    importance: ImportanceObjective = "loss_pred"
    draws: Draws = "fresh"

    def __post_init__(self) -> None:
        if not 0 < self.deviation < float("inf"):
            raise OptionError(f"The deviation of five is {self.deviation}, expected a number above 0, such as 8.14.")
        if self.samples < 1 or self.tokens < 1:
            raise OptionError(f"five has {self.samples} samples and {self.tokens} tokens, expected at least 1 of each.")

    @property
    def randomised(self) -> bool:
        return self.draws == "fresh"

    def check(self, inner: Classifier) -> None:
        check_importance("five", inner)
        if not isinstance(inner, NoisedClassifier):
            raise ModelError(
                "five adds noise to the model's input vectors, and this model does not let it: give a Hugging Face "
                "model or a built-in one, or use fuse, which changes words."
            )

    def surrogate(self) -> Five:
        return replace(self, combine="probability")

    async def answer(self, text: Text, rng: np.random.Generator) -> Scores:
        (clean,) = await Score([text])
        places = self.chosen(text, await Importance(text, self.importance))
        if not places:
            return clean
        noised = await Noised(NoisedCopies(text, places, self.deviation, self.samples, int(rng.integers(2**63))))
        return combine(np.vstack([clean.probabilities, noised]), self.combine)

    def chosen(self, text: Text, scores: TokenScores) -> tuple[tuple[int, int], ...]:
        """The tokens to perturb, as (word, token of the word), the most important first."""
        values = {
            (word, token): value
            for word, tokens in enumerate(scores)
            if not is_stop_word(text.words[word], self.stop_words)
            for token, value in enumerate(tokens)
        }
        return tuple(order_of(values)[: self.tokens])

    def remarks(self, inner: Classifier) -> Sequence[str]:
        """The ratio of signal to noise, without which a deviation says nothing."""
        if not _shows_vectors(inner):
            return ()
        ratio = self.signal_to_noise(inner)
        remark = (
            f"The signal-to-noise ratio of FIVE is {ratio:.2g} (the length of input vectors over that of the noise)"
        )
        overwritten = ", so tokens are overwritten rather than moved: compare with mask-top" if ratio < _NOISY else ""
        return (f"{remark}{overwritten}.",)

    def signal_to_noise(self, model: Classifier) -> float:
        """The mean length of the vocabulary's input vectors over the length of the noise.

        The noise is as long as the deviation times the root of the dimensions.
        """
        if not _shows_vectors(model):
            raise ModelError(
                "The signal-to-noise ratio needs the input vectors of the model's words, and this model shows none: "
                "give a Hugging Face model that reads words."
            )
        vectors = model.word_vocabulary().vectors
        return float(np.linalg.norm(vectors, axis=1).mean() / (self.deviation * np.sqrt(vectors.shape[1])))


def _shows_vectors(model: Classifier) -> TypeGuard[WhiteBoxClassifier]:
    return isinstance(model, WhiteBoxClassifier) and bool(model.word_vocabulary().words)
