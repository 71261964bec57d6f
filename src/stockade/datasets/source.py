"""What every kind of data becomes: a restartable stream of rows with a name, label names and a fingerprint."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from stockade.core.text import TextInput

Label = str | int


@dataclass(frozen=True, slots=True)
class Row:
    """One labelled text as the source has it.

    `id` is the row's number in the source, counted from 0. In a pair task `text` is the hypothesis, which attacks may
    edit, and `premise` is what it is judged against. `label` is the source's own label; `align_labels` turns it into
    a class.
    """

    id: str
    text: str
    premise: str | None
    label: Label

    @property
    def input(self) -> TextInput:
        """The row as a model is given it."""
        return self.text if self.premise is None else (self.premise, self.text)


@runtime_checkable
class DataSource(Protocol):
    """Data to attack: anything with these four members can be given to `load_data` and `prepare_examples`.

    `rows` starts from the beginning at every call and holds no more than a few rows in memory. `label_names` are the
    data's own names of the labels 0, 1, 2 …, or None. Equal fingerprints mean equal rows: a run is only resumed on
    the same data.
    """

    @property
    def name(self) -> str: ...

    @property
    def label_names(self) -> tuple[str, ...] | None: ...

    def rows(self) -> Iterator[Row]: ...

    def fingerprint(self) -> str: ...
