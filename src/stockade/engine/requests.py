"""What a search may ask for, as data.

A search awaits a request; the scheduler collects the requests of all running searches, lets one service answer all of
a kind together, and sends each search its own answer back.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Self, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from stockade.core.example import Scores
from stockade.core.masks import Keep
from stockade.core.protocols import (
    AttentionQuery,
    Filling,
    ImportanceObjective,
    MixedCopies,
    NoisedCopies,
    TokenScores,
    WordVocabulary,
)
from stockade.core.seeds import derive_seed
from stockade.core.text import Text
from stockade.engine.batching import estimated_tokens

Answer = TypeVar("Answer")


class Request(Generic[Answer]):
    """Base of all requests: awaiting one suspends the search until the engine has the answer."""

    __slots__ = ()

    @property
    def tokens(self) -> int | None:
        """About how many tokens a model reads for the answer; None where a request gains nothing from company.

        The first text stands for all: they are versions of one.
        """
        return None

    def __await__(self) -> Generator[Request[Answer], Any, Answer]:
        return cast(Answer, (yield self))


@dataclass(frozen=True, slots=True)
class Draw:
    """The name of a random choice: of which search, and for the how-manieth thing that it asks about."""

    search: int
    number: int

    def seed(self, further: int) -> int:
        """The seed for the thing that is so much further on."""
        return derive_seed(self.search, self.number + further)


def clean_draw(seed: int, text: str) -> Draw:
    """The choices for the clean text of this id, whoever asks: all attacks, in all ways, then speak of one clean
    accuracy.
    """
    return Draw(derive_seed(seed, "clean", text), 0)


@dataclass(frozen=True, slots=True)
class Query(Request[Answer]):
    """Base of the requests that cost logical queries: one for each thing asked about.

    When the budget does not reach for all of them, a request with `partial` set is answered for the first only (the
    search sees a shorter list); any other ends the search. `counted` is off for what the harness itself asks. `draw` is
    what a randomised model's choices for the first thing asked depend on; the scheduler gives one to what has none.
    """

    texts: Sequence[Any]
    partial: bool = False
    counted: bool = True
    draw: Draw | None = None

    def first(self, count: int) -> Self:
        """The same request for the first `count` of them."""
        return replace(self, texts=self.texts[:count])

    @property
    def tokens(self) -> int:
        return _tokens(self.texts)


@dataclass(frozen=True, slots=True)
class Score(Query[list[Scores]]):
    """Class probabilities of each text, in order."""

    texts: Sequence[Text]


@dataclass(frozen=True, slots=True)
class Confirm(Request[list[Scores]]):
    """Class probabilities of one text given to the model alone, `draws` times, past all caches. Costs no query."""

    text: Text
    draws: int = 1
    draw: Draw | None = None


@dataclass(frozen=True, slots=True)
class Masked(Request[NDArray[np.float64]]):
    """Class probabilities of copies of a text in which words are hidden, a row per copy; `keep` says which words stay.

    The text is `words` joined by blanks. A hidden word is one mask, whatever it was: the model's own mask token, or
    `mask` where the model is a black box. With `logits` the rows are the model's logits; of a model that does not show
    them, logarithms of probabilities that sum to zero.
    """

    words: Sequence[str]
    premise: str | None
    keep: Keep
    mask: str = "[MASK]"
    logits: bool = False

    @property
    def tokens(self) -> int:
        return len(self.keep) * (len(self.words) + len((self.premise or "").split()))


@dataclass(frozen=True, slots=True)
class VisibleWords(Request[range]):
    """The words of a text that the victim reads; all of them unless it cuts long texts. Costs no query."""

    text: Text


@dataclass(frozen=True, slots=True)
class ClassNames(Request[tuple[str, ...]]):
    """What the victim's classes are called, in order. Costs no query."""


@dataclass(frozen=True, slots=True)
class Gradient(Request[list[NDArray[np.float32]]]):
    """For each text the gradient of the loss of `label` with respect to each word's input vector (white box)."""

    texts: Sequence[Text]
    label: int

    @property
    def tokens(self) -> int:
        return _tokens(self.texts)


@dataclass(frozen=True, slots=True)
class Vocabulary(Request[WordVocabulary]):
    """The words the victim knows and their input vectors (white box).

    A black box shows none: that ends the run, or the answer has no words where the vocabulary is not `required`.
    """

    required: bool = True


