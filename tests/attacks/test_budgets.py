"""What a query budget does to an attack: it takes the first of its queries, all of them, and never a success away."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from stockade.attacks.pwws import PWWS
from stockade.attacks.registry import attacks, make_attack, task_of
from stockade.attacks.trial import Trial, attack_example
from stockade.core.example import Example
from stockade.core.protocols import AttentionQuery, Classifier, Probabilities, WordVocabulary
from stockade.core.records import Outcome
from stockade.core.seeds import derive_rng
from stockade.core.text import Text, TextInput
from stockade.defenses.defended import Defended
from stockade.defenses.registry import make_defense
from stockade.engine.composite import make_scoring
from stockade.engine.language import EmbeddingService, FillingService
from stockade.engine.requests import Query, Request, Score
from stockade.engine.scheduler import Scheduler, Search
from stockade.engine.services import Service, Services, classifier_services
from tests.attacks.driving import attack, guesses
from tests.toys import BagEncoder, ListMaskedLM, RandomVictim, WeightVictim

RULES = Path(__file__).with_name("one_rule.jsonl")
SENTENCE = "A good film was shown to a happy crowd in the old town."
WORDS = ("awful", "bright", "calm", "dark", "empty", "fresh", "grim", "huge", "idle", "jolly", "keen", "lame")
OPTIONS = {
    "hotflip": "min_cosine=-1,same_pos=false,max_flips=4",
    "rules": f"file={RULES}",
    **dict.fromkeys(("gs-ec", "asmin-ec", "asmax-ec"), "sample=4"),
    "genetic": "population=12",
    "genetic-fast": "population=12",
    "random": "draws=300",
}
EVERY_ATTACK = [
    f"{name}@{preset}" + (f":{OPTIONS[name]}" if name in OPTIONS else "")
    for name, entry in attacks().items()
    for preset in entry.presets
    if task_of(entry.implementation) == "classification"
]


@dataclass
class OpenRandomVictim(RandomVictim):
    """Answers without any structure, and an inside without any: no attack can foresee what its queries bring.

    The larger the lead of the first class, the fewer texts get another one.
    """

    lead: float = 1.0

    def predict_proba(self, inputs: Sequence[TextInput]) -> Probabilities:
        rows = super().predict_proba(inputs) * np.array([self.lead] + [1.0] * (self.classes - 1))
        return np.asarray(rows / rows.sum(1, keepdims=True))

    @property
    def labels(self) -> tuple[str, ...]:
        return ("positive", "negative", "mixed", "other")[: self.classes]

    @cache  # noqa: B019
    def word_vocabulary(self) -> WordVocabulary:
        vectors = np.random.default_rng(self.seed).normal(size=(len(WORDS), 3)).astype(np.float32)
        return WordVocabulary((*WORDS, *Text.parse(SENTENCE).words), np.concatenate([vectors, vectors, vectors])[:25])

    def word_gradients(self, texts: Sequence[Text], label: int) -> list[NDArray[np.float32]]:
        return [self._noise(text, (len(text.words), 3)) for text in texts]

    def predict_zeroed(self, places: Sequence[tuple[Text, int]]) -> Probabilities:
        return self.predict_proba([str(text.delete(index)) for text, index in places])

    def represent(self, inputs: Sequence[TextInput]) -> tuple[Probabilities, NDArray[np.float32]]:
        return self.predict_proba(inputs), np.array([self._noise(item, (3,)) for item in inputs])

    def word_attention(self, texts: Sequence[Text], layer: int, query: AttentionQuery) -> list[NDArray[np.float32]]:
        return [self._noise(text, (len(text.words),)) for text in texts]

    def _noise(self, item: object, shape: tuple[int, ...]) -> NDArray[np.float32]:
        return np.random.default_rng(list(f"{self.seed} {item}".encode())).random(shape, dtype=np.float32)

    __hash__ = object.__hash__


class _Everywhere(dict[str, Any]):
    """The same for every word."""

    def __init__(self, value: object) -> None:
        self._value = value

    def get(self, key: str, default: object = None) -> Any:
        return self._value


MASKED_LM = ListMaskedLM(after=_Everywhere(WORDS), table=_Everywhere((guesses(*WORDS),)))


@dataclass(frozen=True)
class Course:
    """What a search within a budget asked, in order, and what came of it."""

    queries: list[object]
    trial: Trial


def searched(reference: str, victim: Classifier, budget: int | None, string: str = SENTENCE) -> Course:
    text = Text.parse(string)
    label = int(victim.predict_proba([text.input])[0].argmax())
    named = make_attack(reference)
    filling, embedding = FillingService(lambda: MASKED_LM), EmbeddingService(BagEncoder)
    services, queries = recorded(
        classifier_services(
            make_scoring(victim, filling=filling, embedding=embedding), filling=filling, embedding=embedding
        )
    )

    async def start() -> Trial:
        return await attack_example(named.attack, Example("0", text, label), derive_rng(0, "0", named.name))

    (finished,) = Scheduler(services).run([Search(start, budget)])
    assert isinstance(finished.result, Trial)
    assert finished.queries == len(queries)
    return Course(queries, finished.result)


def recorded(services: Services) -> tuple[Services, list[object]]:
    """The services, and the texts that searches ask them about."""
    queries: list[object] = []

    def watched(service: Service) -> Service:
        def answer(requests: Sequence[Any]) -> Sequence[Any]:
            queries.extend(text for request in requests if request.counted for text in request.texts)
            return service.answer(requests)

        return Service(answer, service.batch_tokens)

    wrapped: Mapping[type[Request[Any]], Service] = {
        kind: watched(service) if issubclass(kind, Query) else service for kind, service in services.items()
    }
    return wrapped, queries


@pytest.mark.parametrize("reference", EVERY_ATTACK)
@given(
    st.integers(0, 10**6),
    st.lists(st.integers(1, 120), min_size=1, max_size=2),
    st.integers(2, 4),
    st.sampled_from([1.0, 4.0, 16.0]),
)
@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
def test_a_larger_budget_asks_the_same_first_and_never_loses_a_success(
    reference: str, seed: int, smaller: list[int], classes: int, lead: float
) -> None:
    victim = OpenRandomVictim(seed, classes, lead=lead)
    budgets = sorted({*smaller, *(budget + 1 for budget in smaller), 50, 100, 200, 500})
    courses = [searched(reference, victim, budget) for budget in budgets]
    for course, budget in zip(courses, budgets, strict=True):
        assert course.trial.status in ("success", "failed"), course.trial.reason
        if course.trial.reason == f"the query budget of {budget} is used up":
            assert len(course.queries) == budget
    for fewer, more in pairwise(courses):
        assert more.queries[: len(fewer.queries)] == fewer.queries
        assert fewer.trial.status == "failed" or more.trial.status == "success"


@pytest.mark.parametrize("reference", ["pwws", "textfooler", "genetic-fast:population=12", "random:draws=300"])
def test_a_defended_model_is_asked_as_far_as_the_budget_reaches(reference: str) -> None:
    """A deterministic defense: each text is answered by the votes of its parts."""
    votes = make_defense("partition:by=position,groups=3").defense
    defended = Defended(name="partition", defense=votes, inner=RandomVictim(5, classes=3))
    courses = [searched(reference, defended, budget) for budget in (5, 20, 21, 50, 100, 200, 500)]
    statuses = [course.trial.status for course in courses]
    assert statuses == sorted(statuses)  # "failed" before "success"
    for fewer, more in pairwise(courses):
        assert len(fewer.queries) <= len(more.queries)


def test_the_last_candidate_that_the_budget_reaches_counts() -> None:
    """PWWS asks about "great", then hides it; the third query is the first of its synonyms and fools the model."""
    victim = WeightVictim({"great": 1.0, "bad": 0.0}, bias=-0.5)
    result = attack(victim, "great", PWWS(), budget=3)
    assert (result.trial.status, result.queries, result.trial.tried) == ("success", 3, 1)
    assert attack(victim, "great", PWWS(), budget=2).trial.status == "failed"
    assert attack(victim, "great", PWWS()).trial.status == "success"


def test_an_attack_that_knows_nothing_of_budgets_gets_answers_that_fool_nobody() -> None:
    class Careless:
        async def search(self, example: Example, rng: Random) -> Outcome:
            tried = [example.text.replace(0, word) for word in ("fine", "bad", "worst")]
            scores = await Score(tried)
            gains = [example.gain(item) for item in scores]
            assert [item.answered for item in scores] == [True, True, False]
            assert not example.fooled(scores[2])
            return Outcome.found(tried[gains.index(max(gains))])

    result = attack(WeightVictim({"good": 1.0, "bad": -1.0, "worst": -2.0}), "good film", Careless(), budget=2)
    assert result.words == ("bad", "film")
    assert result.queries == 2


@pytest.mark.parametrize("reference", ["textfooler", "deepwordbug@textattack", "bae-r", "bert-attack"])
def test_a_search_that_the_budget_ends_leaves_what_it_had_made_of_the_text(reference: str) -> None:
    """The first class leads by much, so that most budgets end in the middle of a search."""
    victims = [OpenRandomVictim(seed, 2, lead=16.0) for seed in range(4)]
    trials = [searched(reference, victim, budget).trial for victim in victims for budget in range(14, 30)]
    stopped = [trial for trial in trials if trial.status == "failed" and "query budget" in str(trial.reason)]
    attempts = [trial.last_attempt for trial in stopped if trial.last_attempt is not None]
    assert attempts
    assert all(attempt.edits for attempt in attempts)
