"""How errors quote what they found: short, exact, never a megabyte of text."""

from __future__ import annotations

from collections.abc import Iterable

from stockade.core.errors import DataError
from stockade.core.limits import MOST_COLUMNS

_MOST_NAMES = 12
_MOST_CHARACTERS = 60


def listing(names: Iterable[object]) -> str:
    """Names separated by commas; a long list ends with how many there are in all."""
    words = [clip(str(name)) for name in names]
    if len(words) <= _MOST_NAMES:
        return ", ".join(words) or "none"
    return f"{', '.join(words[:_MOST_NAMES])} … {len(words)} in all"


def clip(text: str, most: int = _MOST_CHARACTERS) -> str:
    """The beginning of a text, on one line."""
    line = " ".join(text[: 4 * most].split())
    return line if len(line) <= most else f"{line[:most]}…"


def quote(value: object) -> str:
    """A value as it stands in an error: strings in double quotes, anything else as Python writes it."""
    return f'"{clip(value)}"' if isinstance(value, str) else clip(repr(value))


def first_line(error: BaseException, most: int = _MOST_CHARACTERS) -> str:
    """The first line of another library's error, for the end of a sentence of ours."""
    lines = str(error).strip().splitlines()
    return clip(lines[0], most).rstrip(".") if lines else type(error).__name__


def check_columns(name: str, columns: tuple[str, ...]) -> tuple[str, ...]:
    """The columns of a table; more than anybody can mean are an error.

    Parameters
    ----------
    name
        What errors call the table.
    columns
        Their names.
    """
    if len(columns) > MOST_COLUMNS:
        raise DataError(
            f"{name} has {len(columns):,} columns (found: {listing(columns[:3])} …), expected at most "
            f"{MOST_COLUMNS:,}: one for the text and one for the label. Leave the others out."
        )
    return columns
