"""Two rules of success against randomised models: what fools once, as published, and what fools repeatedly.

The search goes on after a flip that does not repeat, whatever the attack.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np
import pytest

from stockade.attacks.greedy import greedy
from stockade.attacks.registry import make_attack
from stockade.attacks.repeatability import LEAD, Tally
from stockade.attacks.trial import MOST_DISMISSED, Trial, attack_example
from stockade.core.example import Example, Scores
from stockade.core.protocols import Attack, Classifier, Probabilities
from stockade.core.records import Outcome
from stockade.core.seeds import derive_rng
from stockade.core.text import Text, TextInput
from stockade.defenses.defended import Defended
from stockade.engine.composite import make_scoring
from stockade.engine.language import EmbeddingService, FillingService
from stockade.engine.requests import Draw, Fallback, Score, clean_draw
from stockade.engine.scheduler import Finished, Scheduler, Search
from tests.attacks.test_budgets import EVERY_ATTACK, MASKED_LM, SENTENCE, OpenRandomVictim
from tests.toys import BagEncoder, WeightVictim

TEXT = Text.parse("a great film")
RIGHT, WRONG = (0.2, 0.8), (0.7, 0.3)


@dataclass
class Scripted:
    """Two classes; what is said of a text is written down, answer by answer, and the last one stays. Any other text is
    positive.
    """

    script: Mapping[str, Sequence[tuple[float, float]]]
    labels: tuple[str, ...] = ("negative", "positive")
    deterministic: bool = False
    asked: list[str] = field(default_factory=list)

    def predict_proba(self, inputs: Sequence[TextInput]) -> Probabilities:
        rows = []
        for item in map(str, inputs):
            answers = self.script.get(item, [RIGHT])
            rows.append(answers[min(self.asked.count(item), len(answers) - 1)])
            self.asked.append(item)
        return np.array(rows)


@dataclass(frozen=True)
class Candidates:
    """Asks about "a … film" with each word in turn, one by one or all at once; the first that fools is the result."""

    words: tuple[str, ...]
    at_once: bool = False

    async def search(self, example: Example, rng: Random) -> Outcome:
        texts = [example.text.replace(1, word) for word in self.words]
        for group in [texts] if self.at_once else [[text] for text in texts]:
            for text, scores in zip(group, await Score(group), strict=True):
                if example.fooled(scores):
                    return Outcome.found(text)
        return Outcome.failed("no candidate fools it")


@dataclass(frozen=True)
class Steps:
    """One greedy step after the other: "dull" or "slow" for the second word, "play" for the third."""

    async def search(self, example: Example, rng: Random) -> Outcome:
        choices = {1: ("dull", "slow"), 2: ("play",)}

        async def candidates(text: Text, index: int) -> list[Text]:
            return [text.replace(index, word) for word in choices[index]]

        (clean,) = await Score([example.text], probe=True)
        return await greedy(example, clean, choices, candidates, allowed=2)


def searched(victim: Classifier, attack: Attack, budget: int | None = None, **options: Any) -> Finished[Trial]:
    filling, embedding = FillingService(lambda: MASKED_LM), EmbeddingService(BagEncoder)
    text, seed = options.pop("text", TEXT), options.pop("seed", 0)
    options = {"deterministic": False, "clean_draw": clean_draw(seed, "0"), **options}

    async def start() -> Trial:
        return await attack_example(attack, Example("0", text, options.pop("label", 1)), derive_rng(seed), **options)

    scoring = make_scoring(victim, filling=filling, embedding=embedding)
    scheduler = Scheduler.for_classifier(scoring, filling=filling, embedding=embedding)
    (finished,) = scheduler.run([Search(start, budget, draw_seed=seed)])
    assert isinstance(finished.result, Trial)
    return finished


ONCE_THEN_RIGHT = {"a dull film": [WRONG, RIGHT], "a slow film": [WRONG]}


def test_the_search_goes_on_to_the_candidate_that_is_real() -> None:
    """ "dull" fools the model once and never again; "slow" always does. What is asked, by hand: the clean text, a query
    and eight draws of the first, a query and eight draws of the second.
    """
    victim = Scripted(ONCE_THEN_RIGHT)
    finished = searched(victim, Candidates(("dull", "slow")))
    trial = finished.result
    assert isinstance(trial, Trial)
    assert (trial.status, str(trial.text), trial.dismissed) == ("success", "a slow film", 1)
    assert trial.first_flip is not None
    assert (str(trial.first_flip.text), trial.first_flip.query, trial.first_flip.queries) == ("a dull film", 1, 1)
    assert trial.repetition is not None
    assert trial.repetition.tally == Tally(LEAD, LEAD)
    assert victim.asked == ["a great film", *["a dull film"] * (1 + LEAD), *["a slow film"] * (1 + LEAD)]
    assert (finished.queries, trial.tried) == (2, 2), "what the harness asks is not a query of the attack"


def test_answers_that_the_search_had_are_not_asked_for_again() -> None:
    """Both were scored in one request: after the first was dismissed, no query is needed to come to the second."""
    victim = Scripted(ONCE_THEN_RIGHT)
    finished = searched(victim, Candidates(("dull", "slow", "warm"), at_once=True))
    assert (finished.result.status, str(finished.result.text), finished.queries) == ("success", "a slow film", 3)  # type: ignore[union-attr]
    assert Counter(victim.asked) == {
        "a great film": 1, "a dull film": 1 + LEAD, "a slow film": 1 + LEAD, "a warm film": 1,
    }  # fmt: skip


def test_a_search_that_goes_on_takes_the_course_it_would_have_taken() -> None:
    """ "dull" fools once; the mean of its later answers is the best score of the step, so the search builds on it."""
    near = (0.45, 0.55)
    script = {"a dull film": [WRONG, near], "a slow film": [(0.3, 0.7)], "a dull play": [WRONG]}
    finished = searched(Scripted(script), Steps())
    assert (finished.result.status, str(finished.result.text)) == ("success", "a dull play")  # type: ignore[union-attr]
    assert finished.queries == 1 + 2 + 1


def test_the_search_goes_on_only_as_long_as_there_are_queries() -> None:
    trial = searched(Scripted(ONCE_THEN_RIGHT), Candidates(("dull", "slow")), budget=1).result
    assert isinstance(trial, Trial)
    assert (trial.status, trial.first_flip is not None) == ("failed", True)
    assert trial.reason == (
        "1 text fooled the model once, but not half of the time; then: the query budget of 1 is used up"
    )


def test_what_the_search_falls_back_on_is_confirmed_as_well() -> None:
    class FallsBack:
        async def search(self, example: Example, rng: Random) -> Outcome:
            for word in ("dull", "slow", "warm"):
                text = example.text.replace(1, word)
                if example.fooled((await Score([text]))[0]):
                    await Fallback(Outcome.found(text))
            return Outcome.failed("all were tried")

    trial = searched(Scripted({"a dull film": [WRONG], "a slow film": [WRONG, RIGHT]}), FallsBack()).result
    assert isinstance(trial, Trial)
    assert (trial.status, str(trial.text), trial.dismissed) == ("success", "a dull film", 1)


def test_where_the_search_sees_a_model_that_answers_alike_it_does_not_go_on() -> None:
    victim = Scripted(ONCE_THEN_RIGHT)
    trial = searched(victim, Candidates(("dull", "slow")), goes_on=False).result
    assert isinstance(trial, Trial)
    assert (trial.status, trial.dismissed, "a slow film" in victim.asked) == ("failed", 1, False)


def test_a_search_that_follows_noise_is_given_up() -> None:
    words = tuple(f"word{number}" for number in range(2 * MOST_DISMISSED))
    script = {f"a {word} film": [WRONG, RIGHT] for word in words}
    finished = searched(Scripted(script), Candidates(words))
    assert isinstance(finished.result, Trial)
    assert (finished.result.dismissed, finished.queries) == (MOST_DISMISSED, MOST_DISMISSED)
    assert (finished.result.reason or "").endswith("the search was given up")


def test_a_deterministic_model_is_attacked_as_ever() -> None:
    victim = Scripted(ONCE_THEN_RIGHT, deterministic=True)
    trial = searched(victim, Candidates(("dull", "slow")), deterministic=True).result
    assert isinstance(trial, Trial)
    assert (trial.status, trial.reason) == ("failed", "the text found did not fool the model when it was asked again")
    assert (trial.first_flip, trial.repetition, trial.dismissed) == (None, None, 0)
    assert victim.asked == ["a great film", "a dull film", "a dull film"]


@dataclass(frozen=True, slots=True)
class Flips:
    """Says the other class with a chance that does not depend on the text."""

    chance: float = 0.2

    @property
    def randomised(self) -> bool:
        return True

    async def answer(self, text: Text, rng: np.random.Generator) -> Scores:
        scores = (await Score([text]))[0]
        return Scores(scores.probabilities[::-1]) if rng.random() < self.chance else scores


def test_a_model_that_flips_at_random_has_first_flips_and_no_repeatable_ones() -> None:
    """60 candidates miss a chance of .2 once in 650,000 texts. By hand: the first flip is the first query whose draw
    flips, and no text with chance .2 leads by eight but one in 65,000.
    """
    victim = Defended(name="flips", defense=Flips(), inner=WeightVictim({}, bias=2.0))
    words = tuple(f"word{number}" for number in range(60))
    attacked = 0
    for seed in range(20):
        finished = searched(victim, Candidates(words), seed=seed)
        trial = finished.result
        assert isinstance(trial, Trial)
        if trial.status == "skipped":
            continue
        attacked += 1
        flips = [drawn(victim, TEXT.replace(1, word), Draw(seed, at)) for at, word in enumerate(words, 1)]
        assert trial.first_flip is not None
        assert trial.first_flip.query == trial.first_flip.queries == flips.index(True) + 1
        assert (trial.status, trial.dismissed, finished.queries) == ("failed", sum(flips), 60)
    assert attacked > 10


def drawn(victim: Defended, text: Text, draw: Draw) -> bool:
    (answer,) = make_scoring(victim).answer_scores([Score([text], draw=draw)])
    assert isinstance(answer, list)
    return answer[0].label == 0


@pytest.mark.parametrize("reference", EVERY_ATTACK)
def test_every_attack_goes_on_and_its_first_part_is_the_published_attack(reference: str) -> None:
    """A model that flips at random, with a lead that few texts take away: what is found first is what a search that
    does not go on finds, with the same queries; what counts in the end was never dismissed; and nothing depends on
    which other searches run.
    """
    flips = 0
    for seed in range(4):
        inner = OpenRandomVictim(seed, classes=2, lead=6.0)
        victim = Defended(name="flips", defense=Flips(0.15), inner=inner)
        named, text = make_attack(reference), Text.parse(SENTENCE)
        label = int(inner.predict_proba([text.input])[0].argmax())
        options: dict[str, Any] = {"text": text, "seed": seed, "label": label, "budget": 400}
        finished = searched(victim, named.attack, **options)
        trial, first = finished.result, searched(victim, named.attack, goes_on=False, **options)
        assert isinstance(trial, Trial)
        assert isinstance(first.result, Trial)
        if trial.status == "skipped":
            continue
        assert trial.status in ("success", "failed"), trial.reason
        assert finished.queries <= 400
        assert (trial.first_flip is None) == (first.result.first_flip is None) or trial.status == "success"
        if first.result.first_flip is not None:
            assert trial.first_flip == first.result.first_flip
            assert trial.first_flip.queries == first.queries
        assert trial.flip_share == first.result.flip_share
        if trial.status == "success":
            assert trial.repetition is not None
            assert trial.repetition.text == trial.text
            assert trial.repetition.tally.lead >= 0
        again = searched(victim, named.attack, **options)
        assert (again.result, again.queries) == (trial, finished.queries)
        flips += trial.dismissed + (trial.status == "success")
    assert flips, "something was found, and confirmed or dismissed"
