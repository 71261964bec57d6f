"""Progress: bars with live counts on a terminal, a line now and then where standard error is a file or a pipe."""

from __future__ import annotations

import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from stockade.cli.screen import say
from stockade.core.sanitize import one_line
from stockade.experiment.progress import Observer, Progress

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.progress import TaskID

SECONDS_BETWEEN_LINES = 60.0
_UNITS = 1000
"""A bar is as long as the work, which is better known in shares than in texts."""


@contextmanager
def watch() -> Iterator[Observer]:
    """An observer that draws one bar per part with its counts and the time left, or writes a line a minute."""
    if not sys.stderr.isatty():
        yield Lines().show
        return
    tasks: dict[str, TaskID] = {}
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    with _bars() as bars:

        def show(progress: Progress) -> None:
            part = one_line(progress.part)
            if part not in tasks:
                tasks[part] = bars.add_task(
                    part, total=_UNITS, completed=int(_UNITS * progress.before), numbers="", units=""
                )
            if progress.status is not None:
                counts[part][progress.status] += 1
            seen = "  ".join(f"{status} {number}" for status, number in sorted(counts[part].items()))
            bars.update(
                tasks[part],
                completed=_UNITS if progress.done >= progress.total else _UNITS * progress.share,
                numbers=one_line(f"{seen}  {progress.note}".strip()),
                units=f"{progress.done}/{progress.total}",
            )

        yield show


class Lines:
    """What a log gets of a long job: at most one line a minute, so that short jobs stay silent."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last_step = self._last_line = clock()
        self._begun: dict[str, tuple[float, float]] = {}

    def show(self, progress: Progress) -> None:
        """Write how far a part of the job is and how long it will take at this pace."""
        now, share = self._clock(), progress.share
        since, before = self._begun.setdefault(progress.part, (self._last_step, progress.before))
        self._last_step = now
        if now - self._last_line < SECONDS_BETWEEN_LINES:
            return
        self._last_line = now
        left = (1 - share) * (now - since) / max(share - before, 1e-9)
        how_far = f"{progress.done} of {progress.total} {progress.unit}"
        say(f"stockade: {progress.part}: {how_far}, {_duration(left)} left", err=True)


def _duration(seconds: float) -> str:
    minutes = round(seconds / 60)
    if minutes < 1:
        return "less than a minute"
    return f"about {minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"about {minutes} min"


def _bars() -> Bars:
    """Bars with a description, how much is done, counts and the time left."""
    from rich import progress
    from rich.console import Console

    return progress.Progress(
        progress.TextColumn("{task.description}", markup=False),
        progress.BarColumn(),
        progress.TextColumn("{task.fields[units]}"),
        progress.TextColumn("{task.fields[numbers]}", markup=False),
        progress.TimeElapsedColumn(),
        progress.TimeRemainingColumn(),
        console=Console(stderr=True),
    )
