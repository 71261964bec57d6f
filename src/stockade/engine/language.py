"""The services that answer `Fill` and `Embed`: language models beside the victim, deduplicated, cached and batched
alike.

A model is made when the first search asks for it, so attacks that need none load none.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Sequence
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
Question = tuple[tuple[str, str], tuple[str, ...]]
"""What stands before and behind a hidden word, and the words that might stand there."""
Vector = NDArray[np.float32]
_CACHE_BYTES = 128 * 2**20
_FILL_BYTES = 8_000
"""Fifty guesses: an object of four fields, a float and a number each."""
_CHANCE_BYTES = 1_000
_SURPRISE_BYTES = 4_000
"""The strings of a text's words and a number for each."""
_EMBED_BYTES = 2_000
"""A vector of 384 numbers and its headers."""


class FillingService:
    """Answers `Fill` with one masked LM; the same hidden place is computed once."""

    def __init__(self, make: Callable[[], MaskedLanguageModel]) -> None:
        self._make = make
        self._model: MaskedLanguageModel | None = None
        self._budget = TokenBudget()
        self._cache: BoundedCache[tuple[Filling, ...]] = BoundedCache(_CACHE_BYTES, _FILL_BYTES)
        self._chances: BoundedCache[tuple[float, ...]] = BoundedCache(_CACHE_BYTES, _CHANCE_BYTES)
        self._surprises: BoundedCache[tuple[float, ...]] = BoundedCache(_CACHE_BYTES, _SURPRISE_BYTES)

    @property
    def batch_tokens(self) -> int:
        """How many tokens fill a batch, as far as that is known by now."""
        return self._budget.tokens

    def answer(self, requests: Sequence[Fill]) -> list[list[tuple[Filling, ...]]]:
        wanted = [[(_around(text, index), request.count) for text, index in request.places] for request in requests]
        table = self._fill(dict.fromkeys(key for group in wanted for key in group))
        return [[table[key] for key in group] for group in wanted]

    def answer_predictions(self, requests: Sequence[Predict]) -> list[list[tuple[tuple[Filling, ...], ...]]]:
        """The guesses at every word of each text; equal texts are computed once."""
        keys = [(valid_unicode(str(request.text)), request.count) for request in requests]
        asked = {key: request.text for key, request in zip(keys, requests, strict=True)}
        table: dict[tuple[str, int], list[tuple[tuple[Filling, ...], ...]]] = {}
        for count in dict.fromkeys(count for _, count in asked):
            same = [key for key in asked if key[1] == count]
            spans = [_spans(asked[key]) for key in same]
            table |= dict(zip(same, self._ready().predict([text for text, _ in same], spans, count), strict=True))
        return [table[key] for key in keys]

    def answer_word_probabilities(self, requests: Sequence[WordProbabilities]) -> list[list[tuple[float, ...]]]:
        """The log-probabilities of the words at each place; the same question is computed once."""
        asked = [[(_around(text, i), tuple(words)) for text, i, words in request.questions] for request in requests]
        table: dict[Question, tuple[float, ...]] = {}
        missing: list[Question] = []
        for question in dict.fromkeys(question for group in asked for question in group):
            known = self._chances.get((*question[0], *question[1]))
            if known is None:
                missing.append(question)
            else:
                table[question] = known
        for question, found in zip(missing, self._compute_chances(missing), strict=True):
            table[question] = found
            self._chances.put((*question[0], *question[1]), found)
        return [[table[question] for question in group] for group in asked]

    def _compute_chances(self, questions: Sequence[Question]) -> list[tuple[float, ...]]:
        model = self._ready()
        parts = [model.encode_words(place, words) for place, words in questions]
        computed = iter(self._in_batches([part for group in parts for part in group], model.word_log_probabilities))
        answers = []
        for (_, words), group in zip(questions, parts, strict=True):
            found = [float("-inf")] * len(words)
            for part in group:
                for number, chance in zip(part.numbers, next(computed), strict=True):
                    found[number] = chance
            answers.append(tuple(found))
        return answers

    def answer_perplexities(self, requests: Sequence[Perplexity]) -> list[list[float]]:
        rows = [[tuple(filling.token for filling in row) for row in request.rows] for request in requests]
        unique = list(dict.fromkeys(row for group in rows for row in group))
        found = dict(zip(unique, self._ready().perplexities(unique), strict=True)) if unique else {}
        return [[found[row] for row in group] for group in rows]

    def answer_surprisals(self, requests: Sequence[Surprisal]) -> list[tuple[float, ...]]:
        """The surprise of each word; the same text is computed once."""
        table: dict[tuple[str, ...], tuple[float, ...]] = {}
        missing: list[tuple[str, ...]] = []
        for words in dict.fromkeys(request.words for request in requests):
            known = self._surprises.get(words)
            if known is None:
                missing.append(words)
            else:
                table[words] = known
        texts = [valid_unicode(" ".join(words)) for words in missing]
        surprises = self._ready().surprisals(texts, [_joined_spans(words) for words in missing])
        for words, found in zip(missing, surprises, strict=True):
            table[words] = tuple(found)
            self._surprises.put(words, table[words])
        return [table[request.words] for request in requests]

    def _ready(self) -> MaskedLanguageModel:
        if self._model is None:
            self._model = self._make()
        return self._model

    def _fill(self, keys: dict[tuple[tuple[str, str], int], None]) -> dict[Hashable, tuple[Filling, ...]]:
        table: dict[Hashable, tuple[Filling, ...]] = {}
        missing = []
        for key in keys:
            known = self._cache.get((*key[0], str(key[1])))
            if known is None:
                missing.append(key)
            else:
                table[key] = known
        for count in dict.fromkeys(count for _, count in missing):
            same = [key for key in missing if key[1] == count]
            for key, found in zip(same, self._compute([place for place, _ in same], count), strict=True):
                table[key] = found
                self._cache.put((*key[0], str(count)), found)
        return table

    def _compute(self, places: Sequence[tuple[str, str]], count: int) -> list[tuple[Filling, ...]]:
        model = self._ready()
        return self._in_batches(model.encode(places), lambda batch: model.fill(batch, count))

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
    """Answers `Embed` with one sentence encoder; the same string is computed once."""

    def __init__(self, make: Callable[[], SentenceEncoder]) -> None:
        self._make = make
        self._model: SentenceEncoder | None = None
        self._cache: BoundedCache[Vector] = BoundedCache(_CACHE_BYTES, _EMBED_BYTES)

    def answer(self, requests: Sequence[Embed]) -> list[Vector]:
        table: dict[str, Vector] = {}
        missing = []
        for string in dict.fromkeys(string for request in requests for string in request.strings):
            known = self._cache.get(string)
            if known is None:
                missing.append(string)
            else:
                table[string] = known
        if missing:
            if self._model is None:
                self._model = self._make()
            vectors = self._model.embed([valid_unicode(string) for string in missing])
            for string, vector in zip(missing, vectors, strict=True):
                table[string] = vector = vector.copy()  # a row alone: a view would keep the whole batch
                self._cache.put(string, vector)
        empty: Vector = np.zeros((0, 0), dtype=np.float32)
        return [
            np.stack([table[string] for string in request.strings]) if request.strings else empty
            for request in requests
        ]


def _around(text: Text, index: int) -> tuple[str, str]:
    """What stands before and behind a word."""
    string, start = str(text), text.starts[index]
    return valid_unicode(string[:start]), valid_unicode(string[start + len(text.words[index]) :])


def _spans(text: Text) -> list[tuple[int, int]]:
    """Where each word begins and ends."""
    return [(start, start + len(word)) for start, word in zip(text.starts, text.words, strict=True)]


def _joined_spans(words: Sequence[str]) -> list[tuple[int, int]]:
    """Where each word begins and ends when they are joined by blanks."""
    ends = list(accumulate(len(word) + 1 for word in words))
    return [(end - 1 - len(word), end - 1) for word, end in zip(words, ends, strict=True)]
