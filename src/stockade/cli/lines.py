"""How far a long job is, for a log."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

SECONDS_BETWEEN_LINES = 60.0


class Lines:
    """What a log gets of a long job: at most one line a minute, so that short ones stay silent."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last_step = self._last_line = clock()
        self._begun: dict[str, tuple[float, int]] = {}

    def tell(self, part: str, how_far: str, done: int, total: int) -> None:
        """Note a step of a part of the job, and say how far the part is and how long it will take at this pace."""
        now = self._clock()
        since, before = self._begun.setdefault(part, (self._last_step, done - 1))
        self._last_step = now
        if now - self._last_line < SECONDS_BETWEEN_LINES:
            return
        self._last_line = now
        left = (total - done) * (now - since) / (done - before)
        print(f"stockade: {part}: {how_far}, {_duration(left)} left", file=sys.stderr, flush=True)


def _duration(seconds: float) -> str:
    minutes = round(seconds / 60)
    if minutes < 1:
        return "less than a minute"
    return f"about {minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"about {minutes} min"
