"""One SQLite file of a run: opened with care, locked against other processes, checked before it is read.

Write-ahead logging makes each commit survive a killed process.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from stockade.core.errors import RunError


class Database:
    """A file and its connection. With `tables` it is written to, and a lock keeps other processes away."""

    def __init__(self, path: Path, schema: int, tables: str | None, made_by: str) -> None:
        self._path = path
        self._lock = _lock(path.parent) if tables is not None else None
        if tables is None and not path.exists():
            raise RunError(f"{path.parent} is not a run: it has no {path.name}. Make one with: {made_by}")
        with self._readable():
            self._connection = sqlite3.connect(path, isolation_level=None)
            if tables is not None:
                self._connection.execute("PRAGMA journal_mode=WAL")
                self._connection.execute("PRAGMA synchronous=NORMAL")
                self._connection.executescript(tables)
                self._connection.execute(f"PRAGMA user_version={schema}")
            version = self._connection.execute("PRAGMA user_version").fetchone()[0]
            problem = self._connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if problem != "ok":
            raise self._damaged(problem)
        if version != schema:
            raise RunError(f"{path} has format {version}; this version of Stockade reads format {schema}.")

    def close(self) -> None:
        self._connection.close()
        if self._lock is not None:
            self._lock.close()

    def rows(self, query: str, parameters: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
        with self._readable():
            yield from self._connection.execute(query, parameters)

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """All of what is done with the connection, or none of it."""
        with self._connection:
            self._connection.execute("BEGIN")
            yield self._connection

    @contextmanager
    def _readable(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.DatabaseError as error:
            raise self._damaged(error) from None

    def _damaged(self, reason: object) -> RunError:
        return RunError(
            f"{self._path} cannot be read ({reason}). Restore it from a copy, or start again with another --out; the "
            "folder of a single cell of an evaluation can be removed, and --resume makes it again."
        )


def _lock(folder: Path) -> Any:
    """An exclusive lock that the system releases when the process ends, however it ends."""
    try:
        import fcntl
    except ImportError:  # no such locks on this system: two processes on one run are then the user's care
        return None
    stream = (folder / "run.lock").open("w")
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        stream.close()
        raise RunError(f"Another process is working on {folder}. Wait for it to end, or use another --out.") from None
    return stream
