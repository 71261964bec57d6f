"""Figures by class, and warnings of models that have learnt little or say little."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

import stockade as st
from stockade.workflows.attack.summary import majority_warning, summarise_classes
from tests.records import record


def test_every_class_has_its_own_numbers() -> None:
    records = [
        record(0, "success", label="a", original_prediction="a"),
        record(1, "failed", label="a", original_prediction="a"),
        record(2, "skipped", label="a", original_prediction="b"),
        record(3, "failed", label="b", original_prediction="b"),
        record(4, "error", label="b", original_prediction=None),
    ]
    classes = summarise_classes(records, ("a", "b", "c"))
    assert [(name, numbers["n"], numbers["predicted"]) for name, numbers in classes.items()] == [
        ("a", 3, 2),
        ("b", 1, 2),
        ("c", 0, 0),
    ]
    assert classes["a"]["clean_accuracy"]["value"] == 2 / 3
    assert classes["a"]["robust_accuracy"]["value"] == 1 / 3
    assert classes["a"]["success_rate"]["value"] == 1 / 2
    assert classes["c"]["clean_accuracy"]["value"] is None


@pytest.mark.parametrize(
    ("right", "warned"),
    [(693, True), (640, True), (720, True), (740, False), (950, False)],
)
def test_a_model_that_hardly_beats_the_most_frequent_class_is_warned_of(right: int, warned: bool) -> None:
    """0.693 where the majority is 0.64: less than a quarter of the way to 1."""
    warnings = majority_warning(right, {"ham": 640, "spam": 360}, {"ham": 930, "spam": 70})
    assert bool(warnings) == warned
    if warned:
        assert (
            f"right on {right / 1000:.1%} of the clean texts, and always saying ham would be right on 64.0%"
            in (warnings[0])
        )
        assert "it says ham on 93%" in warnings[0]


def test_nothing_is_said_of_few_texts_one_class_or_swapped_labels() -> None:
    assert majority_warning(6, {"ham": 6, "spam": 4}, {"ham": 10}) == []
    assert majority_warning(50, {"ham": 50}, {"ham": 50}) == []
    assert majority_warning(5, {"ham": 50, "spam": 50}, {"ham": 50, "spam": 50}) == [], "swapped labels have their own"


def victim(row: Sequence[float], other: Sequence[float]) -> st.AttackResult:
    def predict(texts: list[str]) -> list[Sequence[float]]:
        return [row if "good" in text else other for text in texts]

    predict.labels = ["no", "yes"]  # type: ignore[attr-defined]
    data = [(f"{'good' if number % 3 else 'bad'} {number}", "yes" if number % 3 else "no") for number in range(30)]
    return st.attack(predict, data, "deepwordbug", similarity=False)


def test_hard_labels_are_attacked_with_a_warning() -> None:
    result = victim((0, 1), (1, 0))
    assert any("hard labels" in warning for warning in result.summary["warnings"])
    assert not any("hard labels" in warning for warning in victim((0.1, 0.9), (0.9, 0.1)).summary["warnings"])


def test_the_majority_is_said_on_the_page_beside_the_classes() -> None:
    result = victim((0.2, 0.8), (0.4, 0.6))  # always yes
    page = result.document().to_markdown()
    assert "always saying yes would be right on 66.7%" in page
    assert "| deepwordbug | no | 10 | 0 | 0.0 % (0.0–27.8) |" in page
    assert result.summary["classes"]["deepwordbug"]["yes"]["predicted"] == 30
