"""What commands print of runs: summary tables, warnings, coloured diffs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text as Line

from stockade.core.records import Record
from stockade.core.text import Text
from stockade.runs.run import Run

_STYLES = {"replace": "bold red", "insert": "bold green", "delete": "strike yellow"}


def print_run(run: Run) -> None:
    """The run's numbers, its warnings, and where everything is."""
    console = Console()
    console.print(summary_table([(run.name, run)]))
    print_warnings(console, run)
    if not run.summary["complete"]:
        console.print(f"Not complete; go on with: stockade attack --resume --out {run.folder}", soft_wrap=True)
    console.print(f"Results: {run.folder}  ·  page: {run.folder / 'report.html'}  ·  examples: stockade show {run.folder}", soft_wrap=True)


def print_warnings(console: Console, run: Run) -> None:
    for warning in run.summary["warnings"]:
        console.print(f"[bold yellow]warning:[/] {warning}", soft_wrap=True)


def summary_table(runs: Sequence[tuple[str, Run]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    several = len(runs) > 1
    for name in (["model"] if several else []) + ["attack"]:
        table.add_column(name, no_wrap=True)
    for name in ("n", "clean accuracy", "robust accuracy", "success", "queries", "changed words", "similarity", "seconds"):
        table.add_column(name, justify="right")
    for label, run in runs:
        for attack, numbers in run.summary["attacks"].items():
            table.add_row(*([label] if several else []), attack, *_cells(numbers))
    return table


def _cells(numbers: Mapping[str, Any]) -> list[str]:
    return [
        str(numbers["n"]) + (f" (+{numbers['errors']} errors)" if numbers["errors"] else ""),
        _share(numbers["clean_accuracy"]),
        _share(numbers["robust_accuracy"]),
        _share(numbers["success_rate"]),
        _number(numbers["mean_queries"], 1),
        "–" if numbers["mean_perturbed_percent"] is None else f"{numbers['mean_perturbed_percent']:.1f} %",
        _number(numbers["mean_similarity"], 3),
        _number(numbers["seconds"], 1),
    ]


def _share(interval: Mapping[str, float | None]) -> str:
    value, low, high = interval["value"], interval["low"], interval["high"]
    if value is None or low is None or high is None:
        return "–"
    return f"{value:.2f} [{low:.2f}, {high:.2f}]"


def _number(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:,.{digits}f}"


def diff_line(record: Record) -> Line:
    """The adversarial text with what changed in colour, the original words beside it."""
    line = Line()
    if record.adversarial is None:
        return line.append(record.original)
    for piece in Text.parse(record.original, record.premise).rewritten(record.adversarial).diff():
        if piece.kind == "same":
            line.append(piece.after)
        elif piece.kind == "delete":
            line.append(f"{piece.before} ", style=_STYLES["delete"])
        else:
            line.append(piece.after, style=_STYLES[piece.kind])
            if piece.before:
                line.append(f"({piece.before})", style="dim")
    return line
