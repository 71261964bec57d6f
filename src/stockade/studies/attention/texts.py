"""The texts of the study: those that every model gets right, in a seeded order.

The paper takes 100 such texts, so that no model is excused on a text it cannot read anyway. The order is that of
`stockade attack --limit`: by a hash of seed and row id, so the same on every computer and contained in every larger
choice.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from stockade.core.errors import DataError, OptionError
from stockade.core.protocols import Classifier
from stockade.datasets.examples import prepare_examples
from stockade.datasets.sampling import seeded_places
from stockade.datasets.source import DataSource, Label, Row

_AT_LEAST = 64
_AHEAD = 2


@dataclass(frozen=True, slots=True)
class ChosenTexts:
    """Some rows of a source as a source of their own; ids stay those of the data."""

    source: DataSource
    ids: frozenset[str]

    @property
    def name(self) -> str:
        return self.source.name

    @property
    def label_names(self) -> tuple[str, ...] | None:
        return self.source.label_names

    def rows(self) -> Iterator[Row]:
        return (row for row in self.source.rows() if row.id in self.ids)

    def fingerprint(self) -> str:
        """Of the whole source and the choice."""
        digest = hashlib.sha256(self.source.fingerprint().encode())
        digest.update("\0".join(sorted(self.ids)).encode("utf-8", "surrogatepass"))
        return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class Choice:
    """Which texts were chosen, of how many that were looked at, and how many of those each model got right."""

    ids: tuple[str, ...]
    looked_at: int
    total: int
    correct: Mapping[str, int]


def choose_texts(
    source: DataSource,
    models: Mapping[str, Classifier],
    *,
    limit: int | None = None,
    seed: int = 0,
    label_map: Mapping[str, str] | None = None,
) -> Choice:
    """The first `limit` texts in seeded order that all models get right; all of them without a limit."""
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 1):
        raise OptionError(f"--limit is {limit}, expected a whole number of texts from 1 up. Leave it out to take all.")
    classes = {
        name: prepare_examples(source, model.labels, label_map=label_map).classes for name, model in models.items()
    }
    order = sorted((row.id for row in source.rows()), key=seeded_places(seed))
    found: list[str] = []
    correct = dict.fromkeys(models, 0)
    start = 0
    while start < len(order) and (limit is None or len(found) < limit):
        size = len(order) if limit is None else max(_AT_LEAST, _AHEAD * limit)
        rows = _rows(source, order[start : start + size])
        right = {name: _right(model, rows, classes[name]) for name, model in models.items()}
        for at in range(len(rows)):
            start += 1
            for name in models:
                correct[name] += right[name][at]
            if all(answers[at] for answers in right.values()):
                found.append(rows[at].id)
                if len(found) == limit:
                    break
    if not found:
        counts = ", ".join(f"{name} {count}" for name, count in correct.items())
        raise DataError(
            f"{source.name} has no text that all models get right (of {start} texts: {counts}). "
            "Are the labels swapped? Set them with --label-map, or choose other data."
        )
    return Choice(tuple(found), start, len(order), correct)


def _rows(source: DataSource, ids: Sequence[str]) -> list[Row]:
    places = {row_id: place for place, row_id in enumerate(ids)}
    return sorted((row for row in source.rows() if row.id in places), key=lambda row: places[row.id])


def _right(model: Classifier, rows: Sequence[Row], classes: Mapping[Label, int]) -> list[bool]:
    answers = model.predict_proba([row.input for row in rows]).argmax(1).tolist()
    return [answer == classes[row.label] for answer, row in zip(answers, rows, strict=True)]
