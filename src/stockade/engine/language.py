"""Language models beside the victim: a masked LM that fills and rates words, and a sentence encoder.

`FillingService` and `EmbeddingService` answer requests deduplicated, cached and in batches. A model is made when the
first search asks for it, so attacks that need none load none.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import accumulate
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from stockade.core.protocols import Encoded, Filling, MaskedLanguageModel, SentenceEncoder
from stockade.core.text import Text, valid_unicode
from stockade.engine.batching import TokenBudget, cut_batches
from stockade.engine.cache import BoundedCache
from stockade.engine.requests import Embed, Fill, Perplexity, Predict, Surprisal, WordProbabilities

Answer = TypeVar("Answer")
Strings = tuple[str, ...]
Vector = NDArray[np.float32]
_CACHE_BYTES = 128 * 2**20
_FILL_BYTES = 8_000
"""Fifty guesses: an object of four fields, a float and a number each."""
_PROBABILITY_BYTES = 1_000
_SURPRISAL_BYTES = 4_000
"""The strings of a text's words and a number for each."""
_EMBED_BYTES = 2_000
"""A vector of 384 numbers and its headers."""


class FillingService:
    """Asks a masked LM for all searches; the same question is computed once.

    Parameters
    ----------
    make
        Makes the model, when the first search asks for it.
    """

    def __init__(self, make: Callable[[], MaskedLanguageModel]) -> None:
        self._make = make
        self._model: MaskedLanguageModel | None = None
        self._budget = TokenBudget()
        self._fillings: BoundedCache[tuple[Filling, ...]] = BoundedCache(_CACHE_BYTES, _FILL_BYTES)
        self._probabilities: BoundedCache[tuple[float, ...]] = BoundedCache(_CACHE_BYTES, _PROBABILITY_BYTES)
        self._surprisals: BoundedCache[tuple[float, ...]] = BoundedCache(_CACHE_BYTES, _SURPRISAL_BYTES)

    @property
    def batch_tokens(self) -> int:
        """How many tokens fill a batch, as far as that is tuned by now."""
        return self._budget.tokens

    def answer(self, requests: Sequence[Fill]) -> list[list[tuple[Filling, ...]]]:
        """The guesses at each hidden word."""
        keys = [[(*_around(text, i), str(request.count)) for text, i in request.places] for request in requests]
        table = self._fillings.fetch([key for group in keys for key in group], self._fill)
        return [[table[key] for key in group] for group in keys]

    def answer_predictions(self, requests: Sequence[Predict]) -> list[list[tuple[tuple[Filling, ...], ...]]]:
        """The guesses at every word of each text; equal texts are computed once."""
        keys = [(valid_unicode(str(request.text)), request.count) for request in requests]
        texts = {key: request.text for key, request in zip(keys, requests, strict=True)}
        table: dict[tuple[str, int], list[tuple[tuple[Filling, ...], ...]]] = {}
        for count in dict.fromkeys(count for _, count in texts):
            same = [key for key in texts if key[1] == count]
            spans = [_spans(texts[key]) for key in same]
            table |= dict(zip(same, self._ready().predict([text for text, _ in same], spans, count), strict=True))
        return [table[key] for key in keys]

    def answer_word_probabilities(self, requests: Sequence[WordProbabilities]) -> list[list[tuple[float, ...]]]:
        """The log-probabilities of the words at each hidden word."""
        keys = [[(*_around(text, i), *words) for text, i, words in request.questions] for request in requests]
        table = self._probabilities.fetch([key for group in keys for key in group], self._word_log_probabilities)
        return [[table[key] for key in group] for group in keys]

    def answer_perplexities(self, requests: Sequence[Perplexity]) -> list[list[float]]:
        """The perplexity of each row of pieces; equal rows are computed once."""
        rows = [[tuple(filling.token for filling in row) for row in request.rows] for request in requests]
        unique = list(dict.fromkeys(row for group in rows for row in group))
        perplexities = dict(zip(unique, self._ready().perplexities(unique), strict=True)) if unique else {}
        return [[perplexities[row] for row in group] for group in rows]

    def answer_surprisals(self, requests: Sequence[Surprisal]) -> list[tuple[float, ...]]:
        """The surprisal of each word of each text."""
        table = self._surprisals.fetch([request.words for request in requests], self._word_surprisals)
        return [table[request.words] for request in requests]

    def _fill(self, keys: Sequence[Strings]) -> list[tuple[Filling, ...]]:
        model = self._ready()
        answers: dict[Strings, tuple[Filling, ...]] = {}
        for count in dict.fromkeys(count for _, _, count in keys):
            same = [key for key in keys if key[2] == count]
            encoded = model.encode([(before, after) for before, after, _ in same])
            guesses = self._in_batches(encoded, partial(model.fill, count=int(count)))
            answers |= zip(same, guesses, strict=True)
        return [answers[key] for key in keys]

    def _word_log_probabilities(self, keys: Sequence[Strings]) -> list[tuple[float, ...]]:
        model = self._ready()
        parts = [model.encode_words((before, after), words) for before, after, *words in keys]
        computed = iter(self._in_batches([part for group in parts for part in group], model.word_log_probabilities))
        answers = []
        for (_, _, *words), group in zip(keys, parts, strict=True):
            logs = [float("-inf")] * len(words)
            for part in group:
                for number, log in zip(part.numbers, next(computed), strict=True):
                    logs[number] = log
            answers.append(tuple(logs))
        return answers

    def _word_surprisals(self, keys: Sequence[Strings]) -> list[tuple[float, ...]]:
        texts = [valid_unicode(" ".join(words)) for words in keys]
        return [tuple(row) for row in self._ready().surprisals(texts, [_joined_spans(words) for words in keys])]

    def _ready(self) -> MaskedLanguageModel:
        if self._model is None:
            self._model = self._make()
        return self._model

    def _in_batches(
        self, items: Sequence[Encoded], compute: Callable[[Sequence[Any]], Sequence[Answer]]
    ) -> list[Answer]:
        lengths = [len(item) for item in items]
        answers: dict[int, Answer] = {}
        for indices in cut_batches(lengths, self._budget):
            started = time.perf_counter()
            rows = compute([items[i] for i in indices])
            self._budget.observe(len(indices) * lengths[indices[0]], time.perf_counter() - started)
            answers.update(zip(indices, rows, strict=True))
        return [answers[index] for index in range(len(items))]


