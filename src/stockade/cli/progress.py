"""Progress: bars with live counts on a terminal, a line now and then where standard error is a file or a pipe."""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from stockade.cli.lines import Lines
from stockade.runs.attack import Observer, Progress

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.progress import TaskID

    from stockade.training.loop import Observer as TrainingObserver
    from stockade.training.loop import Progress as TrainingProgress


@contextmanager
def watch(label: str = "") -> Iterator[Observer]:
    """An observer that draws one bar per attack with its counts and the time left, or writes a line a minute."""
    if not sys.stderr.isatty():
        lines = Lines()
        yield lambda progress: lines.tell(
            f"{label}{progress.attack}", f"{progress.done} of {progress.total} texts", progress.done, progress.total
        )
        return
    tasks: dict[str, TaskID] = {}
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    with _bars() as bars:

        def show(progress: Progress) -> None:
            if progress.attack not in tasks:
                tasks[progress.attack] = bars.add_task(f"{label}{progress.attack}", total=progress.total, numbers="")
            counts[progress.attack][progress.status] += 1
            seen = "  ".join(f"{status} {number}" for status, number in sorted(counts[progress.attack].items()))
            bars.update(tasks[progress.attack], completed=progress.done, numbers=seen)

        yield show


@contextmanager
def watch_training() -> Iterator[TrainingObserver]:
    """An observer that draws one bar over all steps with loss, validation and the time left, or writes a line a
    minute.
    """
    if not sys.stderr.isatty():
        lines = Lines()
        yield lambda progress: lines.tell(
            "training", f"epoch {progress.epoch} of {progress.epochs}", progress.step, progress.steps
        )
        return
    with _bars(elapsed=True) as bars:
        task = bars.add_task("reading", total=None, numbers="")

        def show(progress: TrainingProgress) -> None:
            numbers = f"loss {progress.loss:.4f}"
            if progress.validation is not None:
                accuracy = progress.validation.accuracy
                loss = f"{progress.validation.loss:.4f}"
                numbers += f"  validation {loss if accuracy is None else f'{accuracy:.4f}'}"
            bars.update(
                task,
                description=f"epoch {progress.epoch} of {progress.epochs}",
                completed=progress.step,
                total=progress.steps,
                numbers=numbers,
            )

        yield show


def _bars(elapsed: bool = False) -> Bars:
    """Bars with a description, how much is done, numbers of their own and the time left."""
    from rich import progress
    from rich.console import Console

    columns: list[progress.ProgressColumn] = [
        progress.TextColumn("{task.description}", markup=False),
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TextColumn("{task.fields[numbers]}"),
        *([progress.TimeElapsedColumn()] if elapsed else []),
        progress.TimeRemainingColumn(),
    ]
    return progress.Progress(*columns, console=Console(stderr=True))
