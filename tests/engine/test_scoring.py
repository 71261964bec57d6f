"""Deduplicated, cached, batched by length; a fault stays with the text that causes it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from stockade.core.errors import ScoringFailed
from stockade.core.example import Scores
from stockade.core.protocols import EncodingClassifier, Probabilities
from stockade.core.text import Text, TextInput
from stockade.engine.batching import TokenBudget
from stockade.engine.cache import BoundedCache
from stockade.engine.requests import Confirm, Score
from stockade.engine.scoring import ScoringService
from tests.toys import WeightVictim


def request(*strings: str) -> Score:
    return Score([Text.parse(string) for string in strings])


def values(answer: object) -> list[float]:
    assert isinstance(answer, list)
    return [scores.probabilities[1] for scores in answer]


def test_each_text_is_computed_once_and_answers_come_back_in_order() -> None:
    victim = WeightVictim({"good": 1.0, "bad": -1.0})
    service = ScoringService(victim)
    first, second = service.answer_scores([request("good", "bad", "good"), request("bad", "so so")])
    assert values(first) == [pytest.approx(0.731, abs=1e-3), pytest.approx(0.269, abs=1e-3), values(first)[0]]
    assert values(second) == [values(first)[1], 0.5]
    service.answer_scores([request("good", "so so")])
    assert sorted(victim.asked, key=str) == ["bad", "good", "so so"]
    assert service.rows == 3


def test_a_randomised_model_is_asked_every_time() -> None:
    victim = WeightVictim({}, deterministic=False)
    service = ScoringService(victim)
    service.answer_scores([request("a", "a"), request("a")])
    service.answer_scores([request("a")])
    assert len(victim.asked) == 4


def test_batches_are_cut_by_length_and_longest_first() -> None:
    victim = WeightVictim({})
    service = ScoringService(victim, TokenBudget(40))
    lengths = [4, 36, 8, 76, 12, 156]
    service.answer_scores([request(*("x" * n for n in lengths))])
    assert [len(str(item)) for item in victim.asked] == sorted(lengths, reverse=True)
    assert victim.batches == [1, 2, 3]


class Answering:
    """A classifier whose answers a test writes itself."""

    labels = ("negative", "positive")
    deterministic = True

    def __init__(self, answer: Callable[[Sequence[TextInput]], Probabilities]) -> None:
        self.answer = answer
        self.calls: list[int] = []

    def predict_proba(self, inputs: Sequence[TextInput]) -> Probabilities:
        self.calls.append(len(inputs))
        return self.answer(inputs)


def test_nan_fails_the_text_it_was_answered_for() -> None:
    service = ScoringService(Answering(lambda xs: np.array([[np.nan, 1.0] if "x" in x else [0.4, 0.6] for x in xs])))
    good, bad = service.answer_scores([request("a", "b"), request("a", "x")])
    assert values(good) == [0.6, 0.6]
    assert isinstance(bad, ScoringFailed)
    assert "NaN" in str(bad)


def test_a_wrong_number_of_rows_is_traced_to_the_text() -> None:
    def forgetful(inputs: Sequence[TextInput]) -> Probabilities:
        return np.array([[0.4, 0.6] for item in inputs if item != "x"]).reshape(-1, 2)

    service = ScoringService(Answering(forgetful))
    good, bad = service.answer_scores([request("a", "b", "c"), request("x")])
    assert values(good) == [0.6, 0.6, 0.6]
    assert isinstance(bad, ScoringFailed)
    assert "shape (0, 2)" in str(bad)


def test_when_memory_runs_out_the_budget_is_halved_and_the_work_done() -> None:
    def small(inputs: Sequence[TextInput]) -> Probabilities:
        if len(inputs) > 3:
            raise RuntimeError("CUDA out of memory")
        return np.array([[0.4, 0.6]] * len(inputs))

    budget = TokenBudget(4096)
    service = ScoringService(Answering(small), budget)
    (answer,) = service.answer_scores([request(*(f"text {i}" for i in range(16)))])
    assert values(answer) == [0.6] * 16
    assert budget.tokens < 4096


def test_a_confirmation_is_a_batch_of_one_and_never_cached() -> None:
    victim = WeightVictim({})
    service = ScoringService(victim)
    service.answer_scores([request("a")])
    (answer,) = service.answer_confirmations([Confirm(Text.parse("a"), draws=3)])
    assert isinstance(answer, list)
    assert len(answer) == 3
    assert victim.batches == [1, 1, 1, 1]


class Letters:
    """Encodes a text as its lower-case letters: texts that differ only in case are the same to it."""

    labels = ("short", "long")
    deterministic = True

    def __init__(self) -> None:
        self.forwarded: list[str] = []

    class Encoded:
        def __init__(self, key: str) -> None:
            self.key = key

        def __len__(self) -> int:
            return len(self.key)

    def encode(self, inputs: Sequence[TextInput]) -> list[Letters.Encoded]:
        if any("\ud800" in str(item) for item in inputs):
            raise ValueError("cannot encode")
        return [Letters.Encoded(str(item).lower()) for item in inputs]

    def predict_encoded(self, batch: Sequence[Letters.Encoded]) -> Probabilities:
        self.forwarded += [item.key for item in batch]
        return np.array([[1 / (1 + len(item)), len(item) / (1 + len(item))] for item in batch])

    def predict_proba(self, inputs: Sequence[TextInput]) -> Probabilities:
        return self.predict_encoded(self.encode(inputs))


def test_texts_the_model_cannot_tell_apart_are_computed_once() -> None:
    model = Letters()
    assert isinstance(model, EncodingClassifier)
    (answer,) = ScoringService(model).answer_scores([request("Film", "film", "FILM", "movie")])
    assert len(set(values(answer)[:3])) == 1
    assert sorted(model.forwarded) == ["film", "movie"]


def test_a_text_that_cannot_be_encoded_fails_alone() -> None:
    good, bad = ScoringService(Letters()).answer_scores([request("a", "b"), request("\ud800")])
    assert len(values(good)) == 2
    assert isinstance(bad, ScoringFailed)


def test_the_cache_is_bounded_and_forgets_what_was_used_longest_ago() -> None:
    cache: BoundedCache[Scores] = BoundedCache(max_bytes=1300)
    for name in "abcd":
        cache.put(name, Scores((1.0,)))
    assert cache.get("a") is not None
    cache.put("e" * 100, Scores((1.0,)))
    assert cache.get("b") is None
    assert cache.get("a") is not None
    assert len(cache) == 3


class Workers(Letters):
    """Computes batches in two worker threads and notes which ones worked."""

    workers = 2

    def __init__(self) -> None:
        super().__init__()
        self.started: list[int] = []
        self.threads: list[int] = []
        self.both_work = threading.Event()

    def start_worker(self) -> None:
        self.started.append(threading.get_ident())

    def predict_encoded(self, batch: Sequence[Letters.Encoded]) -> Probabilities:
        self.threads.append(threading.get_ident())
        if len(set(self.threads)) == self.workers:
            self.both_work.set()
        self.both_work.wait(timeout=60)  # on a busy machine the first may be done before the second begins
        return super().predict_encoded(batch)


def test_batches_are_shared_out_among_workers_and_come_back_in_order() -> None:
    model = Workers()
    strings = ["x" * n for n in range(1, 80)]
    (answer,) = ScoringService(model, TokenBudget(4096)).answer_scores([request(*strings)])
    assert values(answer) == [n / (1 + n) for n in range(1, 80)]
    assert len(set(model.threads)) == 2
    assert set(model.threads) == set(model.started)
    assert threading.get_ident() not in model.threads


def test_large_values_count_for_what_they_are() -> None:
    cache: BoundedCache[str] = BoundedCache(max_bytes=10_000, entry_bytes=3_000)
    for key in "abcd":
        cache.put(key, key)
    assert [key for key in "abcd" if cache.get(key)] == ["b", "c", "d"]
