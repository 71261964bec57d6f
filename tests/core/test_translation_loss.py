"""The losses of a keyword, against values computed by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.core.text import Text
from stockade.core.translation import GreedySteps, ZeroableSource, character_loss, has_keyword, hinge_loss
from tests.toy_translators import LogitTranslator

LOGITS = {
    "the": {"der": 2.0, "Hund": 0.5},
    "dog": {"Hund": 3.0, "Katze": 1.0},
    "sleeps": {"u": 4.0, "h": 3.5, "schläft": 5.0},
}


def loss(source: str, keyword: str, zeroed: int | None = None) -> float:
    translator = LogitTranslator(LOGITS)
    tokens = translator.target_tokens(keyword)
    (steps,) = translator.greedy_steps([ZeroableSource(Text.parse(source), zeroed)], tokens)
    return hinge_loss(steps, range(len(tokens)), tokens)


@pytest.mark.parametrize(
    ("source", "keyword", "zeroed", "expected"),
    [
        ("the dog", "Hund", None, 0.0),  # written at step 1
        ("the dog", "Katze", None, 2.0),  # step 0: 2 - 0; step 1: 3 - 1; the end: 9 - 0
        ("the dog", "Katze", 1, 1.0),  # zeroing halves: 1.5 - 0.5
        ("the", "Hund", None, 1.5),  # 2 - 0.5
        ("sleeps", "hu", None, 10.5),  # h at step 0: 5 - 3.5; u has only the end left: 9 - 0
        ("sleeps sleeps", "hu", None, 2.5),  # h: 5 - 3.5; u at the other step: 5 - 4
    ],
)
def test_the_loss_is_what_a_person_computes(source: str, keyword: str, zeroed: int | None, expected: float) -> None:
    assert loss(source, keyword, zeroed) == pytest.approx(expected)


def test_more_sub_words_than_steps_cost_the_largest_term() -> None:
    steps = GreedySteps(
        "x",
        (0,),
        np.array([[1.0, 2.0]], dtype=np.float32),
        np.array([[5.0, 2.0]], dtype=np.float32),
        np.array([[0, 4]]),
    )
    assert hinge_loss(steps, [0, 1], [3, 4]) == pytest.approx((5 - 1) + (5 - 2))


def test_a_token_that_may_not_be_written_costs_much_and_not_infinitely() -> None:
    steps = GreedySteps(
        "",
        (2,),
        np.array([[-np.inf]], dtype=np.float32),
        np.array([[0.0, -np.inf]], dtype=np.float32),
        np.array([[2, 0]]),
    )
    assert hinge_loss(steps, [0], [1]) == 1e4


@given(st.lists(st.sampled_from(sorted(LOGITS)), min_size=1, max_size=5), st.sampled_from(["der", "Hund", "Katze"]))
def test_the_loss_of_a_single_token_is_zero_exactly_where_it_is_written(words: list[str], keyword: str) -> None:
    source = " ".join(words)
    written = LogitTranslator(LOGITS).translate([source])[0].split()
    assert (loss(source, keyword) == 0.0) == (keyword in written)


def test_letters_stand_in_for_logits() -> None:
    assert character_loss("ein Hund schläft", "Hund") == 0.0
    assert character_loss("ein Mund", "Hund") == pytest.approx(1 - 2 * 3 / 8)  # three of four letters in common
    assert character_loss("ein hund", "Hund") > 0.0
    assert character_loss("", "Hund") == 1.0


def test_a_keyword_of_several_words_must_stand_together() -> None:
    assert has_keyword("in New York heute", "New York")
    assert not has_keyword("York in New", "New York")
    assert not has_keyword("Hunde", "Hund")
    assert not has_keyword("ein Hund", "…")
    assert has_keyword("我在中国。", "中国")
