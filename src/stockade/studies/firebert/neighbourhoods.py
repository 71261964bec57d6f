"""What a model says around a text: of the neighbours of its most important word, and of noise on that word's vector."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from stockade.core.errors import ModelError, SearchStopped
from stockade.core.protocols import Classifier, NoisedCopies, TokenScores, WhiteBoxClassifier
from stockade.core.seeds import derive_seed
from stockade.core.text import Text, is_single_word, match_case
from stockade.defenses.switch import ranked_words
from stockade.engine.requests import Importance, Noised, Score
from stockade.engine.scheduler import Scheduler, Search
from stockade.engine.scoring import ScoringService
from stockade.experiment.store import Codec
from stockade.lexicon.neighbours import Neighbours

_DIGITS = 5


@dataclass(frozen=True, slots=True)
class NearWord:
    """A word in place of the important one: how near it is, and the class that the text then has."""

    word: str
    cosine: float
    predicted: str


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """What a model says around one text.

    Parameters
    ----------
    text
        The text.
    index, word
        Its most important word; None if no word with neighbours is read.
    predicted
        The class of the text itself.
    near
        Its neighbours, nearest first.
    noised
        The class of each copy with noise; none where the word has no vector.
    seed
        Of the noise.
    vector
        The word's input vector; None where no figure needs it, or the word is several tokens.
    """

    text: str
    index: int | None
    word: str | None
    predicted: str
    near: tuple[NearWord, ...] = ()
    noised: tuple[str, ...] = ()
    seed: int = 0
    vector: tuple[float, ...] | None = None

    def share(self, label: str) -> float | None:
        """The share of the neighbours with which the text has this class; None without neighbours."""
        return sum(near.predicted == label for near in self.near) / len(self.near) if self.near else None

    def noised_share(self, label: str) -> float | None:
        """The share of the noisy copies of this class; None without copies."""
        return sum(predicted == label for predicted in self.noised) / len(self.noised) if self.noised else None


@dataclass(frozen=True, slots=True)
class TextPair:
    """An original text and its adversarial one under one model.

    Parameters
    ----------
    model, id, label
        Whose answers, which text, and its true class.
    original, adversarial
        What the model says around both.
    """

    model: str
    id: str
    label: str
    original: Neighbourhood
    adversarial: Neighbourhood


def _read_neighbourhood(document: Mapping[str, Any]) -> Neighbourhood:
    vector = document["vector"]
    return Neighbourhood(
        **{
            **document,
            "near": tuple(NearWord(**near) for near in document["near"]),
            "noised": tuple(document["noised"]),
            "vector": None if vector is None else tuple(vector),
        }
    )


CODEC: Codec[TextPair] = Codec(
    asdict,
    lambda document: TextPair(
        document["model"],
        document["id"],
        document["label"],
        _read_neighbourhood(document["original"]),
        _read_neighbourhood(document["adversarial"]),
    ),
)


@dataclass(frozen=True, slots=True)
class Question:
    """A text to look around.

    Parameters
    ----------
    text
        The text.
    index
        The word to look around; None for the most important one.
    with_vector
        Whether a figure will need the word's vector.
    """

    text: Text
    index: int | None = None
    with_vector: bool = False


@dataclass(frozen=True, slots=True)
class Surveyor:
    """Asks a model around texts.

    Parameters
    ----------
    classifier
        The bare model, which shows its gradients and takes noise on its input vectors.
    table
        The neighbours of words.
    count
        How many neighbours of a word.
    deviation, samples
        Of the noise, and how many copies with it.
    seed
        Names the noise, together with the text.
    """

    classifier: Classifier
    table: Neighbours
    count: int
    deviation: float
    samples: int
    seed: int

    def ask(self, questions: Sequence[Question]) -> list[Neighbourhood]:
        """What the model says around each text."""
        scheduler = Scheduler.for_classifier(ScoringService(self.classifier))
        searches = [self._search(question) for question in questions]
        results: dict[int, Neighbourhood] = {}
        for finished in scheduler.run(searches):
            if isinstance(finished.result, SearchStopped):
                raise ModelError(f"The model could not be asked around a text: {finished.result}.")
            results[id(finished.search)] = finished.result
        return [results[id(search)] for search in searches]

    def _search(self, question: Question) -> Search[Neighbourhood]:
        return Search(lambda: self._look(question), weight=len(str(question.text)))

    async def _look(self, question: Question) -> Neighbourhood:
        text, labels = question.text, self.classifier.labels
        scores = await Importance(text)
        index = self._important(text, scores) if question.index is None else question.index
        if index is None:
            return Neighbourhood(str(text), None, None, labels[(await Score([text]))[0].label])
        word = text.words[index]
        near = [item for item in self.table.neighbours(word, count=self.count) if is_single_word(item.word)]
        changed = [text.replace(index, match_case(item.word, word)) for item in near]
        clean, *answers = await Score([text, *changed])
        seed = derive_seed(self.seed, "noise", str(text), index)
        noised: Iterable[Any] = ()
        if scores[index]:
            place = (index, int(np.argmax(scores[index])))
            noised = await Noised(NoisedCopies(text, (place,), self.deviation, self.samples, seed))
        return Neighbourhood(
            text=str(text),
            index=index,
            word=word,
            predicted=labels[clean.label],
            near=tuple(
                NearWord(item.word, round(item.cosine, _DIGITS), labels[answer.label])
                for item, answer in zip(near, answers, strict=True)
            ),
            noised=tuple(labels[int(np.argmax(row))] for row in noised),
            seed=seed,
            vector=self._vector(word) if question.with_vector and len(scores[index]) == 1 else None,
        )

    def _important(self, text: Text, scores: TokenScores) -> int | None:
        """The most important word that has neighbours and is no stop word."""
        ranked = ranked_words(text, scores, "function")
        return next((index for index in ranked if text.words[index] in self.table), None)

    def _vector(self, word: str) -> tuple[float, ...] | None:
        """The input vector of a word that is one token; None for one that the vocabulary has not."""
        if not isinstance(self.classifier, WhiteBoxClassifier):
            return None
        vocabulary = self.classifier.word_vocabulary()
        for written in (word, word.lower()):
            if written in vocabulary.words:
                row = vocabulary.vectors[vocabulary.words.index(written)]
                return tuple(round(float(value), _DIGITS) for value in row)
        return None


def noised_vectors(neighbourhood: Neighbourhood, deviation: float) -> np.ndarray[Any, np.dtype[np.float64]]:
    """The vectors of the copies with noise, as the model read them.

    Parameters
    ----------
    neighbourhood
        With its vector.
    deviation
        Of the noise.
    """
    assert neighbourhood.vector is not None
    vector = np.array(neighbourhood.vector, dtype=np.float64)
    shape = (len(neighbourhood.noised), 1, len(vector))
    noise = np.random.default_rng(neighbourhood.seed).standard_normal(shape, dtype=np.float32)[:, 0]
    noisy: np.ndarray[Any, np.dtype[np.float64]] = vector + noise * np.float32(deviation)
    return noisy
