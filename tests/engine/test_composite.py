"""Classifiers that ask another one: draws that do not depend on what runs beside them, nesting, caching, faults."""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stockade.core.errors import ModelError, ScoringFailed
from stockade.core.example import Scores
from stockade.core.protocols import Classifier, Probabilities
from stockade.core.text import Text, TextInput
from stockade.datasets.examples import prepare_examples
from stockade.datasets.load import load_data
from stockade.defenses.defended import Defended
from stockade.defenses.ranmask import RanMask
from stockade.engine.batching import TokenBudget
from stockade.engine.composite import make_scoring
from stockade.engine.language import EmbeddingService
from stockade.engine.requests import ClassNames, Confirm, Draw, Embed, Masked, Request, Score, Zeroed
from stockade.engine.scheduler import Scheduler, Search
from stockade.experiment.progress import Runtime
from stockade.workflows.attack.run import attack_examples
from stockade.workflows.attack.spec import AttackSpec
from tests.toys import BagEncoder, RandomVictim, WeightVictim

TEXTS = [
    ("a great little film", "positive"),
    ("the worst movie of the year , by far", "negative"),
    ("good acting but a dull and tired story", "negative"),
    ("I truly enjoyed my visit here", "positive"),
    ("wonderful wonderful wonderful", "positive"),
    ("an awful , terrible , no good picture show", "negative"),
]
WEIGHTS = {"great": 2.0, "good": 1.5, "enjoyed": 2.0, "wonderful": 2.0, "worst": -3.0, "dull": -2.5, "awful": -3.0}


@dataclass
class Composite:
    """A composite whose answers are given by a coroutine; remembers what it was asked for."""

    inner: Classifier
    ask: Any
    deterministic: bool = True
    queries: list[tuple[str, int]] = field(default_factory=list)

    @property
    def labels(self) -> tuple[str, ...]:
        return self.inner.labels

    def answer(self, text: Text, draw: int) -> Coroutine[Any, Any, Scores]:
        self.queries.append((str(text), draw))
        result: Coroutine[Any, Any, Scores] = self.ask(text)
        return result

    def predict_proba(self, inputs: Sequence[TextInput]) -> Probabilities:
        raise NotImplementedError


async def flipped(text: Text) -> Scores:
    """The inner answer with its classes exchanged."""
    return Scores((await Score([text]))[0].probabilities[::-1])


async def unlucky(text: Text) -> Scores:
    if "boom" in str(text):
        raise ValueError("boom")
    return (await Score([text]))[0]


def question(*strings: str, draw: Draw | None = None) -> Score:
    return Score([Text.parse(string) for string in strings], draw=draw)


def outcomes(folder: Path, concurrency: int, tokens: int | None, stop_after: int | None = None) -> dict[str, Any]:
    """What an attack finds on a randomised defense; with `stop_after` it is interrupted and gone on with."""
    victim = Defended(name="ranmask", defense=RanMask(rate=0.4, copies=3), inner=WeightVictim(WEIGHTS), seed=5)
    examples = prepare_examples(load_data(TEXTS), victim.labels)
    spec = AttackSpec.of(model="toy", data="toy", attacks="deepwordbug", seed=3, budget=60, similarity=False)
    runtime = Runtime(concurrency=concurrency, batch_tokens=tokens)

    class Interrupted(Exception):
        pass

    def observer(progress: Any) -> None:
        if stop_after is not None and progress.done == stop_after:
            raise Interrupted

    if stop_after is not None:
        with pytest.raises(Interrupted):
            attack_examples(spec, folder, replace(runtime, observer=observer), True, victim, examples)
    result = attack_examples(spec, folder, runtime, True, victim, examples)
    return {record.id: record for record in result.records()}


def test_draws_do_not_depend_on_concurrency_batches_or_resume(tmp_path: Path) -> None:
    for name in "abcd":
        (tmp_path / name).mkdir()
    expected = outcomes(tmp_path / "a", 64, None)
    assert len(expected) == len(TEXTS)
    assert any(record.queries > 3 for record in expected.values())
    assert outcomes(tmp_path / "b", 1, None) == expected
    assert outcomes(tmp_path / "c", 3, 64) == expected
    assert outcomes(tmp_path / "d", 2, None, stop_after=3) == expected


def test_a_deterministic_composite_is_asked_once_for_a_text() -> None:
    composite = Composite(WeightVictim(WEIGHTS), flipped)
    service = make_scoring(composite)
    first, second = service.answer_scores([question("good", "dull", "good"), question("dull")])
    service.answer_scores([question("good")])
    assert composite.queries == [("good", 0), ("dull", 0)]
    assert first[1] == second[0]  # type: ignore[index]
    assert first[0].probabilities[0] == pytest.approx(1 / (1 + np.exp(-1.5)))  # type: ignore[index]


