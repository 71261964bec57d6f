"""Rows to training and validation texts: classes numbered, a fair part held out, what is odd said in a warning."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from stockade.core.errors import DataError, OptionError
from stockade.core.seeds import derive_rng
from stockade.core.text import TextInput
from stockade.datasets import DataSource, Row, align_labels
from stockade.datasets.source import Label
from stockade.datasets.wording import listing, quote

HOLD_OUT = 0.1
_FEW = 2


@dataclass(frozen=True, slots=True)
class TextSet:
    """Texts with the numbers of their classes."""

    inputs: tuple[TextInput, ...]
    labels: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.inputs)


@dataclass(frozen=True, slots=True)
class TrainingData:
    """What is trained and validated on. `classes` are the names of the classes, in the order of their numbers."""

    train: TextSet
    validation: TextSet
    classes: tuple[str, ...]
    fingerprint: str
    validation_fingerprint: str | None
    """None when the validation texts are held out of the training data."""
    warnings: tuple[str, ...] = ()

    def described(self) -> dict[str, object]:
        """The data as it is written into files."""
        counts = Counter(self.train.labels)
        return {
            "fingerprint": self.fingerprint,
            "validation_fingerprint": self.validation_fingerprint,
            "train_texts": len(self.train),
            "validation_texts": len(self.validation),
            "classes": {name: counts[number] for number, name in enumerate(self.classes)},
        }


def prepare_data(
    source: DataSource,
    validation: DataSource | None = None,
    *,
    classes: Sequence[str] | None = None,
    label_map: Mapping[str, str] | None = None,
    hold_out: float = HOLD_OUT,
    seed: int = 0,
) -> TrainingData:
    """Read all rows, number their classes, and hold out validation texts if there are none.

    `classes` are those of a model that is trained further, or names chosen by the user; labels are matched to them as
    for an attack. Without them `label_map` names the classes, or the data's own labels are the classes: by their names
    if the data has names, otherwise in their order, whatever they are (3, 7 and "x" become classes 0, 1 and 2 called
    3, 7 and x).
    """
    if not 0 < hold_out < 1:
        raise OptionError(f"The share held out for validation is {hold_out}, expected a number between 0 and 1.")
    rows = _rows(source)
    found = Counter(row.label for row in rows)
    if classes is None and label_map:
        classes = tuple(dict.fromkeys(label_map.values()))
    if classes is None:
        names, numbers = _own_classes(source, found)
    else:
        names = tuple(classes)
        numbers = align_labels(found, source.label_names, names, label_map, data_name=source.name)
    counts = Counter(numbers[row.label] for row in rows)
    if len(counts) < _FEW:
        only = names[next(iter(counts))]
        raise DataError(
            f"All {len(rows)} rows of {source.name} have the label {quote(only)}; a classifier needs texts of at least "
            "two classes. Add some of another class, or name the right column with --label-column."
        )
    whole = TextSet(tuple(row.input for row in rows), tuple(numbers[row.label] for row in rows))
    warnings = [*_few_examples(counts, names, source.name), *_empty_texts(whole, source.name)]
    if validation is None:
        train, held_out = split(whole, hold_out, seed)
        return TrainingData(train, held_out, names, source.fingerprint(), None, tuple(warnings))
    others = _rows(validation)
    matched = align_labels(
        Counter(row.label for row in others), validation.label_names, names, label_map, data_name=validation.name
    )
    judged = TextSet(tuple(row.input for row in others), tuple(matched[row.label] for row in others))
    warnings += _repeated_texts(whole, judged, validation.name)
    return TrainingData(whole, judged, names, source.fingerprint(), validation.fingerprint(), tuple(warnings))


def prepare_texts(
    source: DataSource, validation: DataSource | None = None, *, hold_out: float = HOLD_OUT, seed: int = 0
) -> TrainingData:
    """The same for a language model, which looks at no labels."""
    rows = _rows(source)
    whole = TextSet(tuple(row.input for row in rows), (0,) * len(rows))
    if validation is None:
        train, held_out = split(whole, hold_out, seed)
        return TrainingData(train, held_out, (), source.fingerprint(), None)
    others = _rows(validation)
    judged = TextSet(tuple(row.input for row in others), (0,) * len(others))
    return TrainingData(whole, judged, (), source.fingerprint(), validation.fingerprint())


def split(texts: TextSet, share: float, seed: int) -> tuple[TextSet, TextSet]:
    """A seeded share of each class apart, at least one text of every class that has two; both sides keep their
    order.
    """
    held_out: set[int] = set()
    for number in sorted(set(texts.labels)):
        rows = [row for row, label in enumerate(texts.labels) if label == number]
        derive_rng(seed, "validation", number).shuffle(rows)
        held_out.update(rows[: max(min(1, len(rows) - 1), round(share * len(rows)))])
    if not held_out:
        raise DataError(
            f"{len(texts)} texts are too few to hold some out for validation; expected two of a class at least. "
            "Give more, or validation data with --validation."
        )

    def take(wanted: bool) -> TextSet:
        rows = [row for row in range(len(texts)) if (row in held_out) is wanted]
        return TextSet(tuple(texts.inputs[row] for row in rows), tuple(texts.labels[row] for row in rows))

    return take(False), take(True)


def _rows(source: DataSource) -> list[Row]:
    rows = list(source.rows())
    if not rows:
        raise DataError(f"{source.name} has no rows, expected one per text. Give data with at least one.")
    return rows


def _own_classes(source: DataSource, found: Counter[Label]) -> tuple[tuple[str, ...], dict[Label, int]]:
    names = source.label_names
    if names is not None:
        return names, align_labels(found, names, names, data_name=source.name)
    ordered: list[Label] = [*sorted(label for label in found if isinstance(label, int))]
    ordered += sorted(label for label in found if isinstance(label, str))
    classes = tuple(dict.fromkeys(str(label) for label in ordered))
    if len(classes) > max(50, sum(found.values()) // 2):
        raise DataError(
            f"{source.name} has {len(classes)} different labels in {sum(found.values())} rows (found: "
            f"{listing(map(quote, ordered[:3]))} …), expected classes. Name the right column with --label-column."
        )
    return classes, {label: classes.index(str(label)) for label in found}


def _few_examples(counts: Counter[int], names: Sequence[str], data: str) -> list[str]:
    few = [f"{name} ({counts[number]})" for number, name in enumerate(names) if counts[number] < _FEW]
    if not few:
        return []
    return [f"{data} has fewer than two texts of {listing(few)}: such a class can hardly be learned, nor validated."]


def _empty_texts(texts: TextSet, data: str) -> list[str]:
    empty = sum(not (one if isinstance(one, str) else one[1]).strip() for one in texts.inputs)
    if not empty:
        return []
    return [f"{empty} of the {len(texts)} texts of {data} {'is' if empty == 1 else 'are'} empty; they are trained on."]


def _repeated_texts(train: TextSet, validation: TextSet, data: str) -> list[str]:
    repeated = len(set(train.inputs) & set(validation.inputs))
    if not repeated:
        return []
    return [f"{repeated} texts of {data} are also trained on: the validation accuracy is too good to be true."]
