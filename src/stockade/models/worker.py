"""A Python model in a process of its own, with a time limit for each call.

A function that hangs cannot be stopped from within the process that called it. So a worker calls it: one that does not
answer in time is killed, and the next call starts another. What ends the worker (`os._exit`, a crash in native code)
costs only that call. A reference `python:…` is imported in the worker, a fresh interpreter; an object that lives here
is reached by a fork of this process.

Messages are JSON, so that a worker can send nothing but data. What the model prints goes to standard error.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from stockade.core.errors import ModelError, ModelGone, NoAnswer
from stockade.core.interpreter import interpreter_command
from stockade.core.protocols import Classifier, Probabilities, is_label_only
from stockade.core.text import TextInput
from stockade.models.adapters import LoadOptions

_LOADING_SECONDS = 600.0
"""How long a worker may take to import the model; its calls have the user's limit."""
_MOST_IN_A_ROW = 20
"""After so many calls in a row without an answer the model is given up: no batch is halved so often for one text."""
_PROBE = "a plain sentence"


@dataclass(slots=True)
class Worker:
    """A running worker: how to talk to it, and its process."""

    connection: Connection
    pid: int

    def call(self, message: object, seconds: float) -> Any:
        """Its answer to a message; raises if there is none in time, or the worker has ended."""
        try:
            self.connection.send_bytes(json.dumps(message).encode())
            if not self.connection.poll(seconds):
                raise NoAnswer(f"The model did not answer within {seconds:g} s.")
            return json.loads(self.connection.recv_bytes())
        except (EOFError, OSError):
            raise NoAnswer("The model ended the process that it ran in.") from None

    def stop(self) -> None:
        """Kill the process, whatever it is doing."""
        self.connection.close()
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, 0)


class WorkerClassifier:
    """A Python model that is asked in another process.

    Parameters
    ----------
    start
        Starts a worker.
    seconds
        How long a call may take.
    """

    def __init__(self, start: Callable[[], Worker], seconds: float) -> None:
        self._start, self._seconds = start, seconds
        self._worker: Worker | None = None
        self._owner = os.getpid()
        self._in_a_row = 0
        described = self._running().call({"describe": True}, _LOADING_SECONDS)
        if "error" in described:
            self.close()
            raise ModelError(described["error"])
        self.deterministic: bool = described["deterministic"]
        self.label_only: bool = described["label_only"]
        self._fingerprint: str | None = described["fingerprint"]
        self._labels: tuple[str, ...] | None = None if described["labels"] is None else tuple(described["labels"])

    @property
    def labels(self) -> tuple[str, ...]:
        """The class names in column order; learnt by a call with one short text when nothing states them."""
        if self._labels is None:
            self.predict_proba([_PROBE])
        assert self._labels is not None
        return self._labels

    def predict_proba(self, inputs: Sequence[TextInput]) -> Probabilities:
        """The model's answer, checked in the worker."""
        try:
            answer = self._running().call({"texts": list(inputs)}, self._seconds)
        except NoAnswer as problem:
            self.close()
            self._in_a_row += 1
            if self._in_a_row >= _MOST_IN_A_ROW:
                raise ModelGone(
                    f"{problem} So it went with {self._in_a_row} calls in a row. Look at the model, or allow more time "
                    "with --timeout. What is finished is kept."
                ) from None
            raise
        self._in_a_row = 0
        if "error" in answer:
            raise (ModelError if answer["is_model_error"] else RuntimeError)(answer["error"])
        self._labels = tuple(answer["labels"])
        return np.array(answer["rows"], dtype=np.float64).reshape(len(inputs), len(self._labels))

    def fingerprint(self) -> str | None:
        """The fingerprint of the model in the worker."""
        return self._fingerprint

    def close(self) -> None:
        """End the worker; the next call starts another."""
        if self._worker is not None and self._owner == os.getpid():
            self._worker.stop()
        self._worker = None

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.close()

    def _running(self) -> Worker:
        if self._worker is None:
            self._worker = self._start()
            self._worker.call({"describe": True}, _LOADING_SECONDS)  # the limit of a call is not for the import
        return self._worker


