"""Workers as processes of this machine: fresh interpreters at the other end of a pipe."""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

from stockade.core.errors import StockadeError
from stockade.core.trust import Trust, current_trust, with_trust
from stockade.experiment.processes import end_with_parent
from stockade.scale.leases import Died, Failed, Found, Key, Message, Ready, Work

_SECONDS_TO_END = 5.0


class LocalCarrier:
    """Starts workers here, each on its share of the cores."""

    def __init__(self, workers: int) -> None:
        self._threads = max(1, (os.cpu_count() or 1) // workers)
        self._context = get_context("spawn")
        self._workers: dict[int, tuple[BaseProcess, Connection]] = {}

    def start(self, worker: int, work: Work) -> None:
        ours, theirs = self._context.Pipe()
        arguments = (theirs, pickle.dumps(work), current_trust(), self._threads)
        process = self._context.Process(target=serve, args=arguments, daemon=True, name=f"stockade-worker-{worker}")
        process.start()
        theirs.close()  # so that the end of the worker is the end of the pipe
        self._workers[worker] = process, ours

    def lease(self, worker: int, items: Sequence[Any]) -> None:
        with contextlib.suppress(OSError):  # it has just ended, which its pipe will tell
            self._workers[worker][1].send(list(items))

    def messages(self, seconds: float) -> Iterable[tuple[int, Message]]:
        numbers = {connection: worker for worker, (_, connection) in self._workers.items()}
        for connection in wait(list(numbers), seconds):
            assert isinstance(connection, Connection)
            worker = numbers[connection]
            try:
                yield worker, connection.recv()
            except (EOFError, OSError):
                yield worker, Died(self._ended(worker))

    def _ended(self, worker: int) -> str:
        process, connection = self._workers.pop(worker)
        connection.close()
        process.join(_SECONDS_TO_END)
        code = process.exitcode
        if code is not None and code < 0:
            return f"the worker process was killed by signal {-code}"
        return f"the worker process ended with exit code {code}"

    def stop(self) -> None:
        for process, connection in self._workers.values():
            connection.close()
            process.terminate()
        for process, _ in self._workers.values():
            process.join(_SECONDS_TO_END)
            if process.is_alive():
                process.kill()
        self._workers = {}


def serve(connection: Connection, packed: bytes, trust: Trust, threads: int) -> None:
    """In a worker: open the work, then finish leases until nobody is there to give one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that writes
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.dup2(2, 1)  # what a model prints is no output of the job
    end_with_parent()
    with_trust(trust)
    limit_threads(threads)
    try:
        run = pickle.loads(packed).open()
        connection.send(Ready())
        while True:
            for message in finish_lease(run, connection.recv()):
                connection.send(message)
    except (EOFError, BrokenPipeError):
        return
    except Exception as error:
        with contextlib.suppress(OSError):
            connection.send(Failed(portable(error)))


def finish_lease(
    run: Callable[[Sequence[Any]], Iterator[tuple[Key, Any]]], items: Sequence[Any]
) -> Iterator[Found | Ready]:
    """What a worker says while it finishes a lease."""
    for key, value in run(items):
        yield Found(key, value)
    yield Ready()


def limit_threads(threads: int) -> None:
    """Compute on so many threads, wherever torch is used."""
    os.environ["OMP_NUM_THREADS"] = str(threads)
    import torch

    torch.set_num_threads(threads)


def portable(error: Exception) -> Exception:
    """An error as another process can read it: ours as they are, others as text."""
    if isinstance(error, StockadeError):
        with contextlib.suppress(Exception):
            return error if isinstance(pickle.loads(pickle.dumps(error)), StockadeError) else RuntimeError(str(error))
    return RuntimeError(f"{type(error).__name__}: {error}")
