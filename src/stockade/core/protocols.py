"""The seams: what Stockade asks of a classifier, and of an attack."""

from __future__ import annotations

from collections.abc import Coroutine, Hashable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from stockade.core.example import Example, Scores
from stockade.core.masks import Keep
from stockade.core.records import Outcome
from stockade.core.text import Text, TextInput

Probabilities = NDArray[np.float64]


@runtime_checkable
class Classifier(Protocol):
    """Anything that gives each text a row of class probabilities.

    `labels` are the class names in column order. A model whose answer to the same text may differ from call to call
    sets `deterministic = False`, and is then neither cached nor deduplicated. Texts are strings, or `(premise,
    hypothesis)`.
    """

    @property
    def labels(self) -> tuple[str, ...]: ...

    @property
    def deterministic(self) -> bool: ...

    def predict_proba(self, inputs: Sequence[TextInput]) -> Probabilities: ...


class Encoded(Protocol):
    """A tokenised text: its length decides the batch it joins, equal keys are the same text to the model."""

    @property
    def key(self) -> Hashable: ...

    def __len__(self) -> int: ...


class EncodedWords(Encoded, Protocol):
    """Words of one number of pieces at a place; `numbers` are their places in the list that was asked about."""

    @property
    def numbers(self) -> tuple[int, ...]: ...


@runtime_checkable
class EncodingClassifier(Classifier, Protocol):
    """A classifier that lets the engine tokenise once, batch by true length and drop texts it cannot tell apart."""

    def encode(self, inputs: Sequence[TextInput]) -> Sequence[Encoded]: ...

    def predict_encoded(self, batch: Sequence[Any]) -> Probabilities: ...


@runtime_checkable
class LogitClassifier(EncodingClassifier, Protocol):
    """A classifier that shows its logits themselves, not only what a softmax leaves of them."""

    def logits_encoded(self, batch: Sequence[Any]) -> Probabilities: ...


@runtime_checkable
class MaskingClassifier(EncodingClassifier, Protocol):
    """A classifier that hides words of a text without tokenising it anew for each copy."""

    def encode_masked(self, words: Sequence[str], premise: str | None, keep: Keep) -> Sequence[Encoded]:
        """The copies of a text of these words, joined by blanks, in which each word that is not kept is one mask."""
        ...


@runtime_checkable
class CompositeClassifier(Classifier, Protocol):
    """A classifier that answers by asking another one, such as a defense around a model.

    `answer` is a coroutine of requests to `inner`, so the engine serves what the answers to many texts ask together. It
    takes every random choice from `draw`, a number; where the classifier is deterministic that is the same for all.
    """

    @property
    def inner(self) -> Classifier: ...

    def answer(self, text: Text, draw: int) -> Coroutine[Any, Any, Scores]: ...


@dataclass(frozen=True, slots=True, eq=False)
class WordVocabulary:
    """The whole words of a model's vocabulary with their input vectors."""

    words: tuple[str, ...]
    vectors: NDArray[np.float32]


@runtime_checkable
class WhiteBoxClassifier(Classifier, Protocol):
    """A classifier that shows its gradients: what the loss of a class does when a word's input vector moves."""

    def word_gradients(self, texts: Sequence[Text], label: int) -> list[NDArray[np.float32]]:
        """For each text a row per word: the gradient of the loss of `label`, summed over the word's pieces; zeros for
        words the model does not read.
        """
        ...

    def word_vocabulary(self) -> WordVocabulary: ...


AttentionQuery = Literal["mean", "first"]
"""Whose attention counts: the mean over all tokens, or the first token's, which is [CLS] for the BERT family."""


@runtime_checkable
class AttentiveClassifier(Protocol):
    """A classifier that shows how much attention its words get."""

    def word_attention(self, texts: Sequence[Text], layer: int, query: AttentionQuery) -> list[NDArray[np.float32]]:
        """For each text a number per word: the attention its tokens get, of one that is handed out to all tokens."""
        ...


@runtime_checkable
class ZeroingClassifier(Protocol):
    """A classifier that can be asked as if a word's input vectors were zero."""

    def predict_zeroed(self, places: Sequence[tuple[Text, int]]) -> Probabilities:
        """Class probabilities of each text with the vectors of the word at the index zeroed."""
        ...


ImportanceObjective = Literal["loss_pred", "logit_pred", "half_sq_norm"]
"""What importance is the gradient of: the loss of the predicted class, its logit, or half the sum of squared logits."""

TokenScores = tuple[tuple[float, ...], ...]
"""For each word of a text a number for each of its tokens; none for words the model does not read."""


@dataclass(frozen=True, slots=True)
class NoisedCopies:
    """Copies of a text with Gaussian noise on the input vectors of some tokens, which are (word, token of the word).

    The noise of all copies comes from `seed` and from nothing else.
    """

    text: Text
    tokens: tuple[tuple[int, int], ...]
    deviation: float
    copies: int
    seed: int


