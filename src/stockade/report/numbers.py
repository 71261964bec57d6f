"""How reports write numbers: shares with their intervals, plain numbers, counts, and one mark for what is missing."""

from __future__ import annotations

from collections.abc import Mapping

from stockade.report.document import Cell
from stockade.report.examples import Tone

NOT_AVAILABLE = "n/a"
"""Stands wherever there is no number."""
Interval = Mapping[str, float | None]
"""`value`, `low` and `high`, as summaries hold them; None where nothing was measured."""


def percent(interval: Interval) -> str:
    """A share in percent with its interval, if it has one: "82.0 % (69.2–90.2)".

    Parameters
    ----------
    interval
        A share between 0 and 1 with its interval.
    """
    return _joined(percent_cell(interval))


def percent_cell(interval: Interval, tone: Tone = "plain") -> Cell:
    """A share in percent, with its interval in small print.

    Parameters
    ----------
    interval
        A share between 0 and 1 with its interval.
    tone
        The colour of the cell.
    """
    low, high = interval["low"], interval["high"]
    between = "" if low is None or high is None else f"{100 * low:.1f}–{100 * high:.1f}"
    return _cell(plain_percent(interval["value"]), between, tone)


def plain_percent(share: float | None, digits: int = 1) -> str:
    """A share in percent without its interval: "82.0 %".

    Parameters
    ----------
    share
        The share, between 0 and 1.
    digits
        Behind the point.
    """
    return number(None if share is None else 100 * share, digits, " %")


def number(value: float | None, digits: int = 1, unit: str = "") -> str:
    """A number with its unit: "1,234.5 s".

    Parameters
    ----------
    value
        The number; None if there is none.
    digits
        Behind the point.
    unit
        Written right behind it; begin it with a blank if there should be one.
    """
    return NOT_AVAILABLE if value is None else f"{value:,.{digits}f}{unit}"


def ranged(interval: Interval, digits: int = 2, unit: str = "") -> str:
    """A number with its interval, if it has one: "0.84 (0.81–0.87)".

    Parameters
    ----------
    interval
        A number with its interval.
    digits
        Behind the point.
    unit
        Written behind the number, not behind the interval.
    """
    return _joined(ranged_cell(interval, digits, unit))


def ranged_cell(interval: Interval, digits: int = 2, unit: str = "", tone: Tone = "plain") -> Cell:
    """A number, with its interval in small print.

    Parameters
    ----------
    interval
        A number with its interval.
    digits
        Behind the point.
    unit
        Written behind the number, not behind the interval.
    tone
        The colour of the cell.
    """
    low, high = interval["low"], interval["high"]
    between = "" if low is None or high is None else f"{low:,.{digits}f}–{high:,.{digits}f}"
    return _cell(number(interval["value"], digits, unit), between, tone)


def change(interval: Interval, digits: int = 2) -> str:
    """A difference with its interval, if it has one: "-1.20 (-2.60 to +0.10)".

    Parameters
    ----------
    interval
        A difference with its interval.
    digits
        Behind the point.
    """
    return _joined(change_cell(interval, digits))


def change_cell(interval: Interval, digits: int = 2) -> Cell:
    """A difference with its sign, with its interval in small print.

    Parameters
    ----------
    interval
        A difference with its interval.
    digits
        Behind the point.
    """
    value, low, high = interval["value"], interval["low"], interval["high"]
    between = "" if low is None or high is None else f"{low:+,.{digits}f} to {high:+,.{digits}f}"
    return _cell(NOT_AVAILABLE if value is None else f"{value:+,.{digits}f}", between, "plain")


def count(number: int, singular: str, plural: str = "") -> str:
    """A number of things: "1 text", "1,200 texts".

    Parameters
    ----------
    number
        How many.
    singular
        What it is called if there is one.
    plural
        What several are called; with an s at the end if empty.
    """
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def p_value(probability: float) -> str:
    """A p-value as it is printed: "p = 0.031", and "p < 0.001" below that.

    Parameters
    ----------
    probability
        The p-value.
    """
    return "p < 0.001" if probability < 0.001 else f"p = {probability:.3f}"


def _joined(cell: Cell) -> str:
    return f"{cell.text} ({cell.detail})" if cell.detail else cell.text


def _cell(text: str, detail: str, tone: Tone) -> Cell:
    return Cell(text) if text == NOT_AVAILABLE else Cell(text, detail, tone)
