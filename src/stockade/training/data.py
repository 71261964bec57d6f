"""Rows to training and validation texts: classes numbered, a stratified part held out, oddities in warnings.

Texts that a defense rewrites before the model is built are saved in the training's folder (`rewritten.json`): what took
long to make is not made again when the training is resumed.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stockade.core.errors import DataError, OptionError
from stockade.core.files import write_json
from stockade.core.limits import MOST_LABELS
from stockade.core.seeds import derive_rng
from stockade.core.text import TextInput
from stockade.datasets.labels import align_labels
from stockade.datasets.source import DataSource, Label, Row
from stockade.datasets.wording import listing, quote

if TYPE_CHECKING:
    from stockade.training.objective import Rewrite

HOLD_OUT = 0.1
REWRITTEN = "rewritten.json"
_FEW = 2


@dataclass(frozen=True, slots=True)
class TextSet:
    """Texts with the numbers of their classes."""

    inputs: tuple[TextInput, ...]
    labels: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.inputs)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingData:
    """What is trained and validated on; `classes` are the names of the classes in the order of their numbers."""

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

    Parameters
    ----------
    source, validation
        The data; without `validation` the share `hold_out` of each class is held out, chosen by `seed`.
    classes
        Those of a model that is trained further, or names chosen by the user; labels are matched to them as for an
        attack. Without them `label_map` names the classes, or the labels of the data are the classes: by their names if
        the data has names, otherwise in their order, whatever they are (3, 7 and "x" become classes 0, 1 and 2 called
        3, 7 and x).
    label_map
        From labels of the data to names of classes.
    """
    if not 0 < hold_out < 1:
        raise OptionError(f"The share held out for validation is {hold_out}, expected a number between 0 and 1.")
    rows = _rows(source)
    labels = Counter(row.label for row in rows)
    if classes is None and label_map:
        classes = tuple(dict.fromkeys(label_map.values()))
    if classes is None:
        names, numbers = _classes_of(source, labels)
    else:
        names = tuple(classes)
        numbers = align_labels(labels, source.label_names, names, label_map, data_name=source.name)
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
        train, validated = split(whole, hold_out, seed)
    else:
        others = _rows(validation)
        matched = align_labels(
            Counter(row.label for row in others), validation.label_names, names, label_map, data_name=validation.name
        )
        train = whole
        validated = TextSet(tuple(row.input for row in others), tuple(matched[row.label] for row in others))
        warnings += _repeated_texts(train, validated, validation.name)
    return TrainingData(
        train=train,
        validation=validated,
        classes=names,
        fingerprint=source.fingerprint(),
        validation_fingerprint=None if validation is None else validation.fingerprint(),
        warnings=tuple(warnings),
    )


def prepare_texts(
    source: DataSource, validation: DataSource | None = None, *, hold_out: float = HOLD_OUT, seed: int = 0
) -> TrainingData:
    """The same for a language model, which uses no labels."""
    train = _unlabelled(source)
    if validation is None:
        train, validated = split(train, hold_out, seed)
    else:
        validated = _unlabelled(validation)
    return TrainingData(
        train=train,
        validation=validated,
        classes=(),
        fingerprint=source.fingerprint(),
        validation_fingerprint=None if validation is None else validation.fingerprint(),
    )


def split(texts: TextSet, share: float, seed: int) -> tuple[TextSet, TextSet]:
    """Hold out a share of each class, chosen by the seed: at least one text of every class that has two.

    Both parts keep the order of the texts.
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


def _unlabelled(source: DataSource) -> TextSet:
    rows = _rows(source)
    return TextSet(tuple(row.input for row in rows), (0,) * len(rows))


def _classes_of(source: DataSource, labels: Counter[Label]) -> tuple[tuple[str, ...], dict[Label, int]]:
    names = source.label_names
    if names is not None:
        return names, align_labels(labels, names, names, data_name=source.name)
    ordered: list[Label] = [*sorted(label for label in labels if isinstance(label, int))]
    ordered += sorted(label for label in labels if isinstance(label, str))
    classes = tuple(dict.fromkeys(str(label) for label in ordered))
    if len(classes) > min(MOST_LABELS, max(50, sum(labels.values()) // 2)):
        raise DataError(
            f"{source.name} has {len(classes)} different labels in {sum(labels.values())} rows (found: "
            f"{listing(map(quote, ordered[:3]))} …), expected classes. Name the right column with --label-column."
        )
    numbers = {name: number for number, name in enumerate(classes)}
    return classes, {label: numbers[str(label)] for label in labels}


def _few_examples(counts: Counter[int], names: Sequence[str], data: str) -> list[str]:
    few = [f"{name} ({counts[number]})" for number, name in enumerate(names) if counts[number] < _FEW]
    if not few:
        return []
    return [f"{data} has fewer than two texts of {listing(few)}: such a class can hardly be learned, nor validated."]


def _empty_texts(texts: TextSet, data: str) -> list[str]:
    empty = sum(not (text if isinstance(text, str) else text[1]).strip() for text in texts.inputs)
    if not empty:
        return []
    return [f"{empty} of the {len(texts)} texts of {data} {'is' if empty == 1 else 'are'} empty; they are trained on."]


def _repeated_texts(train: TextSet, validation: TextSet, data: str) -> list[str]:
    repeated = len(set(train.inputs) & set(validation.inputs))
    if not repeated:
        return []
    return [f"{repeated} texts of {data} are also trained on: the validation accuracy is too good to be true."]


def rewriting_key(texts: TrainingData, seed: int, defenses: Sequence[Mapping[str, Any]]) -> str:
    """A hash of all that rewritten texts depend on."""
    parts = [texts.train.inputs, texts.train.labels, texts.classes, seed, list(defenses)]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def rewrite_data(folder: Path, texts: TrainingData, rewrite: Rewrite, seed: int, key: str) -> TrainingData:
    """The data with its training texts rewritten; those saved in the folder, if they have the same key."""
    saved = _load_rewritten(folder, key)
    if saved is not None:
        return replace(texts, train=saved)
    inputs, labels = rewrite(texts.train.inputs, texts.train.labels, texts.classes, seed)
    if len(inputs) != len(labels) or not inputs:
        raise DataError(
            f"A defense rewrote the training texts as {len(inputs)} texts with {len(labels)} labels; expected as "
            "many labels as texts, and at least one."
        )
    return replace(texts, train=TextSet(tuple(inputs), tuple(labels)))


def save_rewritten(folder: Path, texts: TrainingData, key: str) -> None:
    """Write the rewritten texts into the folder, unless they are there."""
    if _load_rewritten(folder, key) is None:
        write_json(folder / REWRITTEN, {"key": key, "inputs": texts.train.inputs, "labels": texts.train.labels})


def _load_rewritten(folder: Path, key: str) -> TextSet | None:
    try:
        content = json.loads((folder / REWRITTEN).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(content, dict) or content.get("key") != key:
        return None
    inputs: list[TextInput] = [text if isinstance(text, str) else (text[0], text[1]) for text in content["inputs"]]
    return TextSet(tuple(inputs), tuple(content["labels"]))
