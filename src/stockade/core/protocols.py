"""The seams: what Stockade expects of classifiers, language models and attacks.

`Classifier` is enough for most attacks. The protocols after it are optional: each adds a thing that some attacks and
defenses need, and a model that lacks it is refused in one sentence.
"""

from __future__ import annotations

from collections.abc import Collection, Coroutine, Hashable, Mapping, Sequence
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
    """Anything that gives each text a row of class probabilities."""

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the classes, in the order of the columns."""

    @property
    def deterministic(self) -> bool:
        """Whether the same text always gets the same answer; otherwise answers are neither cached nor deduplicated."""

    def predict_proba(self, inputs: Sequence[TextInput]) -> Probabilities:
        """A row of class probabilities per text. A text is a string, or `(premise, hypothesis)`."""


@runtime_checkable
class LabelOnlyClassifier(Protocol):
    """A classifier that says of itself whether it has no scores: a row is then 1 for a class and 0 for the others."""

    @property
    def label_only(self) -> bool:
        """Whether it only names classes."""


def is_label_only(classifier: object) -> bool:
    """Whether a classifier has declared that it only names classes; one that says nothing has scores."""
    return bool(getattr(classifier, "label_only", False))


class Encoded(Protocol):
    """A tokenised text."""

    @property
    def key(self) -> Hashable:
        """Texts of equal keys are the same to the model."""

    def __len__(self) -> int:
        """The number of tokens, which decides the batch that the text joins."""


class EncodedWords(Encoded, Protocol):
    """A masked text and the words of a list that have as many pieces as it has masks."""

    @property
    def numbers(self) -> tuple[int, ...]:
        """The indices of those words in the list."""


@runtime_checkable
class EncodingClassifier(Classifier, Protocol):
    """A classifier that tokenises apart from predicting, so that texts are batched by length and computed once."""

    def encode(self, inputs: Sequence[TextInput]) -> Sequence[Encoded]:
        """Each text tokenised, without padding."""

    def predict_encoded(self, batch: Sequence[Any]) -> Probabilities:
        """A row of class probabilities per tokenised text."""


@runtime_checkable
class LogitClassifier(EncodingClassifier, Protocol):
    """A classifier that shows its logits, not only probabilities."""

    def logits_encoded(self, batch: Sequence[Any]) -> Probabilities:
        """A row of logits per tokenised text."""


@runtime_checkable
class MaskingClassifier(EncodingClassifier, Protocol):
    """A classifier that masks words of a text without tokenising it anew for each copy."""

    def encode_masked(self, words: Sequence[str], premise: str | None, keep: Keep) -> Sequence[Encoded]:
        """Copies of the text of these words, joined by blanks; each word that does not stay is a single mask."""


@runtime_checkable
class CompositeClassifier(Classifier, Protocol):
    """A classifier that answers by querying another one, such as a defense around a model."""

    @property
    def inner(self) -> Classifier:
        """The classifier that is queried."""

    def answer(self, text: Text, draw: int) -> Coroutine[Any, Any, Scores]:
        """A coroutine of requests to `inner`, so that the answers to many texts are computed together.

        Every random choice comes from the seed `draw`; a deterministic classifier is always given the same.
        """


@dataclass(frozen=True, slots=True, eq=False)
class WordVocabulary:
    """The whole words of a model's vocabulary with their input vectors."""

    words: tuple[str, ...]
    vectors: NDArray[np.float32]


@runtime_checkable
class WhiteBoxClassifier(Classifier, Protocol):
    """A classifier that shows its gradients and the words it knows."""

    def word_gradients(self, texts: Sequence[Text], label: int) -> list[NDArray[np.float32]]:
        """For each text a row per word: the gradient of the loss of `label` with respect to the word's input vectors,
        summed over its pieces; zeros for words the model does not read.
        """

    def word_vocabulary(self) -> WordVocabulary:
        """The whole words of the vocabulary with their input vectors."""


VocabularyKind = Literal["letters", "all"]
"""Which entries of a vocabulary may be written: words of letters, or digits, punctuation and other signs too."""


