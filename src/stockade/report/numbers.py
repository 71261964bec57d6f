"""How numbers of a summary are written in reports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

COLUMNS = (
    "attack",
    "n",
    "clean accuracy",
    "robust accuracy",
    "success rate",
    "queries",
    "changed words",
    "similarity",
    "seconds",
)


def percent(interval: Mapping[str, float | None]) -> str:
    """A share in percent with its 95 % interval."""
    value, low, high = interval["value"], interval["low"], interval["high"]
    if value is None or low is None or high is None:
        return "–"
    return f"{100 * value:.1f} % ({100 * low:.1f}–{100 * high:.1f})"


def number(value: float | None, digits: int = 1, unit: str = "") -> str:
    return "–" if value is None else f"{value:,.{digits}f}{unit}"


def cells(attack: str, numbers: Mapping[str, Any]) -> tuple[str, ...]:
    """One attack's numbers under `COLUMNS`."""
    return (
        attack,
        f"{numbers['n']:,}" + (f" (+{numbers['errors']:,} errors)" if numbers["errors"] else ""),
        percent(numbers["clean_accuracy"]),
        percent(numbers["robust_accuracy"]),
        percent(numbers["success_rate"]),
        number(numbers["mean_queries"]),
        number(numbers["mean_perturbed_percent"], 1, " %"),
        number(numbers["mean_similarity"], 3),
        number(numbers["seconds"]),
    )