@dataclass(frozen=True, slots=True, eq=False)
class MixedCopies:
    """Copies of a text in which the input vectors of some words are mixtures of those of other words.

    `words` are the indices of the words, `entries` for each the numbers of words of the model's `word_vocabulary`, and
    `weights` a row per copy: for each word how much of each entry is in its mixture. A word that the model reads as
    several tokens, or not at all, stays as it is.
    """

    text: Text
    words: tuple[int, ...]
    entries: NDArray[np.int64]
    weights: NDArray[np.float32]


@runtime_checkable
class ImportanceClassifier(Protocol):
    """A classifier that shows how much its answer depends on each token."""

    def token_importance(self, texts: Sequence[Text], objective: ImportanceObjective) -> list[TokenScores]:
        """For each text the L2 norms of the objective's gradient with respect to its tokens' input vectors."""
        ...


@runtime_checkable
class NoisedClassifier(Protocol):
    """A classifier that can be asked as if its input vectors were noisy."""

    def predict_noised(self, asked: Sequence[NoisedCopies]) -> Probabilities:
        """Class probabilities of all copies, a row each, in order."""
        ...


@runtime_checkable
class MixingClassifier(WhiteBoxClassifier, Protocol):
    """A classifier that can be asked as if the input vectors of its words were mixtures."""

    def predict_mixed(self, asked: Sequence[MixedCopies]) -> Probabilities:
        """Class probabilities of all copies, a row each, in order."""
        ...


@runtime_checkable
class RepresentingClassifier(Protocol):
    """A classifier that shows its sentence vectors: what its last layer reads."""

    def represent(self, inputs: Sequence[TextInput]) -> tuple[Probabilities, NDArray[np.float32]]:
        """Class probabilities and sentence vectors, a row each per text."""
        ...


@runtime_checkable
class WindowedClassifier(Protocol):
    """A classifier that may cut a text to what it can read, and says which words are left."""

    def visible_words(self, texts: Sequence[Text]) -> list[range]:
        """For each text the words of which the model sees at least a piece; they are always in one stretch."""
        ...


@runtime_checkable
class ParallelClassifier(Protocol):
    """A classifier that computes several batches at once better than one batch on several threads."""

    @property
    def workers(self) -> int: ...

    def start_worker(self) -> None:
        """Called once in each worker thread before its first batch."""
        ...


@runtime_checkable
class Fingerprinted(Protocol):
    """A model that can say what exactly it is: the manifest records it and `--resume` compares it."""

    def fingerprint(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Filling:
    """One guess of a masked LM: the word, its raw score, whether it is a whole word or a piece of one, its token."""

    word: str
    score: float
    whole: bool
    token: int = -1


class MaskedLanguageModel(Protocol):
    """Guesses hidden words. A place is what stands before and behind the hidden word."""

    @property
    def name(self) -> str: ...

    def encode(self, places: Sequence[tuple[str, str]]) -> Sequence[Encoded]: ...

    def fill(self, batch: Sequence[Any], count: int) -> list[tuple[Filling, ...]]: ...

    def encode_words(self, place: tuple[str, str], words: Sequence[str]) -> Sequence[EncodedWords]:
        """The question how likely each word is at a place, in one part for each number of pieces."""
        ...

    def word_log_probabilities(self, batch: Sequence[Any]) -> list[tuple[float, ...]]:
        """The log-probabilities of the words of each part; of a word of several pieces, that of all together."""
        ...

    def predict(
        self, texts: Sequence[str], spans: Sequence[Sequence[tuple[int, int]]], count: int
    ) -> list[list[tuple[tuple[Filling, ...], ...]]]:
        """Guesses at every piece of the words at the spans of each text, which are seen as they are."""
        ...

    def surprisals(self, texts: Sequence[str], spans: Sequence[Sequence[tuple[int, int]]]) -> list[list[float]]:
        """How unexpected the words at the spans of each text are, which are seen as they are."""
        ...

    def perplexities(self, rows: Sequence[tuple[int, ...]]) -> list[float]: ...


class SentenceEncoder(Protocol):
    """Strings to vectors of unit length; the dot product of two is their cosine."""

    @property
    def name(self) -> str: ...

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]: ...


class Attack(Protocol):
    """A published attack: a frozen dataclass of options with one coroutine.

    `search` awaits requests (`Score`, …) and returns an `Outcome`. It knows nothing of batches, devices or other
    examples, and takes every random choice from `rng`, which depends only on the run's seed, the example and the
    attack.
    """

    async def search(self, example: Example, rng: Random) -> Outcome: ...


@runtime_checkable
class ResourcefulAttack(Protocol):
    """An attack whose results depend on files or packages besides its options: the manifest records what they are and
    `--resume` compares it.
    """

    def resources(self) -> Mapping[str, str]:
        """Names and fingerprints of what it will use; an error here ends the command before anything is attacked."""
        ...
