"""The seams of translators: what Stockade expects of a model that turns source sentences into target sentences.

`Translator` is enough for attacks that only read translations. `InspectableTranslator` adds what white-box attacks and
studies look at: the decoder's logits, the encoder's sentence vectors, and attention over the words of the source.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from stockade.core.protocols import WordVocabulary
from stockade.core.text import Text

Vectors = NDArray[np.float32]


@runtime_checkable
class Translator(Protocol):
    """Anything that translates sentences."""

    @property
    def deterministic(self) -> bool:
        """Whether the same sentence always gets the same translation; otherwise nothing is cached."""

    def translate(self, texts: Sequence[str], *, beam: int = 1) -> list[str]:
        """The translation of each sentence; a beam of 1 is greedy decoding."""

    def fingerprint(self) -> str:
        """A hash of everything that decides the translations."""


@dataclass(frozen=True, slots=True)
class ZeroableSource:
    """A source sentence, or one with the input vectors of a word zeroed; the word keeps its positions.

    Parameters
    ----------
    text
        The sentence.
    zeroed
        The index of the word whose vectors are zeroed; None for the sentence as it is.
    """

    text: Text
    zeroed: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class GreedySteps:
    """The steps of one greedy translation, from the first token to the end-of-sentence token.

    Whole rows of logits would take megabytes for each sentence, so only those are kept that a loss on wanted tokens
    needs: the logits of the wanted tokens and the two largest of all.

    Parameters
    ----------
    translation
        The translation as a string.
    tokens
        The token of each step; the last one ends the sentence unless the translation was cut off.
    wanted
        Steps × wanted tokens: their logits.
    highest, highest_tokens
        Steps × 2: the largest and the second largest logit, and whose they are.
    """

    translation: str
    tokens: tuple[int, ...]
    wanted: NDArray[np.float32]
    highest: NDArray[np.float32]
    highest_tokens: NDArray[np.int64]

    def margins(self, column: int, token: int) -> NDArray[np.float32]:
        """For each step the largest logit of all other tokens less that of a wanted one: negative where greedy decoding
        chose the wanted token.

        Parameters
        ----------
        column
            The column of `wanted` that has the token's logits.
        token
            The token.
        """
        rival = np.where(self.highest_tokens[:, 0] == token, self.highest[:, 1], self.highest[:, 0])
        margins: NDArray[np.float32] = rival - self.wanted[:, column]
        return margins


@dataclass(frozen=True, slots=True, eq=False)
class SourceAttention:
    """How much each step of a greedy translation looked at each word of the source.

    Parameters
    ----------
    translation
        The translation as a string.
    pieces
        The sub-words of the translation, one per step, without the end-of-sentence token.
    weights
        Steps × words of the source: the share of attention that all tokens of a word get, the mean over heads. A row
        adds up to less than 1 where the model also looks at punctuation or at the end of the sentence.
    """

    translation: str
    pieces: tuple[str, ...]
    weights: Vectors


@runtime_checkable
class InspectableTranslator(Translator, Protocol):
    """A translator that shows its logits, its sentence vectors and its attention."""

    def target_tokens(self, word: str) -> tuple[int, ...]:
        """The sub-words of a word as it stands within a translation, with a blank before it."""

    def greedy_steps(self, sources: Sequence[ZeroableSource], wanted: Sequence[int]) -> list[GreedySteps]:
        """The greedy translation of each source step by step, with the logits of the wanted tokens."""

    def sentence_vectors(self, texts: Sequence[str]) -> Vectors:
        """A row per sentence: the mean of the encoder's last states over the tokens of the sentence."""

    def source_attention(self, texts: Sequence[Text], layer: int = -1) -> list[SourceAttention]:
        """The attention of the decoder over the words of each source; `layer` counts those that have such attention."""

    def word_vocabulary(self) -> WordVocabulary:
        """The whole words of the source vocabulary with their input vectors."""

    def visible_words(self, texts: Sequence[Text]) -> list[range]:
        """For each text the words that are left when it is cut to what the model can read."""