@dataclass(frozen=True, slots=True)
class Zeroed(Query[list[Scores]]):
    """Class probabilities of texts with the input vectors of one word zeroed: (text, index of the word) each (white
    box).
    """

    texts: Sequence[tuple[Text, int]]


@dataclass(frozen=True, slots=True)
class Represent(Query[list[tuple[Scores, NDArray[np.float32]]]]):
    """Class probabilities and the victim's own sentence vector of each text (white box)."""

    texts: Sequence[Text]


@dataclass(frozen=True, slots=True)
class Attention(Request[NDArray[np.float32]]):
    """How much attention each word of a text gets from the victim in one layer (white box)."""

    text: Text
    layer: int = 0
    query: AttentionQuery = "mean"

    @property
    def tokens(self) -> int:
        return _tokens([self.text])


@dataclass(frozen=True, slots=True)
class Importance(Request[TokenScores]):
    """How much the victim's answer depends on each token of each word of a text (white box)."""

    text: Text
    objective: ImportanceObjective = "loss_pred"

    @property
    def tokens(self) -> int:
        return _tokens([self.text])


@dataclass(frozen=True, slots=True)
class Noised(Request[NDArray[np.float64]]):
    """Class probabilities of copies of a text with noisy input vectors, a row per copy (white box)."""

    copies: NoisedCopies

    @property
    def tokens(self) -> int:
        return self.copies.copies * _tokens([self.copies.text])


@dataclass(frozen=True, slots=True)
class Mixed(Request[NDArray[np.float64]]):
    """Class probabilities of copies of a text with mixed input vectors, a row per copy (white box)."""

    copies: MixedCopies

    @property
    def tokens(self) -> int:
        return len(self.copies.weights) * _tokens([self.copies.text])


@dataclass(frozen=True, slots=True)
class Fill(Request[list[tuple[Filling, ...]]]):
    """What a masked LM would write in place of one word of each text, its first `count` guesses, best first.

    `places` are texts with the index of the word that is hidden; what stands there now is not seen.
    """

    places: Sequence[tuple[Text, int]]
    count: int = 50

    @property
    def tokens(self) -> int:
        return _tokens(self.places)


@dataclass(frozen=True, slots=True)
class WordProbabilities(Request[list[tuple[float, ...]]]):
    """How likely a masked LM finds words in place of another, as log-probabilities: for each question, which is a text,
    the index of the word that is hidden, and words.
    """

    questions: Sequence[tuple[Text, int, Sequence[str]]]

    @property
    def tokens(self) -> int:
        return _tokens(self.questions)


@dataclass(frozen=True, slots=True)
class Predict(Request[list[tuple[tuple[Filling, ...], ...]]]):
    """What a masked LM would write at every word of a text it sees as it is: `count` guesses per word and piece."""

    text: Text
    count: int = 48

    @property
    def tokens(self) -> int:
        return _tokens([self.text])


@dataclass(frozen=True, slots=True)
class Surprisal(Request[tuple[float, ...]]):
    """How unexpected a masked LM finds each of these words, in the text they make joined by blanks and seen as it is:
    the mean of -ln p over the word's pieces, 0 for words beyond what the LM reads.
    """

    words: tuple[str, ...]

    @property
    def tokens(self) -> int:
        return len(self.words)


@dataclass(frozen=True, slots=True)
class Perplexity(Request[list[float]]):
    """How unlikely a masked LM finds each row of pieces by itself: exp of the mean cross-entropy, lower is likelier."""

    rows: Sequence[tuple[Filling, ...]]

    @property
    def tokens(self) -> int:
        return len(self.rows) * len(self.rows[0]) if self.rows else 0


@dataclass(frozen=True, slots=True)
class Embed(Request[NDArray[np.float32]]):
    """Sentence vectors of unit length, one row per string."""

    strings: Sequence[str]

    @property
    def tokens(self) -> int:
        return _tokens(self.strings)


def _tokens(texts: Sequence[Text | str | tuple[Any, ...]]) -> int:
    if not texts:
        return 0
    first = texts[0][0] if isinstance(texts[0], tuple) else texts[0]
    return len(texts) * estimated_tokens(first.input if isinstance(first, Text) else first)
