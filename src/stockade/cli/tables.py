"""What commands print of runs: summary tables, warnings, coloured diffs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text as Line

from stockade.core.records import Record
from stockade.core.text import Text
from stockade.report.numbers import number
from stockade.runs.run import Run

_PIPE_WIDTH = 160
_ROOM_FOR_INTERVALS = 112
_STYLES = {"replace": "bold red", "insert": "bold green", "delete": "strike yellow"}


def console() -> Console:
    """Standard output; wide when it is a file or pipe, because nobody wraps those. Brackets and :names: between colons
    are printed as they are: most of what is printed are names and texts of the user.
    """
    plain = Console(markup=False, emoji=False)
    return plain if plain.is_terminal else Console(markup=False, emoji=False, width=_PIPE_WIDTH)


def print_run(run: Run) -> None:
    """The run's numbers, its warnings, and where everything is."""
    screen = console()
    screen.print(summary_table([(run.name, run)], screen.width))
    print_remarks(screen, run.summary["remarks"])
    print_warnings(screen, run.summary["warnings"])
    if not run.summary["complete"]:
        screen.print(f"Not complete; go on with: stockade attack --resume --out {run.folder}", soft_wrap=True)
    page = run.folder / "report.html"
    screen.print(f"Results: {run.folder}  ·  page: {page}  ·  examples: stockade show {run.folder}", soft_wrap=True)


def print_remarks(screen: Console, remarks: Iterable[str]) -> None:
    for remark in remarks:
        screen.print(f"note: {remark}", soft_wrap=True, highlight=False)


def print_warnings(screen: Console, warnings: Iterable[str]) -> None:
    for warning in warnings:
        screen.print(Line.assemble(("warning:", "bold yellow"), f" {warning}"), soft_wrap=True)


def summary_table(runs: Sequence[tuple[str, Run]], width: int) -> Table:
    """One line per run and attack; with 95 % intervals where the screen is wide enough for them."""
    table = Table(box=None, pad_edge=False, header_style="bold", collapse_padding=True)
    several = len(runs) > 1
    for name in (["model"] if several else []) + ["attack"]:
        table.add_column(name, overflow="fold")
    for name in ("n", "clean", "robust", "success", "queries", "changed", "sim.", "sec."):
        table.add_column(name, justify="right", no_wrap=True)
    for label, run in runs:
        for attack, numbers in run.summary["attacks"].items():
            table.add_row(*([label] if several else []), attack, *_cells(numbers, width >= _ROOM_FOR_INTERVALS))
    return table


def _cells(numbers: Mapping[str, Any], intervals: bool) -> list[str]:
    return [
        str(numbers["n"]) + (f" +{numbers['errors']} errors" if numbers["errors"] else ""),
        _share(numbers["clean_accuracy"], intervals),
        _share(numbers["robust_accuracy"], intervals),
        _share(numbers["success_rate"], intervals),
        number(numbers["mean_queries"]),
        number(numbers["mean_perturbed_percent"], 1, "%"),
        number(numbers["mean_similarity"], 3),
        number(numbers["seconds"]),
    ]


def _share(interval: Mapping[str, float | None], with_interval: bool) -> str:
    value, low, high = interval["value"], interval["low"], interval["high"]
    if value is None or low is None or high is None:
        return "–"
    return f"{100 * value:.1f}%" + (f" ({100 * low:.0f}–{100 * high:.0f})" if with_interval else "")


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
