"""Drives many searches at once and serves their requests together.

Not asyncio: with a fixed token budget a round is the same on every machine. Each round takes the requests of the oldest
searches, as many as fill a few batches of the model, answers them and resumes those searches; younger ones wait, and a
new one starts only where there is room. So texts finish one after the other, few searches are in memory and a killed
run loses little. The course of a search depends on its answers alone, never on which others run beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from stockade.core.errors import SearchStopped, StockadeError
from stockade.engine.budget import Meter
from stockade.engine.language import EmbeddingService, FillingService
from stockade.engine.requests import Confirm, Draw, Query, Request, confirmation_draw
from stockade.engine.scoring import Scoring
from stockade.engine.services import Services, classifier_services

Result = TypeVar("Result")

CHARACTERS_IN_FLIGHT = 256 * 2**20
"""Long texts make many long candidates; no new search starts while those of the running ones may hold this many
characters.
"""
_BATCHES = 8
"""Batches that fill a round. With more of them, less is lost to the last one and to padding; with fewer, texts finish
sooner.
"""
_PATIENCE = 8
"""Rounds after which the oldest search is answered even where its kind of request is the one that fills least."""


@dataclass(frozen=True, slots=True)
class Search(Generic[Result]):
    """A search to run.

    Parameters
    ----------
    start
        Makes the coroutine that awaits requests and returns the result.
    budget
        The most queries it may use; None for no limit.
    weight
        About how many characters its candidates hold in memory.
    draw_seed
        The seed of the random choices that a randomised model makes for this search.
    """

    start: Callable[[], Coroutine[Any, Any, Result]]
    budget: int | None = None
    weight: int = 0
    draw_seed: int | None = None


@dataclass(frozen=True, slots=True)
class Finished(Generic[Result]):
    """A search that has ended: its result, or the reason why it was stopped, and the queries and rows it used."""

    search: Search[Result]
    result: Result | SearchStopped
    queries: int
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """How far the searches of a run have come, for an estimate of the time that is left.

    Parameters
    ----------
    finished
        How many searches have ended.
    queries
        Logical queries of all searches so far, those of the running ones included.
    finished_work
        What the ended searches asked of models altogether, in tokens.
    running_work
        What each running search has asked of models so far, in tokens; the oldest first.
    """

    finished: int
    queries: int
    finished_work: int
    running_work: tuple[int, ...]

    def share(self, searches: int) -> float:
        """About what share of the work of so many searches is done, between 0 and 1.

        A running search counts for w / (w + 2 m), where w is its work so far and m the mean per ended search: searches
        that have run long tend to run on.
        """
        mean = (self.finished_work + sum(self.running_work)) / max(1, self.finished)
        parts = sum(work / (work + 2 * mean) for work in self.running_work if work)
        return min(1.0, (self.finished + parts) / max(1, searches))


@dataclass(slots=True, eq=False)
class _Running(Generic[Result]):
    search: Search[Result]
    coroutine: Coroutine[Any, Any, Result]
    meter: Meter
    pending: Request[Any] = field(default_factory=Request)
    tokens: int | None = None
    """What the pending request asks of a model; None where it is answered at once."""
    work: int = 0
    drawn: int = 0
    confirmations: int = 0
    rounds_waited: int = 0

    def named(self, request: Request[Any]) -> Request[Any]:
        """The request with the name of its random choices, if it makes any and has none yet."""
        if self.search.draw_seed is None or not isinstance(request, Query | Confirm):
            return request
        if isinstance(request, Confirm):
            draw = confirmation_draw(self.search.draw_seed, self.confirmations)
            self.confirmations += request.draws
        else:
            draw = Draw(self.search.draw_seed, self.drawn)
            self.drawn += len(request.texts)
        return request if request.draw is not None else replace(request, draw=draw)


class Scheduler:
    """Runs searches over services.

    Parameters
    ----------
    services
        Which service answers which kind of request.
    concurrency
        The most searches in flight; usually fewer fill the model's batches.
    """

    def __init__(self, services: Services, concurrency: int = 64) -> None:
        self._services = services
        self._concurrency = concurrency
        self._running: list[_Running[Any]] = []
        self._finished = self._finished_queries = self._finished_work = 0

    @classmethod
    def for_classifier(
        cls,
        scoring: Scoring,
        concurrency: int = 64,
        *,
        view: Scoring | None = None,
        filling: FillingService | None = None,
        embedding: EmbeddingService | None = None,
    ) -> Scheduler:
        """A scheduler for searches over one classifier; `classifier_services` documents the arguments."""
        return cls(classifier_services(scoring, view=view, filling=filling, embedding=embedding), concurrency)

    @property
    def usage(self) -> Usage:
        """How far the searches of the present run have come."""
        return Usage(
            finished=self._finished,
            queries=self._finished_queries + sum(search.meter.queries for search in self._running),
            finished_work=self._finished_work,
            running_work=tuple(search.work for search in self._running),
        )

    def run(
        self, searches: Iterable[Search[Result]], after_round: Callable[[Usage], None] | None = None
    ) -> Iterator[Finished[Result]]:
        """Yield each search as it ends, the oldest usually first. Closing the iterator stops all searches.

        Parameters
        ----------
        searches
            What to run; one is taken from it only when there is room for it.
        after_round
            Called with the usage after every round: several times a second with a quick model.
        """
        waiting = iter(searches)
        running: list[_Running[Result]] = []
        self._running, self._finished, self._finished_queries, self._finished_work = running, 0, 0, 0
        try:
            while True:
                group = _Round[Result](self._services)
                for search in running:
                    group.add(search)
                yield from self._admit(waiting, running, group)
                if not running:
                    return
                for search, answer in group.answers(running[0]):
                    ended = self._resume(search, answer)
                    if ended is not None:
                        running.remove(search)
                        yield ended
                if after_round is not None:
                    after_round(self.usage)
        finally:
            for search in running:
                search.coroutine.close()
            running.clear()

    def _admit(
        self, waiting: Iterator[Search[Result]], running: list[_Running[Result]], group: _Round[Result]
    ) -> Iterator[Finished[Result]]:
        """Start searches as long as the round has room."""
        while not group.full and len(running) < self._concurrency:
            if running and sum(item.search.weight for item in running) > CHARACTERS_IN_FLIGHT:
                return
            search = next(waiting, None)
            if search is None:
                return
            started = _Running(search, search.start(), Meter(search.budget))
            ended = self._resume(started, None)
            if ended is None:
                running.append(started)
                group.add(started)
            else:
                yield ended

    def _resume(self, running: _Running[Result], answer: Any) -> Finished[Result] | None:
        """Resume a search with its answer until it asks again (None) or ends."""
        while True:
            try:
                stopped = isinstance(answer, SearchStopped)
                request = running.coroutine.throw(answer) if stopped else running.coroutine.send(answer)
            except StopIteration as stop:
                return self._finish(running, stop.value)
            except SearchStopped as reason:
                return self._finish(running, reason)
            try:
                running.pending = running.named(running.meter.admit(request) if isinstance(request, Query) else request)
            except SearchStopped as reason:
                answer = reason
                continue
            running.tokens = running.pending.tokens
            return None

    def _finish(self, running: _Running[Result], result: Result | SearchStopped) -> Finished[Result]:
        self._finished += 1
        self._finished_queries += running.meter.queries
        self._finished_work += running.work
        return Finished(running.search, result, running.meter.queries, running.meter.rows)


class _Round(Generic[Result]):
    """The requests that are answered together; by kind, because each kind has a service of its own."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._members: dict[type[Request[Any]], list[_Running[Result]]] = {}
        self._batches: dict[type[Request[Any]], float] = {}

    @property
    def full(self) -> bool:
        """Whether requests of some kind fill the round."""
        return any(batches >= _BATCHES for batches in self._batches.values())

    def add(self, search: _Running[Result]) -> None:
        """Let a search take part, unless older ones leave no room for it."""
        kind = type(search.pending)
        if kind not in self._services:
            raise StockadeError(f"no model here can answer a {kind.__name__} request")
        filled = self._batches.get(kind, 0.0)
        if search.tokens is None:
            filled = _BATCHES
        elif filled < _BATCHES:
            filled += search.tokens / self._services[kind].batch_tokens()
        else:
            return
        self._batches[kind] = filled
        self._members.setdefault(kind, []).append(search)

    def answers(self, oldest: _Running[Result]) -> Iterator[tuple[_Running[Result], Any]]:
        """Answer the kinds of request that fill the round, or else the one that fills most: the others wait for more of
        their kind, as long as the oldest search can wait.
        """
        most = max(self._batches.values())
        kinds = [kind for kind, batches in self._batches.items() if batches >= min(most, _BATCHES)]
        if oldest.rounds_waited >= _PATIENCE and type(oldest.pending) not in kinds:
            kinds.append(type(oldest.pending))
        oldest.rounds_waited += 1
        for kind in kinds:
            members = self._members[kind]
            answers = self._services[kind].answer([member.pending for member in members])
            for search, answer in zip(members, answers, strict=True):
                search.rounds_waited = 0
                search.work += search.tokens or 0
                yield search, answer
