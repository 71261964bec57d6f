"""Reading sheets that come back: every row of the key exactly once, and what cannot be meant named by row and column.

A sheet may be sorted otherwise, and saved with commas or semicolons. Its file is named after the rater.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stockade.core.errors import DataError, OptionError

_YES, _NO = ("x", "1", "yes", "true"), ("", "0", "no", "false")


class NotExpected(ValueError):
    """A cell that a rater cannot mean; the message says what was expected there."""

    def __init__(self, expected: str, shown: str | None = None) -> None:
        super().__init__(expected)
        self.shown = shown


ReadCell = Callable[[str], Any]
"""What a cell means; raises `NotExpected`."""


@dataclass(frozen=True, slots=True)
class FilledRow:
    """A row of a sheet: its number as a spreadsheet shows it, and what its cells mean by column."""

    line: int
    cells: Mapping[str, Any]


def mark(cell: str) -> bool:
    """Whether a cell is marked: x or nothing."""
    written = cell.strip().lower()
    if written not in (*_YES, *_NO):
        raise NotExpected("x or nothing", cell)
    return written in _YES


def one_of(choices: Sequence[str]) -> ReadCell:
    """Reads one of several words, in capitals or not."""

    def read(cell: str) -> str:
        matching = [choice for choice in choices if choice.lower() == cell.strip().lower()]
        if not matching:
            raise NotExpected(f"one of {', '.join(choices)}")
        return matching[0]

    return read


def whole_number(low: int, high: int) -> ReadCell:
    """Reads a whole number of a scale; a spreadsheet may write 4 as 4.0 or 4,0."""

    def read(cell: str) -> int:
        try:
            value = float(cell.strip().replace(",", "."))
        except ValueError:
            value = float("nan")
        if value not in range(low, high + 1):
            raise NotExpected(f"a whole number from {low} to {high}")
        return int(value)

    return read


def rater_names(paths: Sequence[Path]) -> list[str]:
    """Who filled in each sheet, by the names of the files; two of the same name are refused."""
    names = [path.stem for path in paths]
    if len(set(names)) < len(names):
        raise OptionError(f"Two rating sheets have the same name ({', '.join(names)}): call each after its rater.")
    return names


def read_filled(path: Path, ids: Collection[str], columns: Mapping[str, ReadCell]) -> dict[str, FilledRow]:
    """The rows of a filled sheet by id, each id exactly once.

    Parameters
    ----------
    path
        The sheet.
    ids
        Those of its key.
    columns
        What raters have filled in, and how each column is read.
    """
    filled: dict[str, FilledRow] = {}
    for line, row in _rows(path, ("id", *columns)):
        identity = (row["id"] or "").strip()
        if identity not in ids:
            raise wrong_cell(path, line, "id", identity, "an id of the sheet that this study wrote")
        if identity in filled:
            before = filled[identity].line
            raise wrong_cell(path, line, "id", identity, f"each id once, but it stands in row {before} already")
        cells = {column: _read(path, line, column, row[column], read) for column, read in columns.items()}
        filled[identity] = FilledRow(line, cells)
    missing = [identity for identity in ids if identity not in filled]
    if missing:
        raise DataError(
            f"{path} has no row for {len(missing)} of the {len(ids)} ids of the sheet, the first {missing[0]}. "
            "Keep every row of the sheet."
        )
    return filled


def wrong_cell(path: Path, line: int, column: str, content: str, expected: str) -> DataError:
    """The error for a cell that cannot be meant."""
    shown = f'"{content}"' if content else "nothing"
    return DataError(f'{path}, row {line}, column "{column}": found {shown}, expected {expected}.')


def _read(path: Path, line: int, column: str, cell: str, read: ReadCell) -> Any:
    try:
        return read(cell)
    except NotExpected as error:
        raise wrong_cell(path, line, column, cell.strip() if error.shown is None else error.shown, str(error)) from None


def _rows(path: Path, wanted: Sequence[str]) -> list[tuple[int, dict[str, str]]]:
    """The rows with their numbers as a spreadsheet shows them: the header is row 1."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeError) as error:
        raise DataError(f"{path} cannot be read ({getattr(error, 'strerror', None) or error}).") from None
    header = text.partition("\n")[0]
    delimiter = ";" if header.count(";") > header.count(",") else ","  # as some spreadsheets save it
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter, restval="")
    columns = [(name or "").strip() for name in reader.fieldnames or ()]
    reader.fieldnames = columns
    for name in wanted:
        if name not in columns:
            raise DataError(
                f'{path} has no column "{name}" (found: {", ".join(columns) or "nothing"}). Keep the header.'
            )
    return [(number, row) for number, row in enumerate(reader, 2) if any(map(_is_filled, row.values()))]


def _is_filled(cell: object) -> bool:
    return isinstance(cell, str) and bool(cell.strip())