def test_a_randomised_composite_is_asked_every_time_with_choices_of_its_own() -> None:
    composite = Composite(WeightVictim(WEIGHTS), flipped, deterministic=False)
    service = make_scoring(composite)
    service.answer_scores([question("good", "good", draw=Draw(1, 0)), question("good", draw=Draw(2, 0))])
    service.answer_scores([question("good", draw=Draw(1, 1))])
    draws = [draw for _, draw in composite.queries]
    assert len(composite.queries) == 4
    assert len(set(draws)) == 3
    assert draws[1] == draws[3], "the second query of a search has the same choices wherever it is made"


def test_a_search_that_asks_again_meets_other_choices() -> None:
    composite = Composite(WeightVictim(WEIGHTS), flipped, deterministic=False)

    async def asking() -> None:
        for _ in range(3):
            await Score([Text.parse("good")])
        await Confirm(Text.parse("good"), draws=2)

    for _ in range(2):
        list(Scheduler.for_classifier(make_scoring(composite)).run([Search(asking, draw_seed=9)]))
    draws = [draw for _, draw in composite.queries]
    assert len(set(draws[:5])) == 5
    assert draws[:5] == draws[5:], "and the same ones when it is run again"


def test_confirmations_go_past_the_cache() -> None:
    composite = Composite(WeightVictim(WEIGHTS), flipped)
    service = make_scoring(composite)
    service.answer_scores([question("good")])
    (answer,) = service.answer_confirmations([Confirm(Text.parse("good"), draws=2)])
    assert len(composite.queries) == 3
    assert len(answer) == 2  # type: ignore[arg-type]


def test_composites_nest() -> None:
    victim = WeightVictim(WEIGHTS)
    service = make_scoring(Composite(Composite(victim, flipped), flipped))
    (answer,) = service.answer_scores([question("good")])
    assert answer[0].probabilities == pytest.approx(tuple(victim.predict_proba(["good"])[0]))  # type: ignore[index]
    assert service.rows == 1


def test_a_fault_in_one_answer_costs_no_other() -> None:
    service = make_scoring(Composite(WeightVictim(WEIGHTS), unlucky))
    first, second = service.answer_scores([question("good", "boom"), question("dull")])
    assert isinstance(first, ScoringFailed)
    assert "ValueError: boom" in str(first)
    assert isinstance(second, list)


def test_words_can_only_be_hidden_from_the_model_itself() -> None:
    service = make_scoring(Composite(WeightVictim(WEIGHTS), flipped))
    with pytest.raises(ModelError, match="directly around the model"):
        service.answer_masked([Masked(["a"], None, np.ones((1, 1), dtype=np.bool_))])


def test_searches_may_see_another_classifier_than_the_one_they_fool(tmp_path: Path) -> None:
    """What the searches ask goes to the view; clean texts and successes are the victim's."""
    victim, view = RandomVictim(classes=2), WeightVictim(WEIGHTS, labels=("0", "1"))
    data = [(text, "1" if label == "positive" else "0") for text, label in TEXTS]
    examples = prepare_examples(load_data(data), victim.labels)
    spec = AttackSpec.of(model="toy", data="toy", attacks="deepwordbug", budget=40, similarity=False)
    result = attack_examples(spec, tmp_path, Runtime(), False, victim, examples, queried=view)
    clean = {text: tuple(victim.predict_proba([text])[0]) for text, _ in TEXTS}
    records = list(result.records())
    assert {record.original: record.original_scores for record in records} == clean
    attacked = [record.original for record in records if record.status != "skipped"]
    assert attacked
    assert set(attacked) <= set(view.asked)
    for record in records:
        if record.adversarial is not None and record.adversarial_scores is not None:
            assert record.adversarial_scores == tuple(victim.predict_proba([record.adversarial])[0])


def test_the_answers_to_all_texts_of_a_round_are_computed_together() -> None:
    victim = WeightVictim(WEIGHTS)
    make_scoring(Composite(victim, flipped)).answer_scores([question("good", "dull"), question("great")])
    assert victim.batches == [3]


def test_the_budget_of_a_batch_is_that_of_the_model_inside() -> None:
    """Of texts of four tokens two fit into eight."""
    victim = WeightVictim(WEIGHTS)
    strings = [f"good film {at:02}" for at in range(6)]
    make_scoring(Composite(victim, flipped), TokenBudget(8)).answer_scores([question(*strings)])
    assert victim.batches == [2, 2, 2]


def test_a_deterministic_composite_makes_the_same_choices_when_a_text_is_confirmed() -> None:
    composite = Composite(WeightVictim(WEIGHTS), flipped)
    make_scoring(composite).answer_confirmations([Confirm(Text.parse("good"), 2, Draw(4, 7))])
    assert composite.queries == [("good", 0)] * 2