@runtime_checkable
class SignVocabularyClassifier(WhiteBoxClassifier, Protocol):
    """A classifier that also shows the digits and signs of its vocabulary."""

    def whole_vocabulary(self) -> WordVocabulary:
        """The words of `word_vocabulary` and all other entries that the tokenizer reads as one when they are written
        by themselves: numbers, punctuation, signs.
        """


AttentionQuery = Literal["mean", "first"]
"""Whose attention counts: the mean over all tokens, or the first token's, which is [CLS] for the BERT family."""


AttentionPieces = Literal["sum", "mean", "max"]
"""What the attention of a word of several pieces is: the share that all of them get together, the mean of a piece, or
that of its most attended piece. A sum makes long words look attended.
"""


@runtime_checkable
class AttentiveClassifier(Protocol):
    """A classifier that shows how much attention its words get."""

    def word_attention(self, texts: Sequence[Text], layer: int, query: AttentionQuery) -> list[NDArray[np.float32]]:
        """For each text a number per word: the share of attention that its tokens get; all tokens together get 1."""


@runtime_checkable
class PieceAttentiveClassifier(AttentiveClassifier, Protocol):
    """A classifier that shows how much attention the pieces of its words get."""

    def piece_attention(
        self, texts: Sequence[Text], layer: int, query: AttentionQuery
    ) -> list[list[NDArray[np.float32]]]:
        """For each text and word the shares of attention that its pieces get; none for a word that is not read."""


@runtime_checkable
class ZeroingClassifier(Protocol):
    """A classifier that can be queried with the input vectors of a word zeroed."""

    def predict_zeroed(self, places: Sequence[tuple[Text, int]]) -> Probabilities:
        """Class probabilities of each text with the vectors of the word at the index zeroed."""


ImportanceObjective = Literal["loss_pred", "logit_pred", "half_sq_norm"]
"""What importance is the gradient of: the loss of the predicted class, its logit, or half the sum of squared logits."""

TokenScores = tuple[tuple[float, ...], ...]
"""For each word of a text a number for each of its tokens; none for words the model does not read."""


@dataclass(frozen=True, slots=True)
class NoisedCopies:
    """Copies of a text with Gaussian noise on the input vectors of some tokens.

    Parameters
    ----------
    text
        The text.
    tokens
        The tokens that get noise, as (index of the word, index of the token within the word).
    deviation
        The standard deviation of the noise.
    copies
        How many copies to make.
    seed
        The seed of the noise of all copies.
    """

    text: Text
    tokens: tuple[tuple[int, int], ...]
    deviation: float
    copies: int
    seed: int


@dataclass(frozen=True, slots=True, eq=False)
class MixedCopies:
    """Copies of a text in which the input vectors of some words are mixtures of those of other words.

    A word that the model reads as several tokens, or not at all, stays as it is.

    Parameters
    ----------
    text
        The text.
    words
        The indices of the words that are mixed.
    entries
        For each such word the indices of words in the model's `word_vocabulary`.
    weights
        A row per copy: for each such word the share of each entry in its mixture.
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


@runtime_checkable
class NoisedClassifier(Protocol):
    """A classifier that can be queried with noise on its input vectors."""

    def predict_noised(self, groups: Sequence[NoisedCopies]) -> Probabilities:
        """Class probabilities of all copies, a row each, in order."""


@runtime_checkable
class MixingClassifier(WhiteBoxClassifier, Protocol):
    """A classifier that can be queried with mixtures for the input vectors of words."""

    def predict_mixed(self, groups: Sequence[MixedCopies]) -> Probabilities:
        """Class probabilities of all copies, a row each, in order."""


@runtime_checkable
class RepresentingClassifier(Protocol):
    """A classifier that shows its sentence vectors: the inputs of its last layer."""

    def represent(self, inputs: Sequence[TextInput]) -> tuple[Probabilities, NDArray[np.float32]]:
        """Class probabilities and sentence vectors, a row each per text."""


@runtime_checkable
class EncodedRepresentingClassifier(RepresentingClassifier, EncodingClassifier, Protocol):
    """One that also shows them for texts that are tokenised already, so that the engine cuts the batches."""

    def represent_encoded(self, batch: Sequence[Any]) -> tuple[Probabilities, NDArray[np.float32]]:
        """Class probabilities and sentence vectors of encoded texts, in one forward pass."""


@runtime_checkable
class WindowedClassifier(Protocol):
    """A classifier that may truncate a text, and says which words are left."""

    def visible_words(self, texts: Sequence[Text]) -> Sequence[Sequence[int]]:
        """For each text the words of which the model reads at least a piece."""


@runtime_checkable
class ParallelClassifier(Protocol):
    """A classifier that is faster with several batches at once than with one batch on several threads."""

    @property
    def workers(self) -> int:
        """How many batches to compute at the same time."""

    def start_worker(self) -> None:
        """Called once in each worker thread before its first batch."""


@runtime_checkable
class ServiceClassifier(ParallelClassifier, Protocol):
    """A classifier that waits for somebody else: it is asked about so many texts a call, several calls at once."""

    @property
    def batch_rows(self) -> int:
        """How many texts a call has."""


@runtime_checkable
class Fingerprinted(Protocol):
    """A model that identifies itself: the manifest records its fingerprint and a resume compares it."""

    def fingerprint(self) -> str:
        """A hash of everything that decides the model's answers."""


