"""What a search may ask for, as data.

A search awaits a request; the scheduler collects the requests of many searches, lets a service answer all of a kind
together, and resumes each search with its answer.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Self, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from stockade.core.example import NoScores, Scores
from stockade.core.masks import Keep
from stockade.core.protocols import (
    AttentionPieces,
    AttentionQuery,
    Filling,
    ImportanceObjective,
    MixedCopies,
    NoisedCopies,
    TokenScores,
    VocabularyKind,
    WordVocabulary,
)
from stockade.core.records import Outcome
from stockade.core.seeds import derive_seed
from stockade.core.text import Text
from stockade.engine.batching import estimated_tokens

Answer = TypeVar("Answer")


class Request(Generic[Answer]):
    """Base of all requests: `await request` suspends the search until the engine has the answer."""

    __slots__ = ()

    @property
    def tokens(self) -> int | None:
        """About how many tokens a model reads for the answer; None if the request need not wait for others.

        Estimated from the first text, because the texts of a request are versions of each other.
        """
        return None

    def __await__(self) -> Generator[Request[Answer], Any, Answer]:
        return cast(Answer, (yield self))


@dataclass(frozen=True, slots=True)
class Draw:
    """Names the random choices that a randomised model makes for a query, so that they never depend on call order.

    Parameters
    ----------
    search
        The seed of the search.
    index
        The number of the query within the search; 0 is the clean text.
    """

    search: int
    index: int

    def seed(self, offset: int) -> int:
        """The seed for the query that comes so many queries later."""
        return derive_seed(self.search, self.index + offset)


def draw_seed(seed: int, id: str, attack: str) -> int:
    """The seed of the random choices that a randomised model makes for the search of an attack on an example."""
    return derive_seed(seed, id, attack, "draws")


def confirmation_draw(search: int, index: int) -> Draw:
    """The random choices for what the harness asks again about: apart from those of the queries, so that a search goes
    on as if nothing had been asked in between.

    Parameters
    ----------
    search
        The seed of the search.
    index
        How many such answers there were before.
    """
    return Draw(derive_seed(search, "confirmation"), index)


def clean_draw(seed: int, id: str) -> Draw:
    """The random choices for the clean text of an example: the same for all attacks, which then share one clean
    accuracy.
    """
    return Draw(derive_seed(seed, "clean", id), 0)


@dataclass(frozen=True, slots=True)
class Query(Request[Answer]):
    """Base of the requests that cost logical queries, one for each text.

    Parameters
    ----------
    texts
        What the model is asked about.
    probe
        Whether the texts only show the search where to go, such as texts without a word. Others are candidates: a
        search without any has tried nothing.
    partial
        Whether texts may stay without an answer (`NoScores`): those that the query budget does not reach, and those
        that the model fails on. Otherwise either ends the search. `attacks/watch.py` sets it for all that an attack
        asks.
    counted
        Whether the texts count as queries; off for what the harness itself asks.
    draw
        Names the random choices of a randomised model for the first text; the scheduler adds it where it is missing.
    """

    texts: Sequence[Any]
    probe: bool = False
    partial: bool = False
    counted: bool = True
    draw: Draw | None = None

    def first(self, count: int) -> Self:
        """The same request for the first `count` texts."""
        return replace(self, texts=self.texts[:count])

    def scores_in(self, answer: Any) -> Sequence[Scores]:
        """The scores in an answer to this request."""
        return cast(Sequence[Scores], answer)

    def without_answer(self, scores: NoScores) -> Any:
        """What stands in an answer for a text that has none."""
        return scores

    def rescored(self, item: Any, scores: Scores) -> Any:
        """What stands in an answer for a text, with other scores."""
        return scores

    @property
    def tokens(self) -> int:
        return _tokens(self.texts)


@dataclass(frozen=True, slots=True)
class Score(Query[list[Scores]]):
    """Class probabilities of each text, in order. Costs one logical query per text."""

    texts: Sequence[Text]


@dataclass(frozen=True, slots=True)
class Confirm(Request[list[Scores]]):
    """Class probabilities of a text that is sent to the model alone, `draws` times, past all caches. Costs no query."""

    text: Text
    draws: int = 1
    draw: Draw | None = None


@dataclass(frozen=True, slots=True)
class Fallback(Request[None]):
    """What an attack would return if it ended here: the outcome, should the query budget or the model stop it, or
    should it end without a success although it had one in hand. Costs no query.
    """

    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Masked(Request[NDArray[np.float64]]):
    """Class probabilities of copies of a text in which words are masked, a row per copy.

    Parameters
    ----------
    words
        The words of the text, which are joined by blanks.
    premise
        The premise of a pair of texts.
    keep
        Which words stay, a row per copy. Any other becomes a single mask.
    mask
        The mask for black boxes; other models use their mask token.
    logits
        Whether the rows are logits; of a model that does not show them, centred logarithms of its probabilities.
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
class VisibleWords(Request[Sequence[int]]):
    """The words of a text that the victim reads: all of them, unless it truncates long texts. Costs no query."""

    text: Text


