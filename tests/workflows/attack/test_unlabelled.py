"""Texts without labels: the model's own predictions are attacked, and nothing is said of accuracy."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

import stockade as st
from stockade.core.errors import DataError, OptionError
from stockade.experiment.inputs import DataOptions


def predict(texts: Sequence[str]) -> list[list[float]]:
    """Positive if "good" is there: p = 0.9, else 0.2."""
    return [[0.1, 0.9] if "good" in text else [0.8, 0.2] for text in texts]


predict.labels = ["negative", "positive"]  # type: ignore[attr-defined]
TEXTS = ["a good film", "a dull film", "good story"]


def test_predictions_are_attacked(tmp_path: Path) -> None:
    result = st.attack(predict, TEXTS, "deepwordbug", unlabelled=True, similarity=False, out=tmp_path / "a")
    records = {record.original: record for record in result.records()}
    assert [record.label for record in records.values()] == ["positive", "negative", "positive"]
    assert records["a good film"].status == "success"
    assert records["a dull film"].status == "failed", "no misspelling makes it good"
    numbers = result.summary["attacks"]["deepwordbug"]
    assert numbers["success_rate"]["value"] == pytest.approx(2 / 3)
    assert numbers["clean_accuracy"]["value"] is None
    assert numbers["robust_accuracy"]["value"] is None
    assert not result.labelled
    page = result.document().to_markdown()
    assert "2 of 3 predictions changed" in page
    assert "Robust accuracy 0" not in page
    assert "true label" not in page
    assert "By class" not in page
    assert result.verify(predict).holds


def test_the_same_texts_are_fooled_as_with_the_labels_that_the_model_gives() -> None:
    labelled = [(text, "positive" if "good" in text else "negative") for text in TEXTS]
    with_labels = st.attack(predict, labelled, "deepwordbug", similarity=False)
    without = st.attack(predict, TEXTS, "deepwordbug", unlabelled=True, similarity=False)
    assert [record.adversarial for record in with_labels.records()] == [
        record.adversarial for record in without.records()
    ]


def test_labels_that_are_there_are_ignored() -> None:
    wrong = [("a good film", "negative")]
    assert next(st.attack(predict, wrong, "deepwordbug", similarity=False).records()).status == "skipped"
    assert next(st.attack(predict, wrong, "deepwordbug", unlabelled=True, similarity=False).records()).label == (
        "positive"
    )


def test_one_sentence() -> None:
    result = st.attack(predict, "text:A good film.", "deepwordbug", unlabelled=True, similarity=False)
    (record,) = result.records()
    assert (record.original, record.status) == ("A good film.", "success")


def test_options_that_need_labels_are_refused() -> None:
    with pytest.raises(OptionError, match="leave out --label-column and --label-map"):
        st.attack(predict, TEXTS, "deepwordbug", unlabelled=True, data_options=DataOptions(label_column="label"))
    with pytest.raises(OptionError, match="--targeted needs to know"):
        st.attack(predict, TEXTS, "deepwordbug", unlabelled=True, targeted="positive")
    with pytest.raises(DataError, match="Put a label beside each text"):
        st.attack(predict, TEXTS, "deepwordbug")
