"""The texts of the study: those that every model gets right.

The paper takes 100 such texts, so that no model is excused on a text it cannot read anyway. Their order is that of
`stockade attack --limit`: by a hash of seed and row id, so it is the same on every computer, and a smaller choice is
part of every larger one.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stockade.core.errors import DataError
from stockade.core.protocols import Classifier
from stockade.datasets.examples import ExampleSet, prepare_examples
from stockade.datasets.sampling import seeded_places
from stockade.datasets.source import DataSource, Label, Row

_LEAST_AT_ONCE, _AHEAD = 64, 2


@dataclass(frozen=True, slots=True)
class Selection:
    """The texts of the study.

    Parameters
    ----------
    ids
        Those that all models get right, in seeded order.
    classified
        How many texts the models were asked about to find them.
    total
        How many there are in the data.
    correct
        For each model how many of the classified ones it gets right.
    """

    ids: tuple[str, ...]
    classified: int
    total: int
    correct: Mapping[str, int]

    def described(self, reference: str, fingerprint: str) -> dict[str, Any]:
        """What the manifest records of the data."""
        return {"reference": reference, "fingerprint": fingerprint, **dataclasses.asdict(self)}

    @classmethod
    def read(cls, described: Mapping[str, Any]) -> Selection:
        """The selection that a manifest records."""
        return cls(tuple(described["ids"]), described["classified"], described["total"], described["correct"])


def select_texts(
    source: DataSource,
    models: Mapping[str, Classifier],
    *,
    limit: int | None = None,
    seed: int = 0,
    label_map: Mapping[str, str] | None = None,
) -> Selection:
    """Choose the first texts in seeded order that all models get right.

    Parameters
    ----------
    source
        The data.
    models
        The models by name.
    limit
        How many texts; all that there are if None.
    seed
        Decides the order.
    label_map
        The model's class for a label of the data, where their names differ.
    """
    classes = {
        name: prepare_examples(source, model.labels, label_map=label_map).classes for name, model in models.items()
    }
    order = sorted((row.id for row in source.rows()), key=seeded_places(seed))
    chosen: list[str] = []
    correct = dict.fromkeys(models, 0)
    classified = 0
    while classified < len(order) and (limit is None or len(chosen) < limit):
        size = len(order) if limit is None else max(_LEAST_AT_ONCE, _AHEAD * limit)
        rows = _rows(source, order[classified : classified + size])
        right = {name: _right(model, rows, classes[name]) for name, model in models.items()}
        for index, row in enumerate(rows):
            classified += 1
            for name in models:
                correct[name] += right[name][index]
            if all(answers[index] for answers in right.values()):
                chosen.append(row.id)
                if len(chosen) == limit:
                    break
    if not chosen:
        counts = ", ".join(f"{name} {count}" for name, count in correct.items())
        raise DataError(
            f"{source.name} has no text that all models get right (of {classified} texts: {counts}). "
            "Are the labels swapped? Set them with --label-map, or choose other data."
        )
    return Selection(tuple(chosen), classified, len(order), correct)


def selected_examples(
    source: DataSource, labels: Sequence[str], ids: Sequence[str], label_map: Mapping[str, str] | None = None
) -> ExampleSet:
    """The chosen texts, in the order of the data, with the classes of a model.

    Parameters
    ----------
    source
        The data.
    labels
        The classes of the model.
    ids
        The chosen texts.
    label_map
        As for `select_texts`.
    """
    everything = prepare_examples(source, labels, label_map=label_map)
    wanted = frozenset(ids)
    rows = [(row.id, row.label) for row in source.rows() if row.id in wanted]
    counts = Counter(labels[everything.classes[label]] for _, label in rows)
    return dataclasses.replace(
        everything,
        size=len(rows),
        ids=tuple(row_id for row_id, _ in rows),
        label_counts={label: counts[label] for label in labels},
    )


def _rows(source: DataSource, ids: Sequence[str]) -> list[Row]:
    """The rows with these ids, in their order."""
    places = {row_id: place for place, row_id in enumerate(ids)}
    return sorted((row for row in source.rows() if row.id in places), key=lambda row: places[row.id])


def _right(model: Classifier, rows: Sequence[Row], classes: Mapping[Label, int]) -> list[bool]:
    answers = model.predict_proba([row.input for row in rows]).argmax(1).tolist()
    return [answer == classes[row.label] for answer, row in zip(answers, rows, strict=True)]
