"""Parquet files, read by a process of their own.

Some damaged files make pyarrow abort the process that reads them, which no Python code can catch. So a fresh
interpreter reads the file (`parquet_worker.py`) and sends plain data: lines of JSON through a pipe. It waits while
nobody reads them, so a file is streamed whatever its size, and is killed when the reader stops early. A line says that
the data are complete: when the process dies before, that is an error and not the end.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stockade.core.errors import DataError
from stockade.core.interpreter import interpreter_command
from stockade.core.parquet_worker import REPR

_MAGIC = (b"PAR1", b"PARE")
"""What parquet files end with, those with an encrypted footer as the second."""
_FROM_OUTSIDE = (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
_PIPE_BUFFER = 1 << 16
_ENVIRONMENT = {"ARROW_DEFAULT_MEMORY_POOL": "system", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
"""Without other allocators and more threads, which reserve far more address space than they use."""


class ParquetError(Exception):
    """Why a file cannot be read as parquet; whoever wanted it makes a sentence of that."""


@dataclass(frozen=True, slots=True)
class ParquetSchema:
    """The columns of a file, and the class names of those that record some."""

    columns: tuple[str, ...]
    class_names: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class OtherValue:
    """A cell that is no text, number or list: a date, bytes. It can be shown, but not used."""

    text: str

    def __repr__(self) -> str:
        return self.text


def read_schema(path: Path, name: str) -> ParquetSchema:
    """The columns of a parquet file.

    Parameters
    ----------
    path
        The file.
    name
        What errors call it.
    """
    with closing(_messages(path, name, None)) as messages:
        schema = next(messages)
    names = {column: tuple(labels) for column, labels in schema["class_names"].items()}
    return ParquetSchema(tuple(schema["columns"]), names)


def read_rows(path: Path, name: str, columns: Sequence[str]) -> Iterator[Sequence[object]]:
    """The cells of some columns of a parquet file, row by row.

    Parameters
    ----------
    path
        The file.
    name
        What errors call it.
    columns
        The columns, in the order of the cells.
    """
    with closing(_messages(path, name, columns)) as messages:
        for message in messages:
            yield from message["rows"]


def _messages(path: Path, name: str, columns: Sequence[str] | None) -> Generator[dict[str, Any], None, None]:
    """What the reading process says about a file, without the end and the errors."""
    _check_magic(path)
    process = _start(name)
    assert process.stdin is not None
    assert process.stdout is not None
    request = {"path": str(path), "name": name, "columns": None if columns is None else list(columns)}
    try:
        with suppress(BrokenPipeError), process.stdin as stream:
            stream.write(json.dumps(request).encode())
        for line in process.stdout:
            if not line.endswith(b"\n"):
                break
            message = _decode(line)
            if "end" in message:
                return
            if "refused" in message:
                raise DataError(message["refused"])
            if "broken" in message:
                raise ParquetError(message["broken"])
            yield message
        raise _died(process.wait(), name)
    finally:
        process.kill()
        process.stdout.close()
        process.wait()


def _check_magic(path: Path) -> None:
    """Refuse what is no parquet file at all, for which no process need be started."""
    try:
        with path.open("rb") as stream:
            stream.seek(max(0, stream.seek(0, os.SEEK_END) - 4))
            end = stream.read(4)
    except OSError as error:
        raise ParquetError(error.strerror or str(error)) from None
    if end not in _MAGIC:
        raise ParquetError("it does not end with PAR1")


def _start(name: str) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            interpreter_command("stockade.core.parquet_worker"),
            bufsize=_PIPE_BUFFER,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=None if os.environ.get("STOCKADE_TRACEBACK") else subprocess.DEVNULL,
            env={**os.environ, **_ENVIRONMENT},
            start_new_session=True,  # Ctrl-C is for this process, which ends that one
        )
    except OSError as error:
        raise DataError(
            f"No process can be started to read {name} ({error.strerror or error}). End other programs, then try again."
        ) from None


def _died(code: int, name: str) -> Exception:
    """The error for a process that ended before the end of the data."""
    if code >= 0:
        return ParquetError(f"the process that reads it ended with code {code}")
    try:
        reason = signal.Signals(-code).name
    except ValueError:
        reason = f"signal {-code}"
    if -code in _FROM_OUTSIDE:
        return DataError(
            f"The process that reads {name} was ended by {reason} before the last row, perhaps for want of memory. Run "
            "the same command again."
        )
    return ParquetError(f"it ends the process that reads it with {reason}")


def _decode(line: bytes) -> Any:
    try:
        return _DECODER.decode(line.decode("utf-8", "surrogatepass"))
    except RecursionError:
        raise ParquetError("a cell is nested too deeply") from None


def _value(item: dict[str, Any]) -> object:
    return OtherValue(item[REPR]) if item.keys() == {REPR} else item


_DECODER = json.JSONDecoder(object_hook=_value)
