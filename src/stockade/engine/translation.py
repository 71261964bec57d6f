"""Translates for all searches: deduplicated, cached, in few calls.

Answers `Translate`, `TranslationLoss`, `Retranslate`, `SourceVectors`, and of a translator what it can show of
`Vocabulary` and `VisibleWords`. A fault of the model costs only the source that causes it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from stockade.core.errors import ModelError, ScoringFailed, SearchStopped
from stockade.core.protocols import WordVocabulary
from stockade.core.text import Text
from stockade.core.translation import (
    InspectableTranslator,
    Translator,
    ZeroableSource,
    character_loss,
    hinge_loss,
)
from stockade.engine.cache import BoundedCache
from stockade.engine.computing import reason_of
from stockade.engine.language import EmbeddingService, FillingService
from stockade.engine.requests import Embed, Fill, Predict, Request, Surprisal, VisibleWords, Vocabulary
from stockade.engine.services import Service, Services
from stockade.engine.translation_requests import Attempt, Retranslate, SourceVectors, Translate, TranslationLoss

Answer = TypeVar("Answer")
Item = TypeVar("Item")
_AT_ONCE = 512
"""Sources per call of a translator: networks cut their batches themselves, others should not get thousands."""
_DIGITS = 3
_NO_WORDS = WordVocabulary((), np.zeros((0, 0), dtype=np.float32))
_Wanted = tuple[ZeroableSource, str, bool]
"""A source, the keyword, and whether logits are looked at."""


class TranslationService:
    """Translates for all searches and counts what the model had to compute.

    Parameters
    ----------
    translator
        What translates.
    cache
        Where the answers of a deterministic translator are kept; a new one if None.
    """

    def __init__(self, translator: Translator, cache: BoundedCache[Any] | None = None) -> None:
        self.translator = translator
        self._inside = translator if isinstance(translator, InspectableTranslator) else None
        self._cache: BoundedCache[Any] = BoundedCache() if cache is None else cache
        self.rows = 0
        self.model_seconds = 0.0

    def answer_translations(self, requests: Sequence[Translate]) -> list[list[str] | SearchStopped]:
        """Each request's translations in order, or the first failure among its sources."""
        groups = [[("translation", str(s.text), s.zeroed, s) for s in request.texts] for request in requests]
        return self._collected(groups, lambda keys: self._contained([key[3] for key in keys], self._translated))

    def answer_losses(self, requests: Sequence[TranslationLoss]) -> list[list[Attempt] | SearchStopped]:
        """Each request's translations with their losses in order, or the first failure among its sources."""
        for request in requests:
            if request.loss == "hinge" and self._inside is None:
                raise ModelError(
                    "loss=hinge needs the translator to show its logits, and this one only translates: give a network, "
                    "or leave the option out."
                )
        groups = [
            [
                ("loss", str(source.text), source.zeroed, request.keyword, request.loss, (source, request))
                for source in request.texts
            ]
            for request in requests
        ]
        return self._collected(groups, self._losses)

    def answer_retranslations(self, requests: Sequence[Retranslate]) -> list[list[str] | SearchStopped]:
        """Each source by itself, as a user would send it: no batch, no cache."""
        return [
            _first_failure([self._contained([str(r.text)], self._translate)[0] for _ in range(r.draws)])
            for r in requests
        ]

    def answer_vectors(self, requests: Sequence[SourceVectors]) -> list[NDArray[np.float32] | SearchStopped]:
        """The encoder's sentence vectors of each request; equal sources are computed once."""
        if self._inside is None:
            return [np.zeros((len(request.texts), 0), dtype=np.float32) for request in requests]
        strings = list(dict.fromkeys(str(text) for request in requests for text in request.texts))
        table = dict(zip(strings, self._contained(strings, self._vectors), strict=True))
        answers: list[NDArray[np.float32] | SearchStopped] = []
        for request in requests:
            rows = _first_failure([table[str(text)] for text in request.texts])
            if isinstance(rows, SearchStopped):
                answers.append(rows)
            else:
                answers.append(np.stack(rows) if rows else np.zeros((0, 0), dtype=np.float32))
        return answers

    def answer_vocabulary(self, requests: Sequence[Vocabulary]) -> list[WordVocabulary]:
        """The whole words that the encoder knows; a black box shows none."""
        if self._inside is not None:
            return [self._inside.word_vocabulary()] * len(requests)
        if any(request.required for request in requests):
            raise ModelError("This attack needs the translator's vocabulary, and this one only translates.")
        return [_NO_WORDS] * len(requests)

    def answer_visible_words(self, requests: Sequence[VisibleWords]) -> Sequence[Sequence[int]]:
        """The words that the translator reads; one that does not cut long sources is taken to read all of them."""
        texts = [request.text for request in requests]
        if self._inside is not None:
            return self._inside.visible_words(texts)
        return [text.indices for text in texts]

    def _collected(
        self, groups: Sequence[Sequence[tuple[Any, ...]]], compute: Callable[[list[Any]], list[Any]]
    ) -> list[Any]:
        """The answer to each group of keys, whose last part is what to compute and no part of the key itself."""
        if not self.translator.deterministic:
            answers = iter(compute([key for group in groups for key in group]))
            return [_first_failure([next(answers) for _ in group]) for group in groups]
        content: dict[Hashable, tuple[Any, ...]] = {key[:-1]: key for group in groups for key in group}
        table = self._cache.fetch(content, lambda missing: compute([content[key] for key in missing]))
        return [_first_failure([table[key[:-1]] for key in group]) for group in groups]

    def _losses(self, keys: list[tuple[Any, ...]]) -> list[Attempt | ScoringFailed]:
        wanted: list[_Wanted] = []
        for *_, (source, request) in keys:
            wanted.append((source, request.keyword, self._inside is not None and request.loss != "characters"))
        answers: dict[int, Attempt | ScoringFailed] = {}
        for logits in (True, False):
            places = [place for place, (*_, by_logits) in enumerate(wanted) if by_logits == logits]
            items = [wanted[place] for place in places]
            computed = self._contained(items, self._by_logits if logits else self._by_letters)
            answers |= zip(places, computed, strict=True)
        return [answers[place] for place in range(len(keys))]

    def _by_logits(self, items: Sequence[_Wanted]) -> list[Attempt | ScoringFailed]:
        """The sources of all searches together: each is computed with the logits of everybody's sub-words."""
        assert self._inside is not None
        tokens = {keyword: self._inside.target_tokens(keyword) for keyword in dict.fromkeys(k for _, k, _ in items)}
        different = dict.fromkeys(token for row in tokens.values() for token in row)
        columns = {token: column for column, token in enumerate(different)}
        with self._charged(len(items)):
            steps = self._inside.greedy_steps([source for source, _, _ in items], list(columns))
        attempts: list[Attempt | ScoringFailed] = []
        for (_, keyword, _), row in zip(items, steps, strict=True):
            loss = hinge_loss(row, [columns[token] for token in tokens[keyword]], tokens[keyword])
            failed = ScoringFailed("the model answered with NaN or infinite logits")
            attempts.append(Attempt(row.translation, round(loss, _DIGITS)) if math.isfinite(loss) else failed)
        return attempts

    def _by_letters(self, items: Sequence[_Wanted]) -> list[Attempt | ScoringFailed]:
        translations = self._translated([source for source, _, _ in items])
        return [
            Attempt(translation, round(character_loss(translation, keyword), _DIGITS))
            for translation, (_, keyword, _) in zip(translations, items, strict=True)
        ]

    def _translated(self, sources: Sequence[ZeroableSource]) -> list[str]:
        """The translations of sources, some with a word zeroed or, where that cannot be, deleted."""
        if self._inside is None or all(source.zeroed is None for source in sources):
            return self._translate([str(_without_zeroed(source)) for source in sources])
        with self._charged(len(sources)):
            return [row.translation for row in self._inside.greedy_steps(sources, ())]

    def _translate(self, strings: Sequence[str]) -> list[str]:
        with self._charged(len(strings)):
            return self.translator.translate(strings)

    def _vectors(self, strings: Sequence[str]) -> list[NDArray[np.float32]]:
        assert self._inside is not None
        with self._charged(len(strings)):
            return list(self._inside.sentence_vectors(strings))

    def _contained(
        self, items: Sequence[Item], compute: Callable[[Sequence[Item]], Sequence[Answer | ScoringFailed]]
    ) -> list[Answer | ScoringFailed]:
        """What `compute` answers, some hundred items at a time."""
        answers: list[Answer | ScoringFailed] = []
        for start in range(0, len(items), _AT_ONCE):
            answers += _halved(items[start : start + _AT_ONCE], compute)
        return answers

    @contextmanager
    def _charged(self, rows: int) -> Iterator[None]:
        started = time.perf_counter()
        yield
        self.rows += rows
        self.model_seconds += time.perf_counter() - started


