"""The seams of translators: what Stockade expects of a model that turns source sentences into target sentences.

`Translator` is enough for attacks that only read translations. `InspectableTranslator` adds what white-box attacks and
studies look at: the decoder's logits, the encoder's sentence vectors, and attention over the words of the source.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from stockade.core.protocols import WordVocabulary
from stockade.core.text import Text

Vectors = NDArray[np.float32]
_LARGEST_HINGE = 1e4
"""What stands for a token that may not be written at a step, whose logit is minus infinity."""


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
        The sub-words of the translation as they are written, one per step, without the end-of-sentence token.
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

    def visible_words(self, texts: Sequence[Text]) -> Sequence[Sequence[int]]:
        """For each text the words that are left when it is cut to what the model can read."""


def hinge_loss(steps: GreedySteps, columns: Sequence[int], tokens: Sequence[int]) -> float:
    """How far a greedy translation is from writing a keyword (Seq2Sick, Cheng et al. 2018): 0 where each of its
    sub-words is chosen at a step of its own.

    The sum over sub-words k of min_t max(0, max_{v ≠ k} z_t[v] − z_t[k]), where a step t that an earlier sub-word has
    used is left out. A translation of fewer steps than sub-words counts the largest term of those that are left over.

    Parameters
    ----------
    steps
        The translation step by step.
    columns
        For each sub-word the column of `steps.wanted` that has its logits.
    tokens
        The sub-words.
    """
    used: set[int] = set()
    total = 0.0
    for column, token in zip(columns, tokens, strict=True):
        hinges = np.clip(steps.margins(column, token).astype(np.float64), 0.0, _LARGEST_HINGE)
        free = [step for step in range(len(hinges)) if step not in used]
        if not free:
            total += float(hinges.max())
            continue
        nearest = min(free, key=lambda step: (hinges[step], step))
        used.add(nearest)
        total += float(hinges[nearest])
    return total


def character_loss(translation: str, keyword: str) -> float:
    """The same for translators that show no logits: 1 less the similarity of the keyword to the words of a translation
    that look most like it, letter by letter; 0 where the keyword is among them.
    """
    words, length = Text.parse(translation).words, max(1, len(Text.parse(keyword).words))
    runs = {" ".join(words[start : start + length]) for start in range(max(1, len(words) - length + 1))}
    if has_keyword(translation, keyword):
        return 0.0
    plain = " ".join(Text.parse(keyword).words)
    return 1.0 - max(difflib.SequenceMatcher(None, plain, run, autojunk=False).ratio() for run in runs)


def has_keyword(translation: str, keyword: str) -> bool:
    """Whether the words of a keyword, usually one, stand next to each other in a translation, to the letter."""
    words, wanted = Text.parse(translation).words, Text.parse(keyword).words
    count = len(wanted)
    return count > 0 and any(words[start : start + count] == wanted for start in range(len(words) - count + 1))
