"""Work shared among workers: items are leased in chunks, results come back one by one, lost leases are given out again.

A worker holds its models as long as it lives and works on a lease at a time. Each result reaches the process that
writes as soon as it is there. When a worker ends, those of its items that have no result yet are leased again, each by
itself; an item whose worker ends once more is what kills workers, and is reported as lost instead of tried for ever.
Workers may come later than others: a lease waits for nobody.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Generic, Protocol, TypeVar

from stockade.core.errors import RunError

Item = TypeVar("Item")
Value = TypeVar("Value")
Key = str

SMALLEST_LEASE, LARGEST_LEASE = 16, 256
_DEATHS_PER_ITEM = 2
_DEATHS_IN_A_ROW = 3
"""For each worker: so many ends without a single result between them, and the job gives up."""


_SECONDS_TO_WAIT = 1.0
_SECONDS_FOR_WORKERS = 900.0


class Work(Protocol):
    """What workers do. It is sent to each of them, which opens it once."""

    def open(self) -> Callable[[Sequence[Any]], Iterator[tuple[Key, Any]]]:
        """Load what the work needs; the function that is returned works on a lease, and yields keys and results."""


@dataclass(frozen=True, slots=True)
class Result(Generic[Value]):
    """What a worker found of one item.

    Parameters
    ----------
    key
        The item.
    value
        What was found.
    worker
        The number of the worker, for those who add up what workers have cost.
    """

    key: Key
    value: Value
    worker: int


@dataclass(frozen=True, slots=True)
class Lost(Generic[Item]):
    """An item that ended every worker that took it.

    Parameters
    ----------
    key, item
        Which.
    reason
        How the last of them ended.
    """

    key: Key
    item: Item
    reason: str


@dataclass(frozen=True, slots=True)
class Ready:
    """From a worker: it has loaded what it needs, or finished its lease."""


@dataclass(frozen=True, slots=True)
class Found:
    """From a worker: the result of one item."""

    key: Key
    value: Any


@dataclass(frozen=True, slots=True)
class Failed:
    """From a worker: an error that another worker would meet as well."""

    error: Exception


@dataclass(frozen=True, slots=True)
class Died:
    """Of a worker: it has ended.

    Parameters
    ----------
    reason
        Such as "killed by signal 9".
    """

    reason: str


Message = Ready | Found | Failed | Died


class Carrier(Protocol):
    """Starts workers, brings leases to them, and tells what they say. Workers are known by number."""

    def start(self, worker: int, work: Work) -> None:
        """Start a worker; it says `Ready` when it can take a lease."""

    def lease(self, worker: int, items: Sequence[Any]) -> None:
        """Give a worker something to do."""

    def messages(self, seconds: float) -> Iterable[tuple[int, Message]]:
        """What workers have to say; waits for the first of it, but not longer than that."""

    def stop(self) -> None:
        """End all workers."""


@dataclass(slots=True)
class _Worker(Generic[Item]):
    ready: bool = False
    lease: dict[Key, Item] = field(default_factory=dict)
    """What it was given and has no result for yet."""


def share(
    work: Work,
    items: Iterable[tuple[Key, Item]],
    carrier: Carrier,
    workers: int,
    *,
    size: int | None = None,
    deadline: float | None = None,
) -> Iterator[Result[Any] | Lost[Item]]:
    """Every item's result as it is found, in any order; each item once.

    Parameters
    ----------
    work
        What is done with the items.
    items
        Names and items; read as they are needed.
    carrier
        Where the workers are. It is stopped in the end, whatever happens.
    workers
        How many.
    size
        About how many items there are, which decides how large leases are.
    deadline
        A `time.monotonic()` after which no lease is given out.
    """
    try:
        yield from _Shared(work, items, carrier, workers, size, deadline).run()
    finally:
        carrier.stop()


class _Shared(Generic[Item]):
    def __init__(
        self,
        work: Work,
        items: Iterable[tuple[Key, Item]],
        carrier: Carrier,
        workers: int,
        size: int | None,
        deadline: float | None,
    ) -> None:
        self._work, self._items, self._carrier, self._deadline = work, iter(items), carrier, deadline
        self._left = size
        self._again: deque[tuple[Key, Item]] = deque()
        self._workers: dict[int, _Worker[Item]] = {}
        self._deaths: Counter[Key] = Counter()
        self._in_a_row, self._most_in_a_row, self._next = 0, _DEATHS_IN_A_ROW * workers, 0
        self._exhausted, self._heard = False, time.monotonic()
        for _ in range(workers):
            self._start()

    def run(self) -> Iterator[Result[Any] | Lost[Item]]:
        while True:
            for number, worker in self._workers.items():
                if worker.ready:
                    self._give(number, worker)
            if self._is_done():
                return
            for number, message in self._carrier.messages(_SECONDS_TO_WAIT):
                self._heard = time.monotonic()
                yield from self._take(number, message)
            self._check_that_somebody_works()

    def _is_done(self) -> bool:
        working = any(worker.lease for worker in self._workers.values())
        return self._exhausted and not self._again and not working

    def _check_that_somebody_works(self) -> None:
        """Give up if no worker has come, or come back, for a long time: loading a model takes minutes at most."""
        working = any(worker.lease or worker.ready for worker in self._workers.values())
        if not working and time.monotonic() - self._heard > _SECONDS_FOR_WORKERS:
            raise RunError(
                f"No worker has been there for {_SECONDS_FOR_WORKERS / 60:.0f} minutes. What is finished is stored: "
                "look at the machines, then go on with --resume."
            )

    def _start(self) -> None:
        self._workers[self._next] = _Worker()
        self._carrier.start(self._next, self._work)
        self._next += 1

    def _give(self, number: int, worker: _Worker[Item]) -> None:
        """Lease items to a worker: those that were lost one at a time, else as many as keep all workers busy."""
        if self._deadline is not None and time.monotonic() > self._deadline:
            self._exhausted = True
            self._again.clear()
            return
        if self._again:
            lease = [self._again.popleft()]
        else:
            lease = list(islice(self._items, self._lease_size()))
            self._exhausted = self._exhausted or not lease
            if self._left is not None:
                self._left = max(0, self._left - len(lease))
        if lease:
            worker.ready, worker.lease = False, dict(lease)
            self._carrier.lease(number, [item for _, item in lease])

    def _lease_size(self) -> int:
        """Large leases fill batches, small ones at the end let all workers finish together."""
        if self._left is None:
            return SMALLEST_LEASE
        return max(SMALLEST_LEASE, min(LARGEST_LEASE, self._left // (2 * len(self._workers) or 1)))

    def _take(self, number: int, message: Message) -> Iterator[Result[Any] | Lost[Item]]:
        worker = self._workers.get(number)
        if worker is None:  # one that was given up has said something more
            return
        match message:
            case Found(key, value):
                if worker.lease.pop(key, None) is not None:
                    self._in_a_row = 0
                    yield Result(key, value, number)
            case Ready():
                self._again.extend(worker.lease.items())  # a lease that ended without these results
                worker.ready, worker.lease = True, {}
            case Failed(error):
                raise error
            case Died(reason):
                yield from self._bury(number, worker, reason)

    def _bury(self, number: int, worker: _Worker[Item], reason: str) -> Iterator[Lost[Item]]:
        """Replace a worker that has ended, and lease again what it had not finished."""
        del self._workers[number]
        self._in_a_row += 1
        if self._in_a_row > self._most_in_a_row:
            raise RunError(
                f"{self._in_a_row} workers in a row have ended without a result (the last: {reason}). Is there memory "
                "for all of them? What is finished is stored: go on with --resume and fewer --workers."
            )
        alone = len(worker.lease) == 1
        for key, item in worker.lease.items():
            self._deaths[key] += 1
            if alone and self._deaths[key] >= _DEATHS_PER_ITEM:
                yield Lost(key, item, reason)
            else:
                self._again.append((key, item))
        self._start()
