"""From the clean prediction to the confirmed result: answers given by hand, request by request."""

from __future__ import annotations

from collections.abc import Coroutine
from itertools import islice
from random import Random
from typing import Any, cast

import pytest

from stockade.attacks.repeatability import Tally
from stockade.attacks.trial import Trial, attack_example, words_lost
from stockade.core.errors import ModelError
from stockade.core.example import Example, Scores
from stockade.core.records import Outcome
from stockade.core.text import Text
from stockade.engine.requests import Confirm, Score, VisibleWords

EXAMPLE = Example("0", Text.parse("a great film"), label=1)
RIGHT, WRONG = Scores((0.2, 0.8)), Scores((0.7, 0.3))


class Swap:
    """Says that "a dull film" fools the model."""

    async def search(self, example: Example, rng: Random) -> Outcome:
        return Outcome.found(example.text.replace(1, "dull"))


def answered(trial: Coroutine[Any, Any, Trial], confirmations: list[Scores], clean: Scores = RIGHT) -> Trial:
    """The trial, with the model's answers to the confirmation in order."""
    request: Any = trial.send(None)
    left = iter(confirmations)
    while True:
        match request:
            case Score(texts=texts):
                answer: Any = [clean] * len(texts)
            case VisibleWords(text=text):
                answer = range(len(text))
            case Confirm(draws=draws):
                answer = list(islice(left, draws))
                assert len(answer) == draws
            case _:
                raise AssertionError(request)
        try:
            request = trial.send(answer)
        except StopIteration as finished:
            assert not list(left)
            return cast(Trial, finished.value)


@pytest.mark.parametrize(
    ("draws", "status"),
    [
        ([WRONG] * 8, "success"),
        ([RIGHT] * 8, "failed"),
        ([RIGHT] * 3 + [WRONG] * 11, "success"),
        ([WRONG] * 7 + [RIGHT] * 15, "failed"),
    ],
)
def test_a_randomised_model_is_asked_until_it_is_clear(draws: list[Scores], status: str) -> None:
    trial = answered(attack_example(Swap(), EXAMPLE, Random(0), deterministic=False), draws)
    assert trial.repetition is not None
    assert (trial.status, trial.repetition.tally) == (status, Tally(draws.count(WRONG), len(draws)))
    assert trial.scores == (WRONG if status == "success" else None)
    assert (trial.text is not None) == (status == "success")
    if status == "failed":
        assert trial.reason is not None
        assert trial.reason.startswith("1 text fooled the model once, but not half of the time; then: ")


@pytest.mark.parametrize(("confirmation", "status"), [(WRONG, "success"), (RIGHT, "failed")])
def test_a_deterministic_model_is_asked_once_more_and_has_one_rule(confirmation: Scores, status: str) -> None:
    trial = answered(attack_example(Swap(), EXAMPLE, Random(0)), [confirmation])
    assert (trial.status, trial.repetition, trial.first_flip, trial.dismissed) == (status, None, None, 0)
    assert trial.reason == (
        None if status == "success" else "the text found did not fool the model when it was asked again"
    )


@pytest.mark.parametrize(("draws", "flips"), [([WRONG] + [RIGHT] * 9, True), ([RIGHT, WRONG] + [RIGHT] * 8, False)])
def test_where_another_model_was_queried_the_first_answer_is_the_first_flip(draws: list[Scores], flips: bool) -> None:
    """The text is sent to the model once: that is what papers on transfer count. The search does not go on."""
    trial = answered(
        attack_example(Swap(), EXAMPLE, Random(0), deterministic=False, direct=False, goes_on=False), draws
    )
    assert (trial.status, trial.first_flip is not None) == ("failed", flips)
    assert trial.reason == "the text found did not fool the model when it was asked again"


def test_what_fools_repeatedly_fools_once_whatever_the_first_answer_was() -> None:
    draws = [RIGHT] + [WRONG] * 9
    trial = answered(attack_example(Swap(), EXAMPLE, Random(0), deterministic=False, direct=False), draws)
    assert trial.status == "success"
    assert trial.first_flip is not None
    assert (trial.first_flip.text, trial.first_flip.query) == (trial.text, None)


def test_with_a_target_only_the_target_counts() -> None:
    example = Example("0", Text.parse("a great film"), label=1, target=0)
    other = Scores((0.3, 0.1, 0.6))
    assert answered(attack_example(Swap(), example, Random(0)), [WRONG]).status == "success"
    assert answered(attack_example(Swap(), example, Random(0)), [other], Scores((0.1, 0.8, 0.1))).status == "failed"


def test_what_the_model_gets_wrong_anyway_is_not_attacked() -> None:
    trial = answered(attack_example(Swap(), EXAMPLE, Random(0)), [], clean=WRONG)
    assert (trial.status, trial.reason, trial.clean) == ("skipped", "the model is wrong on the clean text", WRONG)


def test_a_text_over_the_limit_is_an_error_of_its_own() -> None:
    with pytest.raises(StopIteration) as finished:
        attack_example(Swap(), EXAMPLE, Random(0), max_words=2).send(None)
    assert finished.value.value.status == "error"
    assert finished.value.value.reason == "the text has 3 words, more than the limit of 2"
    assert answered(attack_example(Swap(), EXAMPLE, Random(0), max_words=3), [WRONG]).status == "success"


def test_a_fault_in_a_search_costs_that_search_only_but_a_users_error_is_raised() -> None:
    class Broken:
        def __init__(self, error: Exception) -> None:
            self.error = error

        async def search(self, example: Example, rng: Random) -> Outcome:
            raise self.error

    trial = answered(attack_example(Broken(ValueError("zero words")), EXAMPLE, Random(0)), [])
    assert (trial.status, trial.reason) == ("error", "the attack raised ValueError: zero words")
    with pytest.raises(ModelError):
        answered(attack_example(Broken(ModelError("shows no gradients")), EXAMPLE, Random(0)), [])


def test_words_are_lost_when_longer_ones_push_them_out_of_sight() -> None:
    """The model read the first three of four words; two words are written in front of them."""
    text = Text.parse("one two three four")
    example = Example("0", text, 1, visible=range(3))
    longer = text.insert_before(0, "oh").insert_before(0, "so")
    assert words_lost(example, longer, range(3)) == 2  # "two" and "three"; "four" was never read
    assert words_lost(example, longer.delete(3), range(3)) == 1  # "two" is gone, not out of sight
    assert words_lost(example, text, range(3)) == 0
