"""A report as one HTML file that needs nothing else: numbers, plot, highlighted word diffs, manifest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

from stockade.core.records import Record, Status
from stockade.core.text import Piece, Text
from stockade.report.frame import fill, shown_manifest
from stockade.report.numbers import COLUMNS, cells
from stockade.report.plots import accuracy_plot
from stockade.runs.run import Run

EXAMPLES_PER_ATTACK = 200
_ORDER: tuple[Status, ...] = ("success", "error", "failed", "skipped")
_LONGEST = 4_000


@dataclass(frozen=True, slots=True)
class ShownExample:
    """A record with its diff."""

    record: Record
    pieces: tuple[Piece, ...]


def render_page(runs: Sequence[Run]) -> str:
    """The whole page."""
    content = {
        "title": ", ".join(run.name for run in runs),
        "runs": [_section(run) for run in runs],
        "plot": _plot(runs),
        "columns": COLUMNS,
    }
    return fill("page.html", content)


def render_fragment(run: Run) -> str:
    """What a notebook shows of a run: its numbers, warnings and a few successes."""
    section = _section(run, examples=5)
    return fill("fragment.html", {"run": section, "columns": COLUMNS})


def _section(run: Run, examples: int = EXAMPLES_PER_ATTACK) -> dict[str, Any]:
    shown, left_out = _examples(run, examples)
    return {
        "name": run.name,
        "summary": run.summary,
        "rows": [cells(name, numbers) for name, numbers in run.summary["attacks"].items()],
        "scale": run.manifest["config"]["similarity"],
        "attacks": run.attacks,
        "examples": shown,
        "left_out": left_out,
        "manifest": shown_manifest(run.manifest),
        "created": run.manifest["created"],
    }


def _examples(run: Run, most: int) -> tuple[list[ShownExample], int]:
    """Per attack the successes first, then errors, failures and skipped ones, up to a limit; and how many did not
    fit.
    """
    shown: list[ShownExample] = []
    left_out = 0
    for attack in run.attacks:
        chosen = list(islice(chain.from_iterable(run.records(attack, status) for status in _ORDER), most))
        shown += [ShownExample(record, _pieces(record)) for record in chosen]
        numbers = run.summary["attacks"][attack]
        left_out += numbers["n"] + numbers["errors"] - len(chosen)
    return shown, left_out


def _pieces(record: Record) -> tuple[Piece, ...]:
    if record.adversarial is None:
        text = record.original if len(record.original) <= _LONGEST else record.original[:_LONGEST] + "…"
        return (Piece("same", text, text),)
    return Text.parse(record.original, record.premise).rewritten(record.adversarial).diff()


def _plot(runs: Sequence[Run]) -> str:
    several = len(runs) > 1
    rows = [
        (f"{run.name}: {name}" if several else name, numbers)
        for run in runs
        for name, numbers in run.summary["attacks"].items()
    ]
    return accuracy_plot(rows)
