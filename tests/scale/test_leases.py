"""Leases over a carrier that does what a script says, and over real processes that are killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from stockade.core.errors import ModelError, RunError
from stockade.scale import leases
from stockade.scale.leases import Died, Found, Lost, Message, Ready, Result, Work, share
from stockade.scale.local import LocalCarrier
from tests.scale.toys import Squares


def numbers(count: int) -> Iterator[tuple[str, int]]:
    return ((str(number), number) for number in range(count))


def squares(outcomes: Iterable[Result[Any] | Lost[int]]) -> dict[str, int]:
    """The results; fails if an item has two."""
    values: dict[str, int] = {}
    for outcome in outcomes:
        assert isinstance(outcome, Result)
        assert outcome.key not in values
        values[outcome.key] = outcome.value
    return values


class Scripted:
    """Workers that square in this process; those that a script names die before their nth result."""

    def __init__(self, deaths: dict[int, int], *, late: frozenset[int] = frozenset()) -> None:
        self.deaths, self.late = deaths, late
        self.leases: list[tuple[int, list[int]]] = []
        self.pending: list[tuple[int, Message]] = []
        self.stopped = False

    def start(self, worker: int, work: Work) -> None:
        if worker not in self.late:
            self.pending.append((worker, Ready()))

    def lease(self, worker: int, items: Sequence[int]) -> None:
        self.leases.append((worker, list(items)))
        for position, item in enumerate(items):
            if self.deaths.get(worker) == position:
                self.pending.append((worker, Died("killed")))
                return
            self.pending.append((worker, Found(str(item), item * item)))
        self.pending.append((worker, Ready()))

    def messages(self, seconds: float) -> Iterator[tuple[int, Message]]:
        pending, self.pending = self.pending, []
        yield from pending

    def stop(self) -> None:
        self.stopped = True


def test_a_lost_lease_is_given_out_again_without_what_was_finished() -> None:
    carrier = Scripted({0: 5})
    found = squares(share(Squares(), numbers(20), carrier, 2, size=20))
    assert found == {str(n): n * n for n in range(20)}
    assert carrier.stopped
    first, again = carrier.leases[0], [lease for lease in carrier.leases[1:] if len(lease[1]) == 1]
    assert first == (0, list(range(16)))
    assert sorted(item for _, [item] in again) == list(range(5, 16))  # the first five results had come


def test_workers_that_come_late_or_never_hold_nothing_up() -> None:
    carrier = Scripted({}, late=frozenset({1, 2}))
    assert len(squares(share(Squares(), numbers(40), carrier, 3, size=40))) == 40
    assert {worker for worker, _ in carrier.leases} == {0}


def test_what_a_worker_says_after_its_end_is_not_counted_twice() -> None:
    class Ghost(Scripted):
        def messages(self, seconds: float) -> Iterator[tuple[int, Message]]:
            for worker, message in list(super().messages(seconds)):
                yield worker, message
                if isinstance(message, Died):
                    yield worker, Found("3", 9)

    assert len(squares(share(Squares(), numbers(16), Ghost({0: 3}), 1, size=16))) == 16


def test_workers_that_only_die_end_the_job() -> None:
    with pytest.raises(RunError, match="7 workers in a row have ended without a result"):
        list(share(Squares(), numbers(40), Scripted(dict.fromkeys(range(40), 0)), 2, size=40))


def test_when_nobody_comes_the_job_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "_SECONDS_FOR_WORKERS", 0.0)
    with pytest.raises(RunError, match="No worker has been there"):
        list(share(Squares(), numbers(4), Scripted({}, late=frozenset({0})), 1))


def test_no_lease_is_given_out_after_the_deadline() -> None:
    carrier = Scripted({})
    outcomes = share(Squares(), numbers(500), carrier, 1, size=500, deadline=time.monotonic() - 1)
    assert list(outcomes) == []
    assert carrier.leases == []


def test_leases_shrink_so_that_workers_finish_together() -> None:
    carrier = Scripted({})
    squares(share(Squares(), numbers(2000), carrier, 2, size=2000))
    sizes = [len(items) for _, items in carrier.leases]
    assert sizes[0] == 256
    assert sizes[-1] <= 16
    assert sizes == sorted(sizes, reverse=True)


def test_processes_find_everything_once_though_one_is_killed(tmp_path: Path) -> None:
    work = Squares(kills_once=7, folder=str(tmp_path))
    found = squares(share(work, numbers(60), LocalCarrier(2), 2, size=60))
    assert found == {str(n): n * n for n in range(60)}
    assert (tmp_path / "killed").exists()


def test_an_item_that_kills_its_worker_is_lost_and_no_other() -> None:
    outcomes = list(share(Squares(kills=frozenset({5})), numbers(20), LocalCarrier(2), 2, size=20))
    lost = [outcome for outcome in outcomes if isinstance(outcome, Lost)]
    assert [(item.key, item.item) for item in lost] == [("5", 5)]
    assert "signal 9" in lost[0].reason
    assert len(outcomes) == 20


def test_an_exit_in_a_worker_is_a_death_and_not_the_end() -> None:
    outcomes = list(share(Squares(exits=2), numbers(4), LocalCarrier(1), 1, size=4))
    [lost] = [outcome for outcome in outcomes if isinstance(outcome, Lost)]
    assert lost.reason == "the worker process ended with exit code 0"


@pytest.mark.parametrize(
    ("work", "problem"), [(Squares(fails=3), "3 cannot be squared"), (Squares(cannot_open=True), "no such model")]
)
def test_an_error_that_every_worker_would_meet_is_raised_here(work: Squares, problem: str) -> None:
    with pytest.raises(ModelError, match=problem):
        list(share(work, numbers(8), LocalCarrier(2), 2, size=8))


def test_workers_end_when_the_reader_stops() -> None:
    carrier = LocalCarrier(2)
    outcomes = share(Squares(slow=0.05), numbers(200), carrier, 2, size=200)
    next(outcomes)
    processes = [process for process, _ in carrier._workers.values()]
    outcomes.close()  # type: ignore[attr-defined]
    assert [process.is_alive() for process in processes] == [False, False]


def test_workers_end_with_a_parent_that_is_killed() -> None:
    script = """
from stockade.scale.leases import share
from stockade.scale.local import LocalCarrier
from tests.scale.toys import Squares
if __name__ == "__main__":
    carrier = LocalCarrier(1)
    for outcome in share(Squares(slow=0.2), ((str(n), n) for n in range(9999)), carrier, 1):
        print([process.pid for process, _ in carrier._workers.values()][0], flush=True)
"""
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        worker = int(parent.stdout.readline())
        parent.send_signal(signal.SIGKILL)
    for _ in range(600):
        if not os.path.exists(f"/proc/{worker}"):
            return
        time.sleep(0.05)
    pytest.fail("the worker goes on without its parent")
