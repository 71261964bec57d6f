"""Sentence vectors: kept for all searches, shared with the scores, computed by several workers, faults contained."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from stockade.core.errors import ModelError, ScoringFailed
from stockade.core.protocols import Probabilities, WordVocabulary
from stockade.core.text import Text, TextInput
from stockade.engine import representing
from stockade.engine.batching import TokenBudget
from stockade.engine.representing import RepresentingService
from stockade.engine.requests import Represent, Score, WordFeatures
from stockade.engine.scoring import ScoringService
from tests.toys import OpenVictim, WeightVictim

VECTORS = {"great": (3.0, 1.0), "fine": (1.0, 0.0), "dull": (-1.0, 2.0), "bad": (-2.0, 0.0)}
WEIGHTS = {word: vector[0] for word, vector in VECTORS.items()}


def services(victim: Any, budget: TokenBudget | None = None) -> tuple[ScoringService, RepresentingService]:
    scoring = ScoringService(victim, budget)
    return scoring, RepresentingService(scoring)


def texts(*strings: str) -> list[Text]:
    return [Text.parse(string) for string in strings]


def test_scores_and_vectors_are_those_of_the_model_and_computed_once() -> None:
    victim = OpenVictim(WEIGHTS, VECTORS)
    scoring, service = services(victim)
    first, second = service.answer([Represent(texts("great dull", "bad")), Represent(texts("bad", "great dull"))])
    assert not isinstance(first, Exception)
    assert [vector.tolist() for _, vector in first] == [[2.0, 3.0], [-2.0, 0.0]]
    assert first[0][0].probabilities[1] == pytest.approx(1 / (1 + np.exp(-2)))
    assert not isinstance(second, Exception)
    assert [vector.tolist() for _, vector in second] == [[-2.0, 0.0], [2.0, 3.0]]
    service.answer([Represent(texts("bad"))])
    assert victim.asked == ["great dull", "bad"]
    assert scoring.rows == 2


def test_scores_that_came_with_vectors_are_not_asked_for_again() -> None:
    scoring, service = services(OpenVictim(WEIGHTS, VECTORS))
    ((scores, _),) = service.answer([Represent(texts("great dull"))])[0]  # type: ignore[misc]
    assert scoring.answer_scores([Score(texts("great dull"))]) == [[scores]]
    assert scoring.rows == 1


def test_little_memory_costs_rows_and_changes_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(representing, "_CACHE_BYTES", 1200)  # two entries
    scoring, service = services(OpenVictim(WEIGHTS, VECTORS))
    for _ in range(2):
        (answer,) = service.answer([Represent(texts("great", "fine", "dull", "bad"))])
        assert not isinstance(answer, Exception)
        assert [vector.tolist() for _, vector in answer] == [list(vector) for vector in VECTORS.values()]
    assert scoring.rows == 6


def test_a_randomised_model_is_asked_each_time() -> None:
    victim = OpenVictim(WEIGHTS, VECTORS)
    victim.deterministic = False
    scoring, service = services(victim)
    service.answer([Represent(texts("great", "great"))])
    service.answer([Represent(texts("great"))])
    assert scoring.rows == 3


class Fragile(OpenVictim):
    """Raises on texts with the word "bad"."""

    def represent(self, inputs: Sequence[TextInput]) -> tuple[Probabilities, NDArray[np.float32]]:
        if any("bad" in str(item) for item in inputs):
            raise ValueError("not that word")
        return super().represent(inputs)


def test_a_fault_costs_only_the_text_that_causes_it() -> None:
    _, service = services(Fragile(WEIGHTS, VECTORS))
    whole, partial, other = service.answer(
        [
            Represent(texts("great", "bad")),
            Represent(texts("great", "bad"), partial=True),
            Represent(texts("fine", "dull")),
        ]
    )
    assert isinstance(whole, ScoringFailed)
    assert not isinstance(partial, Exception)
    assert [scores.answered for scores, _ in partial] == [True, False]
    assert not isinstance(other, Exception)
    assert [vector.tolist() for _, vector in other] == [[1.0, 0.0], [-1.0, 2.0]]


def test_a_model_without_sentence_vectors_ends_the_run_with_a_sentence() -> None:
    _, service = services(WeightVictim(WEIGHTS))
    with pytest.raises(ModelError, match="to show its sentence vectors"):
        service.answer([Represent(texts("great"))])
    with pytest.raises(ModelError, match="to show its sentence vectors"):
        service.answer_features([WordFeatures(WordVocabulary(("great",), np.ones((1, 1), dtype=np.float32)))])


class Encoded:
    """Texts as lists of words; computes two batches at once and remembers the threads."""

    deterministic, labels, workers = True, ("negative", "positive"), 2

    def __init__(self) -> None:
        self.threads: set[str] = set()
        self.both = threading.Barrier(2, timeout=20)

    def start_worker(self) -> None:
        pass

    def encode(self, inputs: Sequence[TextInput]) -> list[Any]:
        return [Words(str(item).lower().split()) for item in inputs]

    def predict_encoded(self, batch: Sequence[Any]) -> Probabilities:
        return self.represent_encoded(batch)[0]

    def predict_proba(self, inputs: Sequence[TextInput]) -> Probabilities:
        return self.predict_encoded(self.encode(inputs))

    def represent(self, inputs: Sequence[TextInput]) -> tuple[Probabilities, NDArray[np.float32]]:
        raise AssertionError("the engine cuts the batches")

    def represent_encoded(self, batch: Sequence[Any]) -> tuple[Probabilities, NDArray[np.float32]]:
        self.both.wait()  # passes only if two batches are computed at the same time
        self.threads.add(threading.current_thread().name)
        vectors = np.array([[len(words), len("".join(words))] for words in batch], dtype=np.float32)
        return np.full((len(batch), 2), 0.5), vectors


class Words(list[str]):
    @property
    def key(self) -> str:
        return " ".join(self)


def test_workers_share_the_batches_and_equal_tokens_are_computed_once() -> None:
    victim = Encoded()
    scoring, service = services(victim, TokenBudget(64))
    strings = [f"{'a ' * 40}{letter}" for letter in "bcB"]
    (answer,) = service.answer([Represent(texts(*strings))])
    assert not isinstance(answer, Exception)
    assert [vector.tolist() for _, vector in answer] == [[41, 41]] * 3
    assert len(victim.threads) == 2
    assert scoring.rows == 2  # "b" and "B" are the same to the model


def test_features_are_computed_once_and_have_parts_of_one_size() -> None:
    victim = OpenVictim(WEIGHTS, VECTORS)
    scoring, service = services(victim)
    vocabulary = WordVocabulary(victim.vocabulary.words, 100 * victim.vocabulary.vectors)
    first, second = service.answer_features([WordFeatures(vocabulary), WordFeatures(vocabulary)])
    assert first is second
    assert first is service.answer_features([WordFeatures(vocabulary)])[0]
    assert scoring.rows == len(VECTORS)
    inputs, alone = first[:, :2], first[:, 2:]
    assert inputs == pytest.approx(alone, abs=1e-6)  # a word alone has its own vector here, and 100 times is evened out
    assert np.square(inputs).sum(1).mean() == pytest.approx(1)
    assert first.mean(0) == pytest.approx(0, abs=1e-6)


def test_input_vectors_serve_where_the_model_fails_on_a_word_alone() -> None:
    victim = Fragile(WEIGHTS, VECTORS)
    _, service = services(victim)
    (features,) = service.answer_features([WordFeatures(victim.vocabulary)])
    assert features.shape == (4, 2)