class EmbeddingService:
    """Asks a sentence encoder for all searches; the same string is computed once.

    Parameters
    ----------
    make
        Makes the encoder, when the first search asks for it.
    """

    def __init__(self, make: Callable[[], SentenceEncoder]) -> None:
        self._make = make
        self._model: SentenceEncoder | None = None
        self._cache: BoundedCache[Vector] = BoundedCache(_CACHE_BYTES, _EMBED_BYTES)

    def answer(self, requests: Sequence[Embed]) -> list[Vector]:
        """The vectors of each request's strings."""
        table = self._cache.fetch([string for request in requests for string in request.strings], self._embed)
        empty: Vector = np.zeros((0, 0), dtype=np.float32)
        return [
            np.stack([table[string] for string in request.strings]) if request.strings else empty
            for request in requests
        ]

    def _embed(self, strings: Sequence[str]) -> list[Vector]:
        if self._model is None:
            self._model = self._make()
        vectors = self._model.embed([valid_unicode(string) for string in strings])
        return [vector.copy() for vector in vectors]  # rows alone: a view would keep the whole batch


def _around(text: Text, index: int) -> tuple[str, str]:
    """What stands before and behind a word, in the side of a pair that it is of."""
    text, index = text.alone(index)
    string, start = str(text), text.starts[index]
    return valid_unicode(string[:start]), valid_unicode(string[start + len(text.words[index]) :])


def _spans(text: Text) -> list[tuple[int, int]]:
    """Where each word begins and ends."""
    return [(start, start + len(word)) for start, word in zip(text.starts, text.words, strict=True)]


def _joined_spans(words: Sequence[str]) -> list[tuple[int, int]]:
    """Where each word begins and ends when they are joined by blanks."""
    ends = list(accumulate(len(word) + 1 for word in words))
    return [(end - 1 - len(word), end - 1) for word, end in zip(words, ends, strict=True)]
