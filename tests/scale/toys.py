"""Work whose results are known, and items that end the worker that takes them."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from stockade.core.errors import ModelError


@dataclass(frozen=True)
class Squares:
    """Squares numbers. Some of them kill the worker: always, or as long as a file is not there."""

    kills: frozenset[int] = frozenset()
    kills_once: int | None = None
    folder: str = ""
    exits: int | None = None
    fails: int | None = None
    slow: float = 0.0
    cannot_open: bool = False

    def open(self) -> Callable[[Sequence[int]], Iterator[tuple[str, int]]]:
        if self.cannot_open:
            raise ModelError("There is no such model.")
        return self._squares

    def _squares(self, items: Sequence[int]) -> Iterator[tuple[str, int]]:
        for item in items:
            if item in self.kills or (item == self.kills_once and self._first_time()):
                os.kill(os.getpid(), signal.SIGKILL)
            if item == self.exits:
                sys.exit(0)
            if item == self.fails:
                raise ModelError(f"{item} cannot be squared.")
            time.sleep(self.slow)
            yield str(item), item * item

    def _first_time(self) -> bool:
        try:
            os.close(os.open(os.path.join(self.folder, "killed"), os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return False
        return True
