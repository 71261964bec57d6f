"""Tables of text cells, for a study's page, its Markdown and the terminal alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stockade.report.numbers import number, percent
from stockade.studies.results import Share

NOT_KNOWN = "n/a"


@dataclass(frozen=True, slots=True)
class Table:
    """Column names and rows of cells; the first column names the row."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def order_table(numbers: Mapping[str, Any]) -> Table:
    rows = [(order["claim"], order["verdict"], order["numbers"]) for order in numbers["orders"]]
    return Table(("order", "here", "numbers"), tuple(rows))


def share(interval: Share) -> str:
    """A share in percent with its 95 % interval."""
    return NOT_KNOWN if interval["value"] is None else percent(interval)


def plain_share(interval: Share) -> str:
    found = interval["value"]
    return NOT_KNOWN if found is None else f"{100 * found:.1f} %"


def value(found: float | None, digits: int = 1, unit: str = "") -> str:
    return NOT_KNOWN if found is None else number(found, digits, unit)


def ranged(interval: Share, digits: int = 2, unit: str = "") -> str:
    """A value with its interval, if it has one."""
    low, high = interval["low"], interval["high"]
    middle = value(interval["value"], digits, unit)
    return middle if low is None or high is None else f"{middle} ({low:,.{digits}f}–{high:,.{digits}f})"
