"""What every kind of data becomes: a `DataSource`, a stream of rows that can be read again and again.

A reader (`Table`) only knows its format: csv, json lines, parquet, a data frame. Which column is the text, what counts
as missing and what a label may look like is decided by `TableSource`, once, for all of them.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from stockade.core.errors import DataError
from stockade.core.text import TextInput
from stockade.datasets.columns import Columns
from stockade.datasets.reading import PLAIN, Reading
from stockade.datasets.wording import quote

Label = str | int

_INTEGER = re.compile(r"([+-]?(?:0|[1-9][0-9]{0,17}))(?:\.0*)?")
_REMEMBERED_LABELS = 1024


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


@dataclass(frozen=True, slots=True)
class Skipped:
    """How many rows were left out because they could not be used, and what is wrong with the first of them."""

    count: int
    first: str


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


class Table(Protocol):
    """Rows of named cells that can be read again and again from the beginning."""

    @property
    def name(self) -> str:
        """What errors call the table."""

    @property
    def columns(self) -> tuple[str, ...]: ...

    @property
    def has_header(self) -> bool:
        """Whether the column names are the first line of a text file, where data may stand by mistake."""

    def cells(self, wanted: tuple[str, ...]) -> Iterator[Sequence[object]]:
        """The cells of the wanted columns, row by row. A cell that a row has not got is None."""

    def place(self, number: int) -> str:
        """How errors name a row, for example "row 17 (line 19)"; rows are counted from 0, as ids are."""

    def label_names(self, column: str) -> tuple[str, ...] | None:
        """The names of the labels 0, 1, 2 … of a column, where the format records them."""

    def sha256(self) -> str | None:
        """The hash of the underlying bytes, or None where only the rows can be hashed."""


class _BadRow(Exception):
    """What is wrong with a row, without its place."""


class TableSource:
    """A `DataSource` over a table and a choice of its columns.

    Texts of nothing but blanks are refused unless `empty_texts` lets them be. Without a label column every label is 0.
    `text_option` and `premise_option` are what errors call the options that name those columns. `reading` says whether
    rows that cannot be used are skipped; `skipped` says how many were, after a pass over all of them.
    """

    def __init__(
        self,
        table: Table,
        columns: Columns,
        name: str | None = None,
        *,
        empty_texts: bool = False,
        text_option: str = "--text-column",
        premise_option: str = "--premise-column",
        reading: Reading = PLAIN,
    ) -> None:
        self._empty_texts, self._reading = empty_texts, reading
        self._skipped = Skipped(0, "")
        self._text_option, self._premise_option = text_option, premise_option
        self._table = table
        self._columns = columns
        self._name = name or table.name
        self._fingerprint: str | None = None

    @property
    def name(self) -> str:
        return self._name

    @property
    def columns(self) -> Columns:
        return self._columns

    @property
    def label_names(self) -> tuple[str, ...] | None:
        return self._table.label_names(self._columns.label) if self._columns.label else None

    def rows(self) -> Iterator[Row]:
        """Every row, checked: a text and a label that can be used, or an error that names the row."""
        return self._rows_without_bad_ones() if self._reading.skip_bad_rows else self._checked_rows()

    @property
    def skipped(self) -> Skipped:
        """The rows that the last pass over all rows has left out."""
        return self._skipped

    def _rows_without_bad_ones(self) -> Iterator[Row]:
        """Every row that can be used; the others are counted, with what is wrong with the first of them."""
        count, first, labels = 0, "", dict[object, Label]()
        for number, cells in enumerate(self._table.cells(self._columns.wanted)):
            try:
                row = self._row(number, cells, labels)
            except _BadRow as problem:  # to name its place the file is read again, which is done for the first alone
                count, first = count + 1, first or f"{self._table.place(number)} {problem}"
            else:
                yield row
        self._skipped = Skipped(count, first)

    def _checked_rows(self) -> Iterator[Row]:
        labels: dict[object, Label] = {}
        for number, cells in enumerate(self._table.cells(self._columns.wanted)):
            try:
                row = self._row(number, cells, labels)
            except _BadRow as problem:
                raise DataError(f"{self._table.name} {self._table.place(number)} {problem}") from None
            yield row

    def _row(self, number: int, cells: Sequence[object], labels: dict[object, Label]) -> Row:
        """A row of cells, checked; `labels` remembers the labels of cells that were seen before."""
        is_pair = self._columns.premise is not None
        text, raw = cells[0], cells[1] if self._columns.label else 0
        if not _is_plain_text(text):
            text = self._text(text, self._columns.text, self._text_option)
        premise = cells[2] if is_pair else None
        if is_pair and not _is_plain_text(premise):
            premise = self._text(premise, str(self._columns.premise), self._premise_option)
        try:
            label = labels[raw]
        except (KeyError, TypeError):
            label = self._label(raw)
            if len(labels) < _REMEMBERED_LABELS:
                labels[raw] = label
        return Row(str(number), text, premise, label)  # type: ignore[arg-type]  # both were checked above

    def fingerprint(self) -> str:
        """A hash of the file's bytes, or of every row where there is no file, and of the choice of columns."""
        if self._fingerprint is None:
            content = self._table.sha256()
            parts = (*self._columns.wanted, *self._reading.parts)
            self._fingerprint = hash_parts(content, *parts) if content else hash_rows(self)
        return self._fingerprint

    def _text(self, value: object, column: str, option: str) -> str:
        """The text of a cell that is not plainly one: a string of another type, or the error that says what it is."""
        value = _unboxed(value)
        if self._empty_texts and isinstance(value, str) and not value.strip():
            return str(value)
        if is_missing(value):
            problem = f'has no text in column "{column}". Fill it in or remove the row.'
        elif not isinstance(value, str):
            problem = f'has {quote(value)} in column "{column}", expected a text. Name another column with {option}.'
        elif "\0" in value:
            problem = (
                f'has a NUL byte in column "{column}", which no text should have. '
                "Remove it, or save the file as UTF-8 if it is UTF-16."
            )
        elif not _is_encodable(value):
            problem = f'has half of a surrogate pair in column "{column}", which is no character. Repair or remove it.'
        else:
            return str(value)
        raise _BadRow(problem)

    def _label(self, raw: object) -> Label:
        """The label in a cell, or the error that says what stands there instead."""
        value, column = _unboxed(raw), self._columns.label
        label = None if is_missing(value) else as_label(value)
        if label is not None:
            return label
        if is_missing(value):
            problem = f'has no label in column "{column}". Fill it in or remove the row.'
        else:
            problem = (
                f'has {quote(value)} in column "{column}", expected the name or the whole number of a class. '
                "Name another column with --label-column."
            )
        raise _BadRow(problem)


