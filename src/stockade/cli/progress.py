"""Progress with live counts on a terminal, nothing otherwise."""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

from stockade.runs.attack import Observer, Progress


@contextmanager
def watch(label: str = "") -> Iterator[Observer | None]:
    """An observer that draws one bar per attack with its counts and the time left, if standard error is a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[counts]}"),
        TimeRemainingColumn(),
    )
    tasks: dict[str, TaskID] = {}
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    with Bars(*columns, console=Console(stderr=True)) as bars:

        def show(progress: Progress) -> None:
            if progress.attack not in tasks:
                tasks[progress.attack] = bars.add_task(f"{label}{progress.attack}", total=progress.total, counts="")
            counts[progress.attack][progress.status] += 1
            seen = "  ".join(f"{status} {number}" for status, number in sorted(counts[progress.attack].items()))
            bars.update(tasks[progress.attack], completed=progress.done, counts=seen)

        yield show