@dataclass(frozen=True, slots=True)
class Filling:
    """A guess of a masked LM: the word, its raw score, whether it is a whole word rather than a piece, its token."""

    word: str
    score: float
    whole: bool
    token: int = -1


class MaskedLanguageModel(Protocol):
    """Guesses masked words. A place is the text before and the text after a masked word."""

    @property
    def name(self) -> str:
        """What the manifest calls the model."""

    def encode(self, places: Sequence[tuple[str, str]]) -> Sequence[Encoded]:
        """Each place tokenised, with a mask in the middle."""

    def fill(self, batch: Sequence[Any], count: int) -> list[tuple[Filling, ...]]:
        """The best `count` guesses at the mask of each tokenised place."""

    def encode_words(self, place: tuple[str, str], words: Sequence[str]) -> Sequence[EncodedWords]:
        """A place and words to rate there, in one part for each number of pieces that a word may have."""

    def word_log_probabilities(self, batch: Sequence[Any]) -> list[tuple[float, ...]]:
        """The log-probabilities of the words of each part; those of the pieces of a word are added."""

    def predict(
        self, texts: Sequence[str], spans: Sequence[Sequence[tuple[int, int]]], count: int
    ) -> list[list[tuple[tuple[Filling, ...], ...]]]:
        """Guesses at every piece of the words at the spans of each text, which is not masked."""

    def surprisals(self, texts: Sequence[str], spans: Sequence[Sequence[tuple[int, int]]]) -> list[list[float]]:
        """How unexpected the words at the spans of each text are; the text is not masked."""

    def perplexities(self, rows: Sequence[tuple[int, ...]]) -> list[float]:
        """exp of the mean cross-entropy of each row of tokens."""


class SentenceEncoder(Protocol):
    """Turns texts into vectors of unit length; the dot product of two is their cosine."""

    @property
    def name(self) -> str:
        """What the manifest calls the model."""

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """A vector per text."""


class Attack(Protocol):
    """An attack: a frozen dataclass of options with a coroutine that searches for an adversarial text."""

    async def search(self, example: Example, rng: Random) -> Outcome:
        """Await requests such as `Score` and return an `Outcome`.

        It knows nothing of batches, devices or other examples, and takes every random choice from `rng`, which depends
        only on the run's seed, the example and the attack.
        """


@runtime_checkable
class ResourcefulAttack(Protocol):
    """An attack whose results depend on files or packages besides its options; a resume compares them."""

    def resources(self) -> Mapping[str, str]:
        """Names and fingerprints of what it will use; an error here ends the command before anything is attacked."""


@runtime_checkable
class ScanningAttack(Protocol):
    """An attack that may ask about every word of a vocabulary in one place of a text, as others may after it."""

    @property
    def scan_order(self) -> int:
        """Its turn among such attacks on one text; those whose answers serve the others go first."""


@runtime_checkable
class ClassBoundAttack(Protocol):
    """An attack that is made for certain classes, such as one that reads rules from a file."""

    def check_classes(self, classes: Sequence[str], present: Collection[str]) -> None:
        """Raise an error if the attack does not fit; asked before anything is attacked.

        Parameters
        ----------
        classes
            The model's classes, in order.
        present
            Those that the data have.
        """
