"""Reads sheets that raters have filled in, and refuses what they cannot mean, naming row and column."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stockade.core.errors import DataError

_YES, _NO = ("x", "1", "yes", "true"), ("", "0", "no", "false")


@dataclass(frozen=True, slots=True)
class Rating:
    """What one rater said of one row."""

    preferred: bool
    label: str


def read_filled(path: Path, key: Mapping[str, Any]) -> dict[str, Rating]:
    """The ratings of one sheet by row id: every row of the key exactly once, one preferred in each group."""
    items: Mapping[str, Mapping[str, Any]] = key["items"]
    found: dict[str, Rating] = {}
    lines: dict[str, int] = {}
    for line, row in _rows(path):
        one = (row["id"] or "").strip()
        if one not in items:
            raise _wrong(path, line, "id", one, "an id of the sheet that this study wrote")
        if one in found:
            raise _wrong(path, line, "id", one, f"each id once, but it stands in row {lines[one]} already")
        found[one] = Rating(_preferred(path, line, row["preferred"]), _label(path, line, row["label"], key["labels"]))
        lines[one] = line
    missing = [one for one in items if one not in found]
    if missing:
        raise DataError(
            f"{path} has no row for {len(missing)} of the {len(items)} ids of the sheet, the first {missing[0]}. "
            "Keep every row of the sheet."
        )
    _check_groups(path, items, found, lines)
    return found


def _rows(path: Path) -> list[tuple[int, dict[str, str]]]:
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
    for wanted in ("id", "preferred", "label"):
        if wanted not in columns:
            raise DataError(
                f'{path} has no column "{wanted}" (found: {", ".join(columns) or "nothing"}). Keep the header.'
            )
    return [(number, row) for number, row in enumerate(reader, 2) if any(map(_filled, row.values()))]


def _filled(cell: object) -> bool:
    return isinstance(cell, str) and bool(cell.strip())


def _preferred(path: Path, line: int, cell: str) -> bool:
    given = cell.strip().lower()
    if given in _YES:
        return True
    if given in _NO:
        return False
    raise _wrong(path, line, "preferred", cell, "x or nothing")


def _label(path: Path, line: int, cell: str, labels: Sequence[str]) -> str:
    given = cell.strip()
    found = [label for label in labels if label.lower() == given.lower()]
    if not found:
        raise _wrong(path, line, "label", given, f"one of {', '.join(labels)}")
    return found[0]


def _check_groups(
    path: Path, items: Mapping[str, Mapping[str, Any]], found: Mapping[str, Rating], lines: Mapping[str, int]
) -> None:
    groups: dict[str, list[str]] = {}
    for one, item in items.items():
        groups.setdefault(item["group"], []).append(one)
    for group, members in groups.items():
        chosen = sum(found[one].preferred for one in members)
        if chosen != 1:
            rows = ", ".join(str(lines[one]) for one in members)
            raise DataError(
                f'{path}, rows {rows}, column "preferred": group {group} has {chosen} rows marked, expected one. '
                "Mark the most readable."
            )


def _wrong(path: Path, line: int, column: str, found: str, expected: str) -> DataError:
    shown = f'"{found}"' if found else "nothing"
    return DataError(f'{path}, row {line}, column "{column}": found {shown}, expected {expected}.')
