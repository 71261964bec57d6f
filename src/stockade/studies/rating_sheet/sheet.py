"""Writing a sheet: rows under columns, cells that no spreadsheet runs, ids that say nothing."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from random import Random

from stockade.core.errors import RunError
from stockade.core.sanitize import csv_cell

_LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"
"""Without those that are taken for one another."""


def beside(path: Path, kind: str) -> Path:
    """A file that goes with a sheet: `sheet.key.json` for `sheet.csv`.

    Parameters
    ----------
    path
        The sheet.
    kind
        How the other name ends, such as `key.json`.
    """
    return path.with_name(f"{path.stem}.{kind}")


def refuse_written(*files: Path) -> None:
    """Refuse to write over a sheet, or what goes with one: somebody may have worked on it."""
    for file in files:
        if file.exists():
            raise RunError(f"{file} exists already and may be filled in. Choose another --rating-sheet.")


def random_name(rng: Random) -> str:
    """An id that says nothing about what it stands for."""
    return "".join(rng.choices(_LETTERS, k=8))


def write_rows(path: Path, columns: Sequence[str], rows: Iterable[Mapping[str, object]]) -> None:
    """Write a sheet; columns that a row has nothing for are left to the rater.

    Parameters
    ----------
    path
        The csv file.
    columns
        Its header.
    rows
        Cells by column; others, and None, are left out.
    """
    try:
        with path.open("w", encoding="utf-8", errors="replace", newline="") as stream:
            writer = csv.DictWriter(stream, columns, extrasaction="ignore", restval="")
            writer.writeheader()
            for row in rows:
                writer.writerow({name: csv_cell(str(cell)) for name, cell in row.items() if cell is not None})
    except OSError as error:
        raise RunError(
            f"{path} cannot be written ({error.strerror or error}). Choose another --rating-sheet."
        ) from None
