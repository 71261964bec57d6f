"""What a search finds does not depend on what runs beside it."""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stockade.attacks.deepwordbug import DeepWordBug
from stockade.attacks.pwws import PWWS
from stockade.attacks.trial import Trial, attack_example
from stockade.core.errors import BudgetExhausted, ScoringFailed, StockadeError
from stockade.core.example import Example, Scores
from stockade.core.protocols import Attack, Classifier
from stockade.core.records import Outcome
from stockade.core.seeds import derive_rng
from stockade.core.text import Text
from stockade.engine.batching import TokenBudget
from stockade.engine.requests import Request, Score
from stockade.engine.scheduler import Finished, Scheduler, Search
from stockade.engine.scoring import ScoringService
from tests.toys import RandomVictim, WeightVictim

SENTENCES = (
    "a great little film",
    "the worst movie of the year , by far",
    "good acting but a dull and tired story",
    "I truly enjoyed my visit here",
    "",
    "boring",
    "wonderful wonderful wonderful",
    "an awful , terrible , no good picture show",
)


def run_all(
    victim: RandomVictim, attack: Attack, concurrency: int, tokens: int, budget: int | None
) -> dict[str, object]:
    examples = [Example(str(i), Text.parse(s), i % victim.classes) for i, s in enumerate(SENTENCES)]

    def search(example: Example) -> Search[tuple[str, Trial]]:
        async def start() -> tuple[str, Trial]:
            return example.id, await attack_example(attack, example, derive_rng(7, example.id, "toy"))

        return Search(start, budget)

    scheduler = Scheduler.for_classifier(ScoringService(victim, TokenBudget(tokens)), concurrency)
    finished = scheduler.run(search(example) for example in examples)
    return {
        item.result[0]: (item.result[1], item.queries, item.rows) for item in finished if isinstance(item.result, tuple)
    }


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    attack=st.sampled_from(
        [PWWS(), PWWS(choose_again=True, same_pos="any"), DeepWordBug(), DeepWordBug(one_shot=False)]
    ),
    tokens=st.integers(1, 3000),
    budget=st.none() | st.integers(1, 60),
)
def test_results_are_the_same_for_any_concurrency_and_batch(
    seed: int, attack: Attack, tokens: int, budget: int | None
) -> None:
    victim = RandomVictim(seed)
    alone = run_all(victim, attack, 1, 10, budget)
    assert len(alone) == len(SENTENCES)
    for concurrency in (7, 64):
        assert run_all(victim, attack, concurrency, tokens, budget) == alone


def drive(victim: Classifier, coroutine: Coroutine[Any, Any, object], budget: int | None = None) -> Finished[object]:
    search: Search[object] = Search(lambda: coroutine, budget)
    (finished,) = Scheduler.for_classifier(ScoringService(victim)).run([search])
    return finished


def texts(*strings: str) -> list[Text]:
    return [Text.parse(string) for string in strings]


def test_a_request_beyond_the_budget_ends_the_search() -> None:
    async def search() -> str:
        await Score(texts("a", "b"))
        await Score(texts("c", "d"))
        return "never"

    finished = drive(WeightVictim({}), search(), budget=3)
    assert isinstance(finished.result, BudgetExhausted)
    assert finished.queries == 2


def test_a_partial_request_is_answered_as_far_as_the_budget_goes() -> None:
    async def search() -> tuple[int, int]:
        first = await Score(texts("a", "b"))
        rest = await Score(texts("c", "d", "e"), partial=True)
        with pytest.raises(BudgetExhausted):
            await Score(texts("f"), partial=True)
        return len(first), len(rest)

    finished = drive(WeightVictim({}), search(), budget=3)
    assert finished.result == (2, 1)
    assert finished.queries == 3


def test_queries_are_counted_before_deduplication_and_rows_after() -> None:
    async def search() -> None:
        await Score(texts("a", "a", "b"))
        await Score(texts("b", "c"))
        await Score(texts("harness"), counted=False)

    victim = WeightVictim({})
    finished = drive(victim, search())
    assert (finished.queries, finished.rows) == (5, 3)
    assert sorted(victim.asked, key=str) == ["a", "b", "c", "harness"]


def test_requests_of_all_searches_share_batches() -> None:
    async def search(word: str) -> Scores:
        return (await Score(texts(word)))[0]

    victim = WeightVictim({})
    scheduler = Scheduler.for_classifier(ScoringService(victim), concurrency=64)
    list(scheduler.run(Search(lambda i=i: search(f"word{i}")) for i in range(64)))  # type: ignore[misc]
    assert victim.batches == [64]


def test_a_model_that_fails_on_one_text_costs_only_the_searches_that_asked_for_it() -> None:
    class Fragile(WeightVictim):
        def predict_proba(self, inputs: Sequence[object]) -> object:  # type: ignore[override]
            if any("poison" in str(item) for item in inputs):
                raise RuntimeError("cannot digest this")
            return super().predict_proba(inputs)  # type: ignore[arg-type]

    async def search(word: str) -> Scores:
        return (await Score(texts(word)))[0]

    scheduler = Scheduler.for_classifier(ScoringService(Fragile({})), concurrency=64)  # type: ignore[arg-type]
    words = [f"word{i}" for i in range(20)] + ["poison"]
    results = [item.result for item in scheduler.run(Search(lambda w=w: search(w)) for w in words)]  # type: ignore[misc]
    failures = [result for result in results if isinstance(result, ScoringFailed)]
    assert len(failures) == 1
    assert str(failures[0]) == "the model raised RuntimeError: cannot digest this"
    assert len(results) == 21


def test_a_search_that_raises_is_recorded_and_the_others_go_on() -> None:
    class Broken:
        async def search(self, example: Example, rng: Random) -> Outcome:
            raise ValueError("a bug in the attack")

    async def trial() -> Trial:
        return await attack_example(Broken(), Example("0", Text.parse("good film"), 1), Random(0))

    result = drive(WeightVictim({"good": 2.0}), trial()).result
    assert isinstance(result, Trial)
    assert (result.status, result.reason) == ("error", "the attack raised ValueError: a bug in the attack")


def test_a_request_nobody_can_answer_is_an_error_not_a_hang() -> None:
    class Strange(Request[int]):
        pass

    async def search() -> int:
        return await Strange()

    with pytest.raises(StockadeError, match="Strange"):
        drive(WeightVictim({}), search())


def test_long_texts_are_not_all_in_flight_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stockade.engine.scheduler.CHARACTERS_IN_FLIGHT", 100)

    async def search(i: int) -> None:
        await Score(texts(f"w{i}"))

    victim = WeightVictim({})
    scheduler = Scheduler.for_classifier(ScoringService(victim), concurrency=64)
    list(scheduler.run(Search(lambda i=i: search(i), weight=60) for i in range(6)))  # type: ignore[misc]
    assert victim.batches == [2, 2, 2]
