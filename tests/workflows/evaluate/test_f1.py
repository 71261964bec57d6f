"""F1 by hand, against scikit-learn, and with intervals that hold what they promise."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.workflows.evaluate.f1 import f1_scores

CLASSES = ("negative", "positive")


def test_f1_of_two_classes_by_hand() -> None:
    """Of two positive texts one is found, and one negative text is called positive: F1 2/4; negative: 4/6."""
    labels = ["positive", "positive", "negative", "negative", "negative"]
    predicted = ["positive", "negative", "positive", "negative", "negative"]
    scores = f1_scores(labels, predicted, "positive")
    assert scores.positive.value == pytest.approx(2 / 4)
    assert scores.macro.value == pytest.approx((2 / 4 + 4 / 6) / 2)
    assert f1_scores(labels, predicted).positive.value is None


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abc")), min_size=1, max_size=40))
def test_macro_f1_is_scikit_learns(pairs: list[tuple[str, str]]) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    labels, predicted = zip(*pairs, strict=True)
    scores = f1_scores(labels, predicted, "a")
    assert scores.macro.value == pytest.approx(metrics.f1_score(labels, predicted, average="macro", zero_division=0))
    if "a" in (*labels, *predicted):
        expected = metrics.f1_score(labels, predicted, labels=["a"], average="macro", zero_division=0)
        assert scores.positive.value == pytest.approx(expected)
    for score in (scores.macro, scores.positive):
        if score.value is not None and score.low is not None and score.high is not None:
            assert 0 <= score.low <= score.high <= 1


def test_texts_without_an_answer_do_not_count() -> None:
    assert f1_scores(["a", "b", "b"], ["a", None, "b"]) == f1_scores(["a", "b"], ["a", "b"])
    assert f1_scores(["a"], [None]).macro.value is None


def test_the_same_texts_have_the_same_interval_in_any_order() -> None:
    labels, predicted = list("aabbabab"), list("abbbaabb")
    turned = f1_scores(labels[::-1], predicted[::-1])
    assert f1_scores(labels, predicted) == turned


def test_intervals_hold_the_true_f1_about_as_often_as_they_say() -> None:
    """Texts are right with chance 0.7 in both classes, so the F1 of a large set is 0.7; of 300 sets of 100 texts about
    95 % of the intervals must contain it.
    """
    rng = np.random.default_rng(5)
    held = 0
    for _ in range(300):
        truth, right = rng.integers(0, 2, 100), rng.random(100) < 0.7
        said = np.where(right, truth, 1 - truth)
        score = f1_scores([CLASSES[at] for at in truth], [CLASSES[at] for at in said]).macro
        assert score.low is not None
        assert score.high is not None
        held += score.low <= 0.7 <= score.high
    assert 0.90 <= held / 300 <= 0.985