def test_how_many_texts_fill_a_batch_is_learned_from_the_rows_they_need() -> None:
    """Four rows per text, so a quarter of the tokens; before the first text any will do."""

    async def four_copies(text: Text) -> Scores:
        return (await Score([Text.parse(f"{text} {number}") for number in range(4)]))[0]

    service = make_scoring(Composite(WeightVictim(WEIGHTS), four_copies), TokenBudget(512))
    assert service.batch_tokens == 1
    service.answer_scores([question("good", "dull"), question("great")])
    assert service.batch_tokens == 128


def test_pairs_with_the_same_hypothesis_are_different_texts() -> None:
    victim = RandomVictim(classes=2)
    service = make_scoring(Composite(victim, flipped))
    (answer,) = service.answer_scores([Score([Text.parse("a dog", "one"), Text.parse("a dog", "two")])])
    expected = victim.predict_proba([("one", "a dog"), ("two", "a dog")])
    assert [scores.probabilities for scores in answer] == [tuple(row[::-1]) for row in expected]  # type: ignore[union-attr]


@pytest.mark.parametrize("depth", [1, 2])
def test_the_sentence_encoder_is_there_at_every_depth(depth: int) -> None:
    """Also for an answer inside an answer."""

    async def like_good(text: Text) -> Scores:
        vectors = await Embed([str(text), "good"])
        cosine = float(vectors[0] @ vectors[1])
        return Scores((1 - cosine, cosine))

    model: Classifier = Composite(WeightVictim(WEIGHTS), like_good)
    for _ in range(depth - 1):
        model = Composite(model, flipped)
    (answer,) = make_scoring(model, embedding=EmbeddingService(BagEncoder)).answer_scores([question("good good")])
    expected = (0.0, 1.0) if depth == 1 else (1.0, 0.0)
    assert answer[0].probabilities == pytest.approx(expected, abs=1e-6)  # type: ignore[index]


def test_what_is_computed_for_others_is_charged_to_the_model_inside() -> None:
    service = make_scoring(Composite(WeightVictim(WEIGHTS), flipped))
    service.charge(3, 0.5)
    assert (service.rows, service.model_seconds) == (3, 0.5)


def test_no_two_choices_of_a_search_are_the_same_whatever_it_asks_together() -> None:
    composite = Composite(WeightVictim(WEIGHTS), flipped, deterministic=False)
    good, dull = Text.parse("good"), Text.parse("dull")

    async def asking() -> None:
        await Score([good, dull])
        await Score([good])
        await Confirm(good, draws=3)
        await Score([good, dull])

    list(Scheduler.for_classifier(make_scoring(composite)).run([Search(asking, draw_seed=9)]))
    assert len(composite.queries) == 2 + 1 + 3 + 2
    assert len({draw for _, draw in composite.queries}) == len(composite.queries)


@dataclass
class ZeroingVictim(WeightVictim):
    """Also answers as if a word were not there."""

    def predict_zeroed(self, places: Sequence[tuple[Text, int]]) -> Probabilities:
        return self.predict_proba([str(text.delete(index)) for text, index in places])


def queried_through(request: Request[Any], victim: Classifier, view: Classifier) -> tuple[Any, int]:
    """The answer to a search that looks through a view, and how many rows of the view it cost."""
    service = make_scoring(view)

    async def asking() -> Any:
        return await request

    (ended,) = Scheduler.for_classifier(make_scoring(victim), view=service).run([Search(asking)])
    return ended.result, service.rows


def test_searches_through_a_view_look_into_the_view() -> None:
    victim, view = ZeroingVictim({"good": 1.0}), ZeroingVictim({"good": -1.0}, bias=0.5, labels=("n", "p"))
    rows, cost = queried_through(Masked(["good", "film"], None, np.array([[True, True], [False, True]])), victim, view)
    assert rows[:, 1] == pytest.approx([1 / (1 + np.exp(0.5)), 1 / (1 + np.exp(-0.5))])
    assert cost == 2
    (scores,), cost = queried_through(Zeroed([(Text.parse("good film"), 0)]), victim, view)
    assert scores.probabilities[1] == pytest.approx(1 / (1 + np.exp(-0.5)))
    assert cost == 1
    assert queried_through(ClassNames(), victim, view)[0] == ("negative", "positive"), "the classes are the victim's"


def test_clean_texts_go_to_the_victim_and_questions_to_the_view_in_any_order() -> None:
    """All in one round: each search has the answer to its own question."""
    victim, view = WeightVictim({"good": 1.0}), WeightVictim({"good": -1.0})

    async def asking(counted: bool) -> tuple[bool, int]:
        return counted, (await Score([Text.parse("good")], counted=counted))[0].label

    scheduler = Scheduler.for_classifier(make_scoring(victim), view=make_scoring(view))
    counted = [True, False, True, False, False]
    finished = scheduler.run(Search(lambda flag=flag: asking(flag)) for flag in counted)  # type: ignore[misc]
    assert [ended.result for ended in finished] == [(flag, 0 if flag else 1) for flag in counted]