@dataclass(frozen=True, slots=True)
class ClassNames(Request[tuple[str, ...]]):
    """The names of the victim's classes, in order. Costs no query."""


@dataclass(frozen=True, slots=True)
class Gradient(Request[list[NDArray[np.float32]]]):
    """For each text the gradient of the loss of `label` with respect to the input vector of each word (white box)."""

    texts: Sequence[Text]
    label: int

    @property
    def tokens(self) -> int:
        return _tokens(self.texts)


@dataclass(frozen=True, slots=True)
class Vocabulary(Request[WordVocabulary]):
    """The words the victim knows and their input vectors (white box).

    A black box shows none: that ends the run, or the answer has no words where the vocabulary is not `required`. With
    the kind "all" digits and punctuation are words too, for a model that shows them.
    """

    required: bool = True
    kind: VocabularyKind = "letters"


@dataclass(frozen=True, slots=True)
class WordFeatures(Request[NDArray[np.float32]]):
    """What the victim makes of each word of a vocabulary: its input vector, and the sentence vector of a text of that
    word alone (white box). A row per word; both parts are centred and of one mean length. Costs no query: it is about
    no text, and is computed once for all searches.
    """

    vocabulary: WordVocabulary


@dataclass(frozen=True, slots=True)
class Zeroed(Query[list[Scores]]):
    """Class probabilities of texts in which the input vectors of a word are zeroed (white box).

    Each of `texts` is a text with the index of that word. Costs one logical query per text.
    """

    texts: Sequence[tuple[Text, int]]
    probe: bool = True


@dataclass(frozen=True, slots=True)
class Represent(Query[list[tuple[Scores, NDArray[np.float32]]]]):
    """Class probabilities of each text and the victim's sentence vector for it (white box). Costs one logical query
    per text.
    """

    texts: Sequence[Text]

    def scores_in(self, answer: Any) -> Sequence[Scores]:
        return [scores for scores, _ in answer]

    def without_answer(self, scores: NoScores) -> Any:
        return scores, np.zeros(0, dtype=np.float32)

    def rescored(self, item: Any, scores: Scores) -> Any:
        return scores, item[1]


@dataclass(frozen=True, slots=True)
class Attention(Request[NDArray[np.float32]]):
    """How much attention each word of a text gets in a layer of the victim (white box)."""

    text: Text
    layer: int = 0
    query: AttentionQuery = "mean"
    pieces: AttentionPieces = "sum"

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
    """What a masked LM would write in place of a word of each text, its first `count` guesses, best first.

    Each of `places` is a text with the index of the word that is masked.
    """

    places: Sequence[tuple[Text, int]]
    count: int = 50

    @property
    def tokens(self) -> int:
        return _tokens(self.places)


@dataclass(frozen=True, slots=True)
class WordProbabilities(Request[list[tuple[float, ...]]]):
    """How likely a masked LM finds words in place of another, as log-probabilities.

    Each of `questions` is a text, the index of the word that is masked, and the words to put there.
    """

    questions: Sequence[tuple[Text, int, Sequence[str]]]

    @property
    def tokens(self) -> int:
        return _tokens(self.questions)


@dataclass(frozen=True, slots=True)
class Predict(Request[list[tuple[tuple[Filling, ...], ...]]]):
    """What a masked LM would write at every word of an unmasked text: `count` guesses per word and piece."""

    text: Text
    count: int = 48

    @property
    def tokens(self) -> int:
        return _tokens([self.text])


@dataclass(frozen=True, slots=True)
class Surprisal(Request[tuple[float, ...]]):
    """How unexpected a masked LM finds each word of an unmasked text, which is `words` joined by blanks.

    The surprisal of a word is the mean of -ln p over its pieces, 0 for words beyond what the LM reads.
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
