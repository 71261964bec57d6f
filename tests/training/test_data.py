"""What is trained and validated on: classes, labels, held-out texts, warnings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stockade.core.errors import DataError
from stockade.datasets.load import load_data
from stockade.datasets.source import Row
from stockade.training.data import prepare_data, split
from tests.training.tiny import rows


def prepared(data: object, **options: Any) -> Any:
    return prepare_data(load_data(data, empty_texts=True), **options)


def test_one_class_alone_is_refused() -> None:
    with pytest.raises(DataError, match='All 3 rows of the list have the label "good"; a classifier needs'):
        prepared([("a", "good"), ("b", "good"), ("c", "good")])


def test_labels_that_are_not_contiguous_keep_their_names(tmp_path: Path) -> None:
    texts = prepared([(f"text {i}", label) for i in range(4) for label in (7, 3, 12)])
    assert texts.classes == ("3", "7", "12")
    assert set(texts.train.labels) == {0, 1, 2}
    (tmp_path / "odd.csv").write_text(
        "text,label\n" + "".join(f"text {i},{v}\n" for i in range(4) for v in (3, 7, "x"))
    )
    assert prepared(tmp_path / "odd.csv").classes == ("3", "7", "x")


def test_rows_without_a_label_are_not_a_class() -> None:
    """Hub data sets mark them with -1."""

    class Named:
        name, label_names = "named", ("no", "yes")

        def rows(self) -> Any:
            return iter([Row(str(i), f"text {i}", None, i % 3 - 1) for i in range(9)])

        def fingerprint(self) -> str:
            return "n"

    with pytest.raises(DataError, match=r"-1 often marks rows without a label|has the label -1"):
        prepare_data(Named())


def test_names_can_be_chosen_and_labels_mapped() -> None:
    data = [("a", 0), ("b", 1), ("c", 0), ("d", 1)]
    assert prepared(data, classes=("no", "yes")).classes == ("no", "yes")
    assert prepared(data, label_map={"0": "no", "1": "yes"}).classes == ("no", "yes")
    swapped = prepared(data, classes=("no", "yes"), label_map={"0": "yes", "1": "no"}, hold_out=0.5)
    numbers = dict(zip((*swapped.train.inputs, *swapped.validation.inputs),
                       (*swapped.train.labels, *swapped.validation.labels), strict=True))  # fmt: skip
    assert numbers == {"a": 1, "b": 0, "c": 1, "d": 0}


def test_a_class_of_one_text_is_warned_about() -> None:
    texts = prepared([*rows(20), ("odd", "other")])
    assert texts.warnings == (
        "the list has fewer than two texts of other (1): such a class can hardly be learned, nor validated.",
    )
    assert texts.train.labels.count(1) == 1


def test_the_split_is_fair_and_seeded() -> None:
    whole = prepared(rows(100), hold_out=0.1)
    assert len(whole.train) == 90
    assert sorted(whole.validation.labels) == [0] * 5 + [1] * 5
    again, other = prepared(rows(100), hold_out=0.1), prepared(rows(100), hold_out=0.1, seed=1)
    assert again.validation == whole.validation != other.validation
    train_part, held_out = split(whole.train, 0.5, 0)
    assert sorted((*train_part.inputs, *held_out.inputs)) == sorted(whole.train.inputs)


def test_validation_data_of_its_own() -> None:
    texts = prepare_data(load_data(rows(20)), load_data([*rows(4, seed=8), rows(20)[0]]))
    assert len(texts.train) == 20
    assert len(texts.validation) == 5
    assert "1 texts of the list are also trained on" in texts.warnings[0]
    with pytest.raises(DataError, match='has the label "meh"'):
        prepare_data(load_data(rows(20)), load_data([("a", "meh")]))


def test_ids_are_not_taken_for_labels() -> None:
    with pytest.raises(DataError, match="has 120 different labels in 120 rows"):
        prepared([(f"text {i}", f"label {i}") for i in range(120)])