def as_label(value: object) -> Label | None:
    """A cell as a label: whole numbers of any type, also written out ("1", "1.0"), are ints; names stay strings."""
    if isinstance(value, str):
        stripped = value.strip()
        whole = _INTEGER.fullmatch(stripped)
        return int(whole[1]) if whole else stripped
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return None


def is_missing(value: object) -> bool:
    """None, NaN of any library, or a string of nothing but blanks."""
    if isinstance(value, str):
        return not value.strip()
    if isinstance(value, float):
        return value != value
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def hash_rows(source: TableSource) -> str:
    """A hash of the content of a source that has no bytes of its own, its column choice and its label names."""
    digest = hashlib.sha256(hash_parts(*source.columns.wanted, "", *(source.label_names or ())).encode())
    for row in source.rows():
        parts = (row.text, row.premise or "", f"{type(row.label).__name__} {row.label}")
        for part in parts:
            encoded = part.encode()
            digest.update(len(encoded).to_bytes(8, "little") + encoded)
    return digest.hexdigest()


def hash_parts(*parts: str) -> str:
    """A hash of several strings that cannot be confused by moving letters from one to the next."""
    digest = hashlib.sha256()
    for part in parts:
        encoded = part.encode("utf-8", "surrogatepass")
        digest.update(len(encoded).to_bytes(8, "little") + encoded)
    return digest.hexdigest()


def _is_plain_text(value: object) -> bool:
    """The quick yes for nearly every cell of nearly every file."""
    return (
        type(value) is str
        and value != ""
        and not value.isspace()
        and "\0" not in value
        and (value.isascii() or _is_encodable(value))
    )


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _unboxed(value: object) -> object:
    """The Python value inside a numpy scalar; anything else as it is."""
    item = getattr(value, "item", None)
    return item() if callable(item) and getattr(value, "ndim", None) == 0 else value
