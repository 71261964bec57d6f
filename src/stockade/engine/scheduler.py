"""Drives many searches at once and serves all their requests of one kind together.

Not asyncio: a round is the same on every machine. Each round, every running search is waiting for something; the
services answer all of it; every search is resumed in its order with its own answer. A search's own course depends
only on its answers, so what it finds does not depend on how many others run beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from stockade.core.errors import SearchStopped, StockadeError
from stockade.core.protocols import Classifier
from stockade.engine.budget import Meter
from stockade.engine.language import EmbeddingService, FillingService
from stockade.engine.requests import (
    Attention,
    ClassNames,
    Confirm,
    Draw,
    Embed,
    Fill,
    Gradient,
    Importance,
    Masked,
    Mixed,
    Noised,
    Perplexity,
    Predict,
    Query,
    Represent,
    Request,
    Score,
    Surprisal,
    VisibleWords,
    Vocabulary,
    WordProbabilities,
    Zeroed,
)
from stockade.engine.scoring import Scoring
from stockade.engine.white_box import WhiteBoxService

Result = TypeVar("Result")
Service = Callable[[Sequence[Any]], Sequence[Any]]

CHARACTERS_IN_FLIGHT = 256 * 2**20
"""Long texts make many long candidates; no new search starts while those of the running ones may hold this many
characters.
"""


@dataclass(frozen=True, slots=True)
class Search(Generic[Result]):
    """A search to run: how to start it, and how much memory its candidates may take.

    `draws` names it to randomised models, whose choices depend on that name and on how much it has asked.
    """

    start: Callable[[], Coroutine[Any, Any, Result]]
    budget: int | None = None
    weight: int = 0
    draws: int | None = None


@dataclass(frozen=True, slots=True)
class Finished(Generic[Result]):
    """A search that has ended: its result, or the reason why it was stopped; and what it used."""

    search: Search[Result]
    result: Result | SearchStopped
    queries: int
    rows: int


@dataclass(slots=True, eq=False)
class _Running(Generic[Result]):
    search: Search[Result]
    coroutine: Coroutine[Any, Any, Result]
    meter: Meter
    pending: Request[Any] | None = None
    drawn: int = 0

    def named(self, request: Request[Any]) -> Request[Any]:
        """The request with the name of its random choices, if it makes any and has none yet."""
        if self.search.draws is None or not isinstance(request, Query | Confirm):
            return request
        named = request if request.draw is not None else replace(request, draw=Draw(self.search.draws, self.drawn))
        self.drawn += request.draws if isinstance(request, Confirm) else len(request.texts)
        return named


class Scheduler:
    """Runs searches over services, `concurrency` at a time."""

    def __init__(self, services: Mapping[type[Request[Any]], Service], concurrency: int = 64) -> None:
        self._services = dict(services)
        self._concurrency = concurrency

    @classmethod
    def for_classifier(
        cls,
        scoring: Scoring,
        concurrency: int = 64,
        *,
        through: Scoring | None = None,
        filling: FillingService | None = None,
        embedding: EmbeddingService | None = None,
    ) -> Scheduler:
        """A scheduler that scores with one classifier and, where given, asks language models.

        With `through`, searches see another classifier than the one they want to fool: it answers all they ask, and
        only what the harness asks (clean texts, confirmations) goes to the victim. Inside a defended classifier,
        white-box requests see the model itself.
        """
        seen = through or scoring
        core = innermost(seen.classifier)
        inside = WhiteBoxService(core, seen.charge)
        services: dict[type[Request[Any]], Service] = {
            Score: seen.answer_scores if seen is scoring else _apart(scoring.answer_scores, seen.answer_scores),
            Confirm: scoring.answer_confirmations,
            Masked: seen.answer_masked,
            VisibleWords: inside.answer_visible_words,
            ClassNames: lambda requests: [scoring.classifier.labels] * len(requests),
            Gradient: inside.answer_gradients,
            Vocabulary: inside.answer_vocabulary,
            Zeroed: inside.answer_zeroed,
            Represent: inside.answer_represented,
            Attention: inside.answer_attention,
            Importance: inside.answer_importance,
            Noised: inside.answer_noised,
            Mixed: inside.answer_mixed,
        }
        if filling is not None:
            services |= {
                Fill: filling.answer,
                WordProbabilities: filling.answer_word_probabilities,
                Predict: filling.answer_predictions,
                Perplexity: filling.answer_perplexities,
                Surprisal: filling.answer_surprisals,
            }
        if embedding is not None:
            services[Embed] = embedding.answer
        return cls(services, concurrency)

    def run(self, searches: Iterable[Search[Result]]) -> Iterator[Finished[Result]]:
        """Yield each search as it ends. Closing the iterator stops all searches."""
        waiting = iter(searches)
        running: list[_Running[Result]] = []
        try:
            while True:
                yield from self._admit(waiting, running)
                if not running:
                    return
                answers = self._serve(running)
                for search, answer in zip(list(running), answers, strict=True):
                    finished = _advance(search, answer)
                    if finished is not None:
                        running.remove(search)
                        yield finished
        finally:
            for search in running:
                search.coroutine.close()

    def _admit(self, waiting: Iterator[Search[Result]], running: list[_Running[Result]]) -> Iterator[Finished[Result]]:
        while len(running) < self._concurrency:
            if running and sum(item.search.weight for item in running) > CHARACTERS_IN_FLIGHT:
                return
            search = next(waiting, None)
            if search is None:
                return
            started = _Running(search, search.start(), Meter(search.budget))
            finished = _advance(started, None)
            if finished is None:
                running.append(started)
            else:
                yield finished

    def _serve(self, running: Sequence[_Running[Any]]) -> list[Any]:
        answers: list[Any] = [None] * len(running)
        for search in running:
            if type(search.pending) not in self._services:
                raise StockadeError(f"no model here can answer a {type(search.pending).__name__} request")
        for kind, service in self._services.items():
            indices = [i for i, search in enumerate(running) if type(search.pending) is kind]
            if not indices:
                continue
            for index, answer in zip(indices, service([running[i].pending for i in indices]), strict=True):
                answers[index] = answer
        return answers


def innermost(classifier: Classifier) -> Classifier:
    """The model inside all defenses.

    Its classes are not asked for, as an isinstance check of the protocol would: a function may not know them yet.
    """
    while hasattr(classifier, "answer") and (inner := getattr(classifier, "inner", None)) is not None:
        classifier = inner
    return classifier


def _apart(of_harness: Service, of_searches: Service) -> Service:
    """Requests that count as queries to one service, those of the harness to another."""

    def answer(requests: Sequence[Score]) -> list[Any]:
        mine = {at: request for at, request in enumerate(requests) if not request.counted}
        theirs = {at: request for at, request in enumerate(requests) if request.counted}
        answers = dict(zip(mine, of_harness(list(mine.values())), strict=True))
        answers.update(zip(theirs, of_searches(list(theirs.values())), strict=True))
        return [answers[at] for at in range(len(requests))]

    return answer


def _advance(running: _Running[Result], answer: Any) -> Finished[Result] | None:
    """Resume a search with its answer until it asks again (None) or ends."""
    while True:
        try:
            stopped = isinstance(answer, SearchStopped)
            request = running.coroutine.throw(answer) if stopped else running.coroutine.send(answer)
        except StopIteration as stop:
            return _finish(running, stop.value)
        except SearchStopped as reason:
            return _finish(running, reason)
        try:
            running.pending = running.named(running.meter.admit(request) if isinstance(request, Query) else request)
        except SearchStopped as reason:
            answer = reason
            continue
        return None


def _finish(running: _Running[Result], result: Result | SearchStopped) -> Finished[Result]:
    return Finished(running.search, result, running.meter.queries, running.meter.rows)
