"""One way to write a number."""

from __future__ import annotations

import pytest

from stockade.report.document import Cell
from stockade.report.numbers import (
    count,
    number,
    p_value,
    percent,
    percent_cell,
    plain_percent,
    ranged,
    ranged_cell,
)

RATE = {"value": 0.82, "low": 0.692, "high": 0.902}
ALONE = {"value": 0.5, "low": None, "high": None}
NONE = {"value": None, "low": None, "high": None}


def test_shares_in_percent() -> None:
    assert [percent(interval) for interval in (RATE, ALONE, NONE)] == ["82.0 % (69.2–90.2)", "50.0 %", "n/a"]
    assert percent_cell(RATE, "bad") == Cell("82.0 %", "69.2–90.2", "bad")
    assert percent_cell(NONE, "bad") == Cell("n/a")
    assert [plain_percent(share) for share in (0.8249, None)] == ["82.5 %", "n/a"]
    assert plain_percent(0.8249, 0) == "82 %"


def test_numbers_with_digits_and_units() -> None:
    assert [number(1234.56), number(1234.56, 0), number(2, 1, " s"), number(None, 2, " s")] == [
        *("1,234.6", "1,235", "2.0 s", "n/a"),
    ]
    assert [ranged(interval) for interval in (RATE, ALONE, NONE)] == ["0.82 (0.69–0.90)", "0.50", "n/a"]
    assert ranged({"value": 1200.0, "low": 1000.0, "high": 1500.0}, 0, " words") == "1,200 words (1,000–1,500)"
    assert ranged_cell(RATE, 3) == Cell("0.820", "0.692–0.902")


@pytest.mark.parametrize(
    ("things", "written"),
    [
        (count(1, "text"), "1 text"),
        (count(0, "text"), "0 texts"),
        (count(1200, "text"), "1,200 texts"),
        (count(2, "query", "queries"), "2 queries"),
    ],
)
def test_counts(things: str, written: str) -> None:
    assert things == written


def test_p_values() -> None:
    assert [p_value(0.031), p_value(0.001), p_value(0.0009), p_value(1.0)] == [
        *("p = 0.031", "p = 0.001", "p < 0.001", "p = 1.000"),
    ]
