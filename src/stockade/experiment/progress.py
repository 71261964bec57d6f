"""How far a job is, and how it may be run without changing its results."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from stockade.core.errors import OptionError
from stockade.engine.scheduler import Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Where a job stands, for whoever watches it.

    Parameters
    ----------
    part
        What is at work: an attack, a method, a model and an attack, "training".
    done, total
        Finished and all units of this part: texts, trials or training steps.
    status
        What came of the unit that has just ended, such as "success"; None in between.
    note
        Numbers to show beside it, such as the training loss.
    fraction
        The share of the work that is done, where that is better known than `done / total`: by queries, because texts
        that take long end last.
    unit
        What `total` counts, for lines such as "12 of 40 texts".
    before
        The share of the work that an earlier, interrupted session had done.
    """

    part: str
    done: int
    total: int
    status: str | None = None
    note: str = ""
    fraction: float | None = None
    unit: str = "texts"
    before: float = 0.0

    @property
    def share(self) -> float:
        """The best estimate of the share of the work that is done."""
        if self.fraction is not None:
            return self.fraction
        return self.done / self.total if self.total else 1.0


Observer = Callable[[Progress], None]
QUIET_SECONDS = 2.0
"""After so long without a finished text an observer is told the share of the work alone."""


def within(part: str, observer: Observer | None) -> Observer | None:
    """An observer that also names the larger part that this one belongs to: `sentiment-cnn: pwws`."""
    if observer is None:
        return None
    return lambda progress: observer(replace(progress, part=f"{part}: {progress.part}"))


class SearchProgress:
    """Reports the searches of one part of a job: each as it ends, and the share of the work in between.

    Parameters
    ----------
    part
        What the searches belong to: an attack or a method.
    total
        How many texts there are.
    finished
        How many of them an earlier session had finished.
    observer
        Who is told; None for nobody.
    """

    def __init__(self, part: str, total: int, finished: int, observer: Observer | None) -> None:
        self._part, self._total, self._observer = part, total, observer
        self._before, self._done, self._told = finished, finished, time.monotonic()

    def after_round(self, usage: Usage) -> None:
        """Tell the share of the work that is done, if no text has ended for a while."""
        if time.monotonic() - self._told > QUIET_SECONDS:
            self._tell(None, usage)

    def ended(self, status: str, usage: Usage) -> None:
        """Tell what came of one more text."""
        self._done += 1
        self._tell(status, usage)

    def _tell(self, status: str | None, usage: Usage) -> None:
        self._told = time.monotonic()
        if self._observer is None:
            return
        before = self._before / self._total if self._total else 0.0
        fraction = before + (1 - before) * usage.share(self._total - self._before)
        self._observer(
            Progress(
                part=self._part, done=self._done, total=self._total, status=status, fraction=fraction, before=before
            )
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """How a job is run: changes how fast it is and who watches it, never its results.

    Parameters
    ----------
    concurrency
        The most searches in flight.
    batch_tokens
        Tokens per batch; tuned on the first batches if None.
    seconds
        A time limit: no search (or trial) is started after it. The rest is left for a resume.
    workers
        Processes that work at the same time, where a job can use several.
    ray
        The address of a Ray cluster that the workers are on, or `auto`; None for processes of this machine.
    observer
        Called with a `Progress` after each unit of work.
    """

    concurrency: int = 64
    batch_tokens: int | None = None
    seconds: float | None = None
    workers: int = 1
    ray: str | None = None
    observer: Observer | None = None

    def __post_init__(self) -> None:
        for name in ("concurrency", "batch_tokens", "workers"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise OptionError(f"--{name.replace('_', '-')} is {value}, expected a whole number from 1 up.")
        if self.seconds is not None and not self.seconds > 0:
            raise OptionError(f"--seconds is {self.seconds}, expected more than 0.")
