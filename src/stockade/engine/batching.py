"""Batches by length and token budget, and the budget's own search for its best size.

Padding is wasted work, so texts are sorted by length and cut so that `rows × longest` stays within a budget of
tokens. The best budget depends on model and machine (on a CPU a few hundred to a few thousand tokens); it is found
once by watching the first batches and remembered for that model and device. The budget changes how fast answers come,
never which.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

Item = TypeVar("Item")

SMALLEST, LARGEST = 64, 65_536
_TRIALS = 4
"""Batches measured per budget before the next one is tried."""
_WORTH_IT = 1.03
"""A larger budget must be this much faster, because it also costs memory."""


def cut_batches(lengths: Sequence[int], budget: TokenBudget, workers: int = 1) -> Iterator[list[int]]:
    """Indices of the lengths in batches, longest first (memory runs out at the start, if at all).

    The budget is asked anew for each batch; several workers get batches small enough for each to have one.
    """
    order = sorted(range(len(lengths)), key=lengths.__getitem__, reverse=True)
    share = max(SMALLEST, -(-sum(lengths) // workers)) if workers > 1 else None
    at = 0
    while at < len(order):
        longest = max(1, lengths[order[at]])
        rows = max(1, min(budget.tokens, share or budget.tokens) // longest)
        yield order[at : at + rows]
        at += rows


class TokenBudget:
    """How many padded tokens a batch may have. `fixed` budgets stay; others are tuned by `observe`."""

    def __init__(self, fixed: int | None = None, memory: TuningMemory | None = None) -> None:
        remembered = memory.recall() if memory is not None and fixed is None else None
        self._memory = memory
        self.settled = fixed is not None or remembered is not None
        self._ceiling = LARGEST
        self._speeds: dict[int, list[float]] = {}
        self.tokens = fixed or remembered or 512

    def observe(self, tokens: int, seconds: float) -> None:
        """Learn from one batch; batches that did not fill the budget say nothing about it."""
        if self.settled or seconds <= 0 or tokens < 0.7 * self.tokens:
            return
        speeds = self._speeds.setdefault(self.tokens, [])
        speeds.append(tokens / seconds)
        if len(speeds) < _TRIALS:
            return
        best = max(self._speeds, key=lambda budget: max(self._speeds[budget]))
        smaller = self.tokens // 2
        improved = smaller not in self._speeds or max(speeds) > _WORTH_IT * max(self._speeds[smaller])
        if improved and self.tokens * 2 <= self._ceiling:
            self.tokens *= 2
        else:
            self._settle(smaller if not improved else best)

    def halve(self) -> bool:
        """Memory ran out: half the budget from now on. False when it cannot get smaller."""
        if self.tokens <= SMALLEST:
            return False
        self._ceiling = self.tokens // 2
        self._settle(self._ceiling)
        return True

    def _settle(self, tokens: int) -> None:
        self.tokens, self.settled = tokens, True
        if self._memory is not None:
            self._memory.remember(tokens)


class TuningMemory:
    """Remembers one model's best budget in a small file of the user's cache folder; losing that file only costs a new
    tuning.
    """

    def __init__(self, key: str, folder: Path | None = None) -> None:
        self._key = key
        self._file = (folder or cache_folder()) / "batch-budgets.json"

    def recall(self) -> int | None:
        value = self._read().get(self._key)
        return value if isinstance(value, int) and SMALLEST <= value <= LARGEST else None

    def remember(self, tokens: int) -> None:
        with suppress(OSError):
            self._file.parent.mkdir(parents=True, exist_ok=True)
            temporary = self._file.with_suffix(f".{os.getpid()}.tmp")
            temporary.write_text(json.dumps({**self._read(), self._key: tokens}), encoding="utf-8")
            temporary.replace(self._file)

    def _read(self) -> dict[str, object]:
        try:
            found = json.loads(self._file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}


def cache_folder() -> Path:
    """Where Stockade may keep what it can always make again."""
    named = os.environ.get("STOCKADE_CACHE")
    if named:
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "stockade"
