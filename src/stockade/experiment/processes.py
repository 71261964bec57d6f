"""Processes that work for a job: fresh interpreters, which end with the job, and whose results one process writes.

A worker may read the store of the job it works for. What it would add is collected and sent back: only the process that
holds the lock of the folder writes to it.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import tempfile
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import parent_process
from multiprocessing.connection import wait as wait_for_end
from pathlib import Path
from threading import Thread
from typing import Any, TypeVar

from stockade.core.errors import RunError
from stockade.core.trust import Trust, current_trust, with_trust
from stockade.experiment.store import Document, Effort, ResultStore

_SECONDS_TO_END = 5.0
Value = TypeVar("Value")


@contextmanager
def worker_processes(count: int) -> Iterator[ProcessPoolExecutor]:
    """Processes to work in. They are ended if this one is interrupted or killed: nobody would store what they find.

    Parameters
    ----------
    count
        How many.
    """
    others = set(multiprocessing.active_children())
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory(prefix="stockade-", ignore_cleanup_errors=True) as scratch:
        arguments = (scratch, current_trust())
        pool = ProcessPoolExecutor(count, mp_context=context, initializer=_begin_work, initargs=arguments)
        try:
            yield pool
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            workers = set(multiprocessing.active_children()) - others
            for worker in workers:
                worker.terminate()
            for worker in workers:
                worker.join(_SECONDS_TO_END)
            raise
        pool.shutdown()


def completed(running: dict[Future[Value], Any]) -> Iterator[tuple[Any, Value]]:
    """What each task is called, and its result, as they end; tasks may be added to `running` meanwhile.

    Parameters
    ----------
    running
        The names of the tasks; those that have ended are taken out.
    """
    while running:
        for task in wait(running, return_when=FIRST_COMPLETED).done:
            yield running.pop(task), result_of(task)


def result_of(task: Future[Value]) -> Value:
    """The result of a task; a worker that was killed is an error of one sentence."""
    try:
        return task.result()
    except BrokenProcessPool:
        raise RunError(
            "A worker process ended in the middle of its work (is there memory for all of them?). What is finished is "
            "stored: go on with --resume and fewer --workers."
        ) from None


def _begin_work(scratch: str, trust: Trust) -> None:
    """In a worker: Ctrl-C reaches the whole group, and one answer to it is enough; what an ended worker leaves behind
    is removed with the folder that all of them work in; code that the job may not run is not run here either.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    tempfile.tempdir = scratch
    with_trust(trust)
    end_with_parent()


def end_with_parent() -> None:
    """End this process as soon as its parent has: one that is killed cannot end its workers, which would go on for
    hours.
    """

    def watch() -> None:
        parent = parent_process()
        if parent is not None:
            wait_for_end([parent.sentinel])
            os._exit(1)

    Thread(target=watch, daemon=True).start()


@dataclass(frozen=True, slots=True)
class Addition:
    """What a worker would add to the store: the arguments of `ResultStore.add`."""

    part: str
    identity: str
    document: Document
    position: int
    status: str
    effort: Effort | None


class StagedStore(ResultStore):
    """Reads a job's store, and collects what is added for the process that may write it.

    Parameters
    ----------
    folder
        The folder of the job.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.additions: list[Addition] = []

    def add(
        self,
        part: str,
        identity: str,
        document: Document,
        *,
        position: int = 0,
        status: str = "",
        effort: Effort | None = None,
    ) -> None:
        """Collect one result."""
        self.additions.append(Addition(part, identity, document, position, status, effort))


def add_all(store: ResultStore, additions: list[Addition]) -> None:
    """Commit what a worker has collected.

    Parameters
    ----------
    store
        Where it belongs.
    additions
        What the worker's `StagedStore` has.
    """
    for item in additions:
        store.add(
            item.part, item.identity, item.document, position=item.position, status=item.status, effort=item.effort
        )
