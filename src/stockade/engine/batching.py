"""Batches of texts of like lengths, within a budget of tokens that tunes itself.

Padding is wasted work, so texts are sorted by length and cut into batches of few padded tokens, each within a budget.
The best budget depends on model and machine (on a CPU a few hundred to a few thousand tokens); it is found once by
watching the first batches and remembered for that model and device. The budget changes how fast answers come, never
which.
"""

from __future__ import annotations

import json
import os
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from stockade.core.text import TextInput

SMALLEST, LARGEST = 64, 65_536
_CHARACTERS_PER_TOKEN = 4
_TRIALS = 4
"""Batches measured per budget before the next one is tried."""
_WORTH_IT = 1.03
"""A larger budget must be this much faster, because it also costs memory."""
_CALL_SHARE = 1 / 8
"""What a call of a model is taken to cost besides its tokens, as a share of the budget, before that was measured."""


def estimated_tokens(item: TextInput) -> int:
    """About how many tokens a text has, where no tokenizer is at hand."""
    characters = len(item) if isinstance(item, str) else len(item[0]) + len(item[1])
    return 1 + characters // _CHARACTERS_PER_TOKEN


def cut_batches(
    lengths: Sequence[int], budget: TokenBudget, workers: int = 1, *, padded: bool = True
) -> Iterator[list[int]]:
    """Indices of the lengths in batches, longest first (memory runs out at the start, if at all).

    Parameters
    ----------
    lengths
        How many tokens each text has.
    budget
        How many padded tokens a batch may have. When that changes meanwhile, the rest is cut anew.
    workers
        How many batches are computed at the same time: they are made small enough for each worker to have one.
    padded
        Whether the model is known to pad the texts of a batch to one length. Otherwise, and while the budget is being
        tuned on full batches, there are as few batches as possible.
    """
    order = sorted(range(len(lengths)), key=lengths.__getitem__, reverse=True)
    share = max(SMALLEST, -(-sum(lengths) // workers)) if workers > 1 else LARGEST
    while order:
        tokens = budget.tokens
        call = budget.call_tokens if padded and budget.settled else float(tokens * len(order))
        start = 0
        for end in _cheapest_ends([lengths[index] for index in order], min(tokens, share), call):
            yield order[start:end]
            start = end
            if budget.tokens != tokens:
                break
        order = order[start:]


def _cheapest_ends(lengths: Sequence[int], tokens: int, call: float) -> list[int]:
    """Where batches of at most so many padded tokens end, so that all together cost least; `lengths` fall.

    A batch costs `call` and its padded tokens: its rows times its longest text. It ends where it is full or where
    shorter texts begin; of all such ways to cut, the cheapest is found from the first text on.
    """
    shorter = [index for index in range(1, len(lengths)) if lengths[index] < lengths[index - 1]]
    costs, starts = {0: 0.0}, {}
    for start in range(len(lengths)):
        if start not in costs:
            continue
        longest = max(1, lengths[start])
        full = min(len(lengths), start + max(1, tokens // longest))
        ends = shorter[bisect_right(shorter, start) : bisect_left(shorter, full)]
        for end in (*ends, full):
            cost = costs[start] + call + longest * (end - start)
            if end not in costs or cost < costs[end]:
                costs[end], starts[end] = cost, start
    chosen, end = [], len(lengths)
    while end:
        chosen.append(end)
        end = starts[end]
    return chosen[::-1]


@dataclass(slots=True)
class _Total:
    """What batches of a kind have cost altogether."""

    batches: int = 0
    tokens: int = 0
    seconds: float = 0.0

    def add(self, tokens: int, seconds: float) -> None:
        self.batches += 1
        self.tokens += tokens
        self.seconds += seconds


class TokenBudget:
    """How many padded tokens a batch may have; tuned while batches are computed.

    Parameters
    ----------
    fixed
        A budget that stays; None to tune it.
    memory
        Where the tuned budget is remembered from run to run.
    """

    def __init__(self, fixed: int | None = None, memory: TuningMemory | None = None) -> None:
        remembered = memory.recall() if memory is not None and fixed is None else None
        self._memory = memory
        self._fixed = fixed is not None
        self.settled = fixed is not None or remembered is not None
        self._ceiling = LARGEST
        self._speeds: dict[int, list[float]] = {}
        self._full, self._small = _Total(), _Total()
        self.tokens = fixed or remembered or 512

    @property
    def call_tokens(self) -> float:
        """How many tokens could be computed in the time that a call takes besides its tokens.

        A fixed budget promises the same batches on every machine, so nothing measured enters it.
        """
        if self._fixed or self._small.batches < _TRIALS or not self._full.batches:
            return self.tokens * _CALL_SHARE
        tokens_meanwhile = self._small.seconds / self._full.seconds * self._full.tokens
        return max(0.0, tokens_meanwhile - self._small.tokens) / self._small.batches

    def tokens_within(self, seconds: float) -> float:
        """How many tokens full batches have computed in so many seconds; 0 before that was measured, or if nothing
        measured may enter a fixed budget.
        """
        return 0.0 if self._fixed or not self._full.batches else seconds * self._full.tokens / self._full.seconds

    def observe(self, tokens: int, seconds: float) -> None:
        """Learn from one batch: the cost of a call from small ones, the best budget from those that fill it."""
        if seconds <= 0:
            return
        if tokens < 0.25 * self.tokens:
            self._small.add(tokens, seconds)
        if tokens < 0.7 * self.tokens:
            return
        self._full.add(tokens, seconds)
        if self.settled:
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
    """Remembers a model's best budget in a small file; losing that file only costs a new tuning.

    Parameters
    ----------
    key
        Names the model and the device.
    folder
        Where the file is; None for Stockade's cache folder.
    """

    def __init__(self, key: str, folder: Path | None = None) -> None:
        self._key = key
        self._file = (folder or cache_folder()) / "batch-budgets.json"

    def recall(self) -> int | None:
        """The budget that was remembered, if any."""
        value = self._read().get(self._key)
        return value if isinstance(value, int) and SMALLEST <= value <= LARGEST else None

    def remember(self, tokens: int) -> None:
        """Write a budget into the file, as far as the file can be written."""
        with suppress(OSError):
            self._file.parent.mkdir(parents=True, exist_ok=True)
            temporary = self._file.with_suffix(f".{os.getpid()}.tmp")
            temporary.write_text(json.dumps({**self._read(), self._key: tokens}), encoding="utf-8")
            temporary.replace(self._file)

    def _read(self) -> dict[str, object]:
        try:
            budgets = json.loads(self._file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return budgets if isinstance(budgets, dict) else {}


def cache_folder() -> Path:
    """Where Stockade may keep what it can always make again."""
    named = os.environ.get("STOCKADE_CACHE")
    if named:
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "stockade"