def in_worker(model: object, options: LoadOptions, load: Callable[[], Classifier]) -> WorkerClassifier:
    """A Python model in a worker.

    Parameters
    ----------
    model
        A reference `python:…`, or the object.
    options
        How it is loaded; its `timeout` is the limit of a call.
    load
        Makes the classifier of an object that is here already.
    """
    assert options.timeout is not None
    if isinstance(model, str | Path):
        plain = replace(options, timeout=None, labels=None if options.labels is None else list(options.labels))
        return WorkerClassifier(lambda: _fresh(str(model), plain), options.timeout)
    if not hasattr(os, "fork"):
        raise ModelError(
            "A time limit for a Python object needs a system that can fork: name the model as "
            "python:package.module:attribute instead."
        )
    classifier = load()
    return WorkerClassifier(lambda: _forked(classifier), options.timeout)


def _fresh(reference: str, options: LoadOptions) -> Worker:
    """A worker that imports the model itself, with the import path of this process."""
    ours, its = socket.socketpair()
    process = subprocess.Popen(
        interpreter_command("stockade.models.worker", str(its.fileno()), reference, json.dumps(asdict(options))),
        stdin=subprocess.DEVNULL,
        stdout=2,
        pass_fds=[its.fileno()],
    )
    its.close()
    process.returncode = 0  # the worker is waited for by its number
    return Worker(Connection(ours.detach()), process.pid)


def main() -> None:
    """What a fresh worker runs: import the model, then answer."""
    number, reference, options = sys.argv[1:]
    connection = Connection(int(number))

    def load() -> Classifier:
        from stockade.models.adapters import load_with

        return load_with(reference, LoadOptions(**json.loads(options)))

    serve(connection, load)


def _forked(classifier: Classifier) -> Worker:
    """A copy of this process that answers with a model that lives in it."""
    ours, its = socket.socketpair()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads, which the child does not use
        pid = os.fork()
    if pid:
        its.close()
        return Worker(Connection(ours.detach()), pid)
    try:
        ours.close()
        os.dup2(2, 1)
        if "torch" in sys.modules:  # its threads do not survive a fork
            sys.modules["torch"].set_num_threads(1)
        serve(Connection(its.detach()), lambda: classifier)
    finally:
        os._exit(0)


def serve(connection: Connection, load: Callable[[], Classifier]) -> None:
    """Answer until nobody asks any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that asks
    classifier: Classifier | None = None
    while True:
        try:
            message = json.loads(connection.recv_bytes())
        except EOFError:
            return
        try:
            classifier = classifier or load()
            answer = _described(classifier) if "describe" in message else _answered(classifier, message["texts"])
        except (Exception, SystemExit) as error:
            reason = str(error) if isinstance(error, ModelError) else f"{type(error).__name__}: {error}".rstrip(": ")
            answer = {"error": reason, "is_model_error": isinstance(error, ModelError)}
        connection.send_bytes(json.dumps(answer).encode())


def _described(classifier: Classifier) -> dict[str, Any]:
    """What can be said of a model without asking it."""
    stated = classifier.stated_labels if hasattr(classifier, "stated_labels") else classifier.labels
    fingerprint = getattr(classifier, "fingerprint", None)
    return {
        "labels": None if stated is None else list(stated),
        "deterministic": classifier.deterministic,
        "label_only": is_label_only(classifier),
        "fingerprint": fingerprint() if callable(fingerprint) else None,
    }


def _answered(classifier: Classifier, texts: Sequence[Any]) -> dict[str, Any]:
    inputs = [text if isinstance(text, str) else tuple(text) for text in texts]
    rows = classifier.predict_proba(inputs)
    return {"rows": np.asarray(rows, dtype=np.float64).tolist(), "labels": list(classifier.labels)}
