"""Victims whose answers a person can compute."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from stockade.core.protocols import AttentionQuery, Filling, Probabilities, WordVocabulary
from stockade.core.text import Text, TextInput


def words_of(item: TextInput) -> tuple[str, ...]:
    return Text.parse(item if isinstance(item, str) else item[1]).words


@dataclass
class WeightVictim:
    """Two classes; the log-odds of "positive" are the sum of its words' weights (plus a bias). Remembers what it was
    asked.
    """

    weights: Mapping[str, float]
    bias: float = 0.0
    labels: tuple[str, ...] = ("negative", "positive")
    deterministic: bool = True
    asked: list[TextInput] = field(default_factory=list)
    batches: list[int] = field(default_factory=list)

    def predict_proba(self, inputs: Sequence[TextInput]) -> Probabilities:
        self.asked += inputs
        self.batches.append(len(inputs))
        rows = []
        for item in inputs:
            odds = self.bias + sum(self.weights.get(word.lower(), 0.0) for word in words_of(item))
            positive = 1 / (1 + math.exp(-odds))
            rows.append((1 - positive, positive))
        return np.array(rows)


@dataclass
class LabelVictim(WeightVictim):
    """A victim of weights that only names the class, and says so."""

    label_only: bool = True

    def predict_proba(self, inputs: Sequence[TextInput]) -> Probabilities:
        rows = super().predict_proba(inputs)
        return np.eye(2)[rows.argmax(axis=1)].reshape(len(inputs), 2)


@dataclass
class TableVictim(WeightVictim):
    """Two classes; the probability of "positive" stands in a table of texts, `otherwise` for those not in it."""

    weights: Mapping[str, float] = field(default_factory=dict)
    table: Mapping[str, float] = field(default_factory=dict)
    otherwise: float = 0.5

    def predict_proba(self, inputs: Sequence[TextInput]) -> Probabilities:
        self.asked += inputs
        positive = [self.table.get(str(item), self.otherwise) for item in inputs]
        return np.array([(1 - chance, chance) for chance in positive])


class OpenVictim(WeightVictim):
    """A victim of weights that shows its inside.

    A sentence vector is the sum of its words' vectors, whose first coordinate is the weight unless vectors are given:
    so the gradient is the same everywhere. A zeroed word weighs nothing. Attention falls from left to right; in layer
    1, and with the first token as the query, from right to left.
    """

    def __init__(
        self, weights: Mapping[str, float], vectors: Mapping[str, Sequence[float]] | None = None, bias: float = 0.0
    ) -> None:
        super().__init__(weights, bias)
        self.vectors = vectors or {word: (weight,) for word, weight in weights.items()}
        table = np.array(list(self.vectors.values()), dtype=np.float32)
        self.vocabulary = WordVocabulary(tuple(self.vectors), table)

    def word_vocabulary(self) -> WordVocabulary:
        return self.vocabulary

    def word_gradients(self, texts: Sequence[Text], label: int) -> list[NDArray[np.float32]]:
        """Of the loss of a class: the weight lowers that of "positive"."""
        direction = np.zeros(self.vocabulary.vectors.shape[1], dtype=np.float32)
        direction[0] = -1.0 if label == 1 else 1.0
        return [np.tile(direction, (len(text.words), 1)) for text in texts]

    def predict_zeroed(self, places: Sequence[tuple[Text, int]]) -> Probabilities:
        return self.predict_proba([str(text.delete(index)) for text, index in places])

    def represent(self, inputs: Sequence[TextInput]) -> tuple[Probabilities, NDArray[np.float32]]:
        nothing = [0.0] * self.vocabulary.vectors.shape[1]
        sums = [np.sum([self.vectors.get(word, nothing) for word in words_of(item)], axis=0) for item in inputs]
        return self.predict_proba(inputs), np.array(sums, dtype=np.float32)

    def word_attention(self, texts: Sequence[Text], layer: int, query: AttentionQuery) -> list[NDArray[np.float32]]:
        falling = [(1 / np.arange(2, 2 + len(text.words))).astype(np.float32) for text in texts]
        return falling if (layer, query) == (0, "mean") else [row[::-1] for row in falling]


@dataclass
class RandomVictim:
    """Any number of classes; each text gets probabilities from a hash of it: no structure for a search to rely on."""

    seed: int = 0
    classes: int = 3
    deterministic: bool = True

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(str(i) for i in range(self.classes))

    def predict_proba(self, inputs: Sequence[TextInput]) -> Probabilities:
        rows = []
        for item in inputs:
            digest = hashlib.sha256(repr((self.seed, item)).encode("utf-8", "surrogatepass")).digest()
            raw = np.frombuffer(digest[: 4 * self.classes], dtype=np.uint32).astype(float) + 1
            rows.append(raw / raw.sum())
        return np.array(rows)


@dataclass
class ListMaskedLM:
    """Proposes the words listed for what stands directly before the hidden word ("" at the beginning), whatever
    follows. Where it reads the words as they are, `table` says what it would also write in a word's place.
    """

    after: Mapping[str, Sequence[str]] = field(default_factory=dict)
    name: str = "toy"
    asked: list[tuple[str, str]] = field(default_factory=list)
    table: Mapping[str, tuple[tuple[Filling, ...], ...]] = field(default_factory=dict)

    @dataclass(frozen=True)
    class Place:
        before: str
        behind: str

        @property
        def key(self) -> tuple[str, str]:
            return self.before, self.behind

        def __len__(self) -> int:
            return 1 + len(words_of(self.before)) + len(words_of(self.behind))

    def encode(self, places: Sequence[tuple[str, str]]) -> list[ListMaskedLM.Place]:
        self.asked += places
        return [ListMaskedLM.Place(*place) for place in places]

    @dataclass(frozen=True)
    class Words(Place):
        words: tuple[str, ...]

        @property
        def numbers(self) -> tuple[int, ...]:
            return tuple(range(len(self.words)))

    def encode_words(self, place: tuple[str, str], words: Sequence[str]) -> list[ListMaskedLM.Words]:
        self.asked.append(place)
        return [ListMaskedLM.Words(*place, tuple(words))] if words else []

    def word_log_probabilities(self, batch: Sequence[ListMaskedLM.Words]) -> list[tuple[float, ...]]:
        """The first listed word has log-probability 0, the next -1, …; a word that is not listed -99."""
        found = []
        for part in batch:
            listed = list(self.after.get((words_of(part.before) or ("",))[-1], ()))
            found.append(tuple(-float(listed.index(w)) if w in listed else -99.0 for w in part.words))
        return found

    def fill(self, batch: Sequence[ListMaskedLM.Place], count: int) -> list[tuple[Filling, ...]]:
        last = [(words_of(place.before) or ("",))[-1] for place in batch]
        lists = [self.after.get(word, ())[:count] for word in last]
        return [tuple(Filling(w.removeprefix("##"), 0.0, not w.startswith("##")) for w in words) for words in lists]

    def predict(
        self, texts: Sequence[str], spans: Sequence[Sequence[tuple[int, int]]], count: int
    ) -> list[list[tuple[tuple[Filling, ...], ...]]]:
        assert [len(words) for words in spans] == [len(words_of(text)) for text in texts]
        return [
            [tuple(piece[:count] for piece in self.table.get(text[start:end], ((),))) for start, end in words]
            for text, words in zip(texts, spans, strict=True)
        ]

    def perplexities(self, rows: Sequence[tuple[int, ...]]) -> list[float]:
        """The sum of the tokens' numbers."""
        return [float(sum(row)) for row in rows]

    def surprisals(self, texts: Sequence[str], spans: Sequence[Sequence[tuple[int, int]]]) -> list[list[float]]:
        raise NotImplementedError


@dataclass
class BagEncoder:
    """A text is the sum of its words' directions; words count 1 unless a weight says otherwise, so cosines can be
    computed by hand.
    """

    weights: Mapping[str, float] = field(default_factory=dict)
    name: str = "toy"
    embedded: list[str] = field(default_factory=list)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.embedded += texts
        rows = np.zeros((len(texts), 512), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            for word in words_of(text):
                digest = hashlib.sha256(word.lower().encode()).digest()
                row[int.from_bytes(digest[:2], "little") % 512] += self.weights.get(word.lower(), 1.0)
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        return (rows / np.where(norms == 0, 1, norms)).astype(np.float32)
