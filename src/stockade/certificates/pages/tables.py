"""The numbers of runs of certificates as cells of text, for the page and Markdown alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stockade.certificates.medians import curve_band
from stockade.certificates.pages.headline import NOT_PROVED
from stockade.certificates.run import CertificateRun
from stockade.certificates.summary import BAND
from stockade.report.numbers import number, percent

COLUMNS = (
    "method",
    "n",
    "accuracy",
    "abstained",
    "wrong",
    "median radius (MCB)",
    "median rate (MCR)",
    "mean copies",
    "seconds",
)
MOST_RADII = 12
_ALL_UP_TO = 6


@dataclass(frozen=True, slots=True)
class MethodNumbers:
    """One method of a run, by the name it has on a page of one or more runs."""

    name: str
    numbers: Mapping[str, Any]

    @property
    def title(self) -> str:
        """Its name, with a warning if it proves nothing."""
        return self.name if self.numbers["sound"] else f"{self.name} ({NOT_PROVED})"

    def point(self, radius: int) -> Mapping[str, float]:
        """The certified share at a radius; none is certified beyond the largest, and the band says how sure that is."""
        curve = self.numbers["curve"]
        if radius < len(curve):
            found: Mapping[str, float] = curve[radius]
            return found
        ((low, high),) = curve_band([None] * self.numbers["n"], BAND)
        return {"radius": radius, "share": 0.0, "low": low, "high": high}


def all_methods(runs: Sequence[CertificateRun]) -> list[MethodNumbers]:
    """The methods of the runs, each with the name of its run if there are several."""
    several = len(runs) > 1
    return [
        MethodNumbers(f"{run.name}: {key}" if several else key, numbers)
        for run in runs
        for key, numbers in run.summary["methods"].items()
    ]


def number_rows(methods: Sequence[MethodNumbers]) -> list[tuple[str, ...]]:
    """Cells under `COLUMNS`."""
    return [(method.title, *_cells(method.numbers)) for method in methods]


def shown_radii(methods: Sequence[MethodNumbers]) -> list[int]:
    """The radii of the table: all of them, or of many the first ones and some of the others up to the largest."""
    longest = max((len(method.numbers["curve"]) for method in methods), default=0)
    if longest <= MOST_RADII:
        return list(range(longest))
    others = MOST_RADII - _ALL_UP_TO
    steps = [_ALL_UP_TO + round((longest - 1 - _ALL_UP_TO) * at / (others - 1)) for at in range(others)]
    return [*range(_ALL_UP_TO), *dict.fromkeys(steps)]


def radius_rows(methods: Sequence[MethodNumbers]) -> list[tuple[str, ...]]:
    """For each method its certified share at the shown radii, with the band."""
    radii = shown_radii(methods)
    return [
        (method.title, *(_banded(method.point(radius)) for radius in radii))
        for method in methods
        if method.numbers["n"]
    ]


def _cells(numbers: Mapping[str, Any]) -> tuple[str, ...]:
    median, rate = numbers["median_radius"], numbers["median_rate"]
    return (
        f"{numbers['n']:,}" + (f" (+{numbers['errors']:,} errors)" if numbers["errors"] else ""),
        "–" if numbers["accuracy"] is None else percent(numbers["accuracy"]),
        f"{numbers['abstained']:,}",
        "–" if numbers["wrong"] is None else f"{numbers['wrong']:,}",
        "–" if median is None else str(median),
        "–" if rate is None else f"{100 * rate:.1f} %",
        number(numbers["mean_copies"], 0),
        number(numbers["seconds"]),
    )


def _banded(point: Mapping[str, float]) -> str:
    return percent({"value": point["share"], "low": point["low"], "high": point["high"]})