def translator_services(
    service: TranslationService, *, filling: FillingService | None = None, embedding: EmbeddingService | None = None
) -> Services:
    """The services for searches over one translator.

    Parameters
    ----------
    service
        Translates.
    filling, embedding
        The language models that constraints of searches may ask.
    """
    services: dict[type[Request[Any]], Service] = {
        Translate: Service(service.answer_translations),
        TranslationLoss: Service(service.answer_losses),
        Retranslate: Service(service.answer_retranslations),
        SourceVectors: Service(service.answer_vectors),
        Vocabulary: Service(service.answer_vocabulary),
        VisibleWords: Service(service.answer_visible_words),
    }
    if filling is not None:
        services |= {Fill: Service(filling.answer), Predict: Service(filling.answer_predictions)}
        services[Surprisal] = Service(filling.answer_surprisals)
    if embedding is not None:
        services[Embed] = Service(embedding.answer)
    return services


def _halved(
    items: Sequence[Item], compute: Callable[[Sequence[Item]], Sequence[Answer | ScoringFailed]]
) -> list[Answer | ScoringFailed]:
    """All items together, or, where that raises, in halves: only the one that causes it pays for it."""
    try:
        answers = list(compute(items))
        if len(answers) == len(items):
            return answers
        reason = f"the model answered {len(items)} sources with {len(answers)} translations"
    except Exception as error:
        reason = reason_of(error)
    if len(items) == 1:
        return [ScoringFailed(reason)]
    half = len(items) // 2
    return _halved(items[:half], compute) + _halved(items[half:], compute)


def _first_failure(answers: list[Answer | ScoringFailed]) -> list[Answer] | SearchStopped:
    """All answers, or the first failure among them."""
    collected: list[Answer] = []
    for answer in answers:
        if isinstance(answer, ScoringFailed):
            return answer
        collected.append(answer)
    return collected


def _without_zeroed(source: ZeroableSource) -> Text:
    return source.text if source.zeroed is None else source.text.delete(source.zeroed)
