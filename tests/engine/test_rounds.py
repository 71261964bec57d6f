"""Which searches take part in a round: the oldest that fill the model's batches; their results stay the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stockade.core.text import Text
from stockade.engine.requests import Request, Score
from stockade.engine.scheduler import Scheduler, Search, Usage
from stockade.engine.scoring import ScoringService
from stockade.engine.services import Service
from tests.toys import WeightVictim

BATCH = 100


@dataclass(frozen=True, slots=True)
class Rows(Request[str]):
    """A request of so many tokens; its answer is its name."""

    name: str
    size: int

    @property
    def tokens(self) -> int | None:
        return self.size


class OtherRows(Rows):
    """The same for another model."""


class Quick(Rows):
    """A request that need not wait for others."""

    @property
    def tokens(self) -> int | None:
        return None


KINDS: tuple[type[Rows], ...] = (Rows, OtherRows, Quick)


@dataclass
class Recorder:
    """Services that note the names of the requests they answer together."""

    rounds: list[tuple[str, ...]] = field(default_factory=list)

    def answer(self, requests: Sequence[Rows]) -> list[str]:
        self.rounds.append(tuple(request.name for request in requests))
        return [request.name for request in requests]

    def scheduler(self, concurrency: int = 64, batch: int = BATCH) -> Scheduler:
        return Scheduler({kind: Service(self.answer, lambda: batch) for kind in KINDS}, concurrency)


def search(name: str, *steps: Rows) -> Search[tuple[str, list[str]]]:
    async def start() -> tuple[str, list[str]]:
        return name, [await step for step in steps]

    return Search(start)


def names_of(scheduler: Scheduler, searches: Sequence[Search[Any]]) -> list[str]:
    return [ended.result[0] for ended in scheduler.run(searches) if isinstance(ended.result, tuple)]


def test_no_more_searches_start_than_fill_eight_batches() -> None:
    recorder = Recorder()
    list(recorder.scheduler().run([search(str(i), Rows(str(i), 200)) for i in range(10)]))
    assert recorder.rounds == [("0", "1", "2", "3"), ("4", "5", "6", "7"), ("8", "9")]


def test_small_requests_fill_a_round_up_to_the_concurrency() -> None:
    recorder = Recorder()
    list(recorder.scheduler(concurrency=6).run([search(str(i), Rows(str(i), 1)) for i in range(10)]))
    assert [len(names) for names in recorder.rounds] == [6, 4]


def test_younger_searches_wait_while_older_ones_fill_the_round() -> None:
    """The first two are small at first, so a third starts; when they grow, it waits until they have ended."""
    recorder = Recorder()
    steps = {name: (Rows(f"{name}1", 300), Rows(f"{name}2", 400)) for name in "abc"}
    order = names_of(recorder.scheduler(), [search(name, *requests) for name, requests in steps.items()])
    assert recorder.rounds == [("a1", "b1", "c1"), ("a2", "b2"), ("c2",)]
    assert order == ["a", "b", "c"]


def test_texts_finish_steadily_though_all_might_be_in_flight() -> None:
    """Each asks for four batches once and then for little five times, as PWWS does: a round has room for two new ones,
    and each ends six rounds after it has started.
    """
    recorder = Recorder()
    searches = [search(str(i), Rows(f"{i}", 400), *(Rows(f"{i}", 1) for _ in range(5))) for i in range(40)]
    finished_at = [len(recorder.rounds) for _ in recorder.scheduler().run(searches)]
    assert finished_at == [6 + number // 2 for number in range(40)]


def test_a_request_that_gains_nothing_from_company_is_answered_at_once() -> None:
    recorder = Recorder()
    list(recorder.scheduler().run([search("a", Quick("a", 0), Rows("a", 1)), search("b", Rows("b", 1))]))
    assert recorder.rounds == [("a",), ("a", "b")]


def test_the_kind_that_fills_most_goes_first_and_the_other_waits_for_more() -> None:
    """When all ask for little, requests for the other model are answered once, together."""
    recorder = Recorder()
    searches = [search("a", OtherRows("a1", 1)), search("b", Rows("b1", 2), OtherRows("b2", 1))]
    list(recorder.scheduler().run(searches))
    assert recorder.rounds == [("b1",), ("a1", "b2")]


def test_the_oldest_search_does_not_wait_for_ever() -> None:
    recorder = Recorder()
    searches = [search("old", OtherRows("old", 1)), search("young", *(Rows("young", 800) for _ in range(40)))]
    list(recorder.scheduler().run(searches))
    assert ("old",) in recorder.rounds[:10]
    assert len(recorder.rounds) == 41


steps = st.builds(lambda kind, size: (kind, size), st.sampled_from(KINDS), st.integers(0, 900))


@settings(max_examples=200, deadline=None)
@given(st.lists(st.lists(steps, max_size=6), max_size=30), st.integers(1, 40), st.integers(1, 500))
def test_every_search_has_its_answers_in_order_whatever_runs_beside_it(
    plans: list[list[tuple[type[Rows], int]]], concurrency: int, batch: int
) -> None:
    running, most = 0, 0

    async def start(number: int, plan: list[tuple[type[Rows], int]]) -> tuple[int, list[str]]:
        nonlocal running, most
        running += 1
        most = max(most, running)
        answers = [await kind(f"{number}.{place}", size) for place, (kind, size) in enumerate(plan)]
        running -= 1
        return number, answers

    scheduler = Recorder().scheduler(concurrency, batch)
    searches = [Search(lambda n=n, plan=plan: start(n, plan)) for n, plan in enumerate(plans)]  # type: ignore[misc]
    results = dict(ended.result for ended in scheduler.run(searches))  # type: ignore[misc]
    assert results == {n: [f"{n}.{place}" for place in range(len(plan))] for n, plan in enumerate(plans)}
    assert most <= concurrency


def test_usage_counts_the_queries_of_running_searches() -> None:
    async def scored(count: int) -> None:
        for number in range(count):
            await Score([Text.parse(f"word{number}")])

    scheduler = Scheduler.for_classifier(ScoringService(WeightVictim({})))
    reports: list[Usage] = []
    list(scheduler.run([Search(lambda: scored(1)), Search(lambda: scored(3))], reports.append))
    assert [(usage.finished, usage.queries) for usage in reports] == [(1, 3), (1, 4), (2, 4)]
    assert [len(usage.running_work) for usage in reports] == [1, 1, 0]
    assert reports[-1] == scheduler.usage
    assert [usage.share(2) for usage in reports][-1] == 1.0


def test_the_share_that_is_done_counts_running_searches_in_part() -> None:
    """With 300 tokens for 2 ended searches the mean is 150; 100 tokens are 100 / (100 + 2 * 150) of a search."""
    usage = Usage(finished=2, queries=9, finished_work=200, running_work=(100, 0))
    assert usage.share(4) == pytest.approx((2 + 0.25) / 4)
    assert Usage(finished=0, queries=0, finished_work=0, running_work=()).share(4) == 0.0
    assert Usage(finished=0, queries=0, finished_work=0, running_work=()).share(0) == 0.0


@settings(deadline=None)
@given(st.integers(0, 50), st.lists(st.integers(0, 10**6), max_size=50), st.integers(0, 10**6))
def test_the_share_never_leaves_its_bounds(finished: int, running: list[int], work: int) -> None:
    usage = Usage(finished=finished, queries=0, finished_work=work if finished else 0, running_work=tuple(running))
    total = finished + len(running) + 3
    assert finished / total <= usage.share(total) <= (finished + len(running)) / total
