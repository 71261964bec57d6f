"""The run's results in SQLite: one row per example and attack, committed as it finishes.

Write-ahead logging makes each commit survive a killed process; texts are stored as ASCII-escaped JSON so that even
lone surrogates come back as they were. A lock keeps two processes from working on the same run.
"""

from __future__ import annotations

import dataclasses
import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from stockade.core.errors import RunError
from stockade.core.records import Record, Status
from stockade.core.text import Edit

FILE_NAME = "run.sqlite"
SCHEMA = 1
_TABLES = """
CREATE TABLE IF NOT EXISTS results (
    attack TEXT NOT NULL, id TEXT NOT NULL, position INTEGER NOT NULL, status TEXT NOT NULL,
    similarity REAL, record TEXT NOT NULL, PRIMARY KEY (attack, id));
CREATE TABLE IF NOT EXISTS effort (
    attack TEXT NOT NULL, part INTEGER NOT NULL, seconds REAL NOT NULL, model_seconds REAL NOT NULL, model_rows
    INTEGER NOT NULL, PRIMARY KEY (attack, part));
"""
_FIELDS = tuple(field.name for field in dataclasses.fields(Record) if field.name != "similarity")


@dataclasses.dataclass(frozen=True, slots=True)
class Effort:
    """What an attack has cost so far: wall seconds, seconds inside the model, rows the model computed."""

    seconds: float = 0.0
    model_seconds: float = 0.0
    model_rows: int = 0


class Store:
    """Reads and writes one run's results. Use it as a context manager, or close it."""

    def __init__(self, folder: Path, *, writable: bool = False) -> None:
        self._path = folder / FILE_NAME
        self._lock = _lock(folder) if writable else None
        if not writable and not self._path.exists():
            raise RunError(
                f"{folder} is not a run: it has no {FILE_NAME}. Make one with: stockade attack MODEL DATA --out …"
            )
        with self._readable():
            self._connection = sqlite3.connect(self._path, isolation_level=None)
            if writable:
                self._connection.execute("PRAGMA journal_mode=WAL")
                self._connection.execute("PRAGMA synchronous=NORMAL")
                self._connection.executescript(_TABLES)
                self._connection.execute(f"PRAGMA user_version={SCHEMA}")
            version = self._connection.execute("PRAGMA user_version").fetchone()[0]
            problem = self._connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if problem != "ok":
            raise RunError(
                f"{self._path} is damaged ({problem}). Restore it from a copy, or start again with another --out."
            )
        if version != SCHEMA:
            raise RunError(f"{self._path} has format {version}; this version of Stockade reads format {SCHEMA}.")

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._connection.close()
        if self._lock is not None:
            self._lock.close()

    @contextmanager
    def _readable(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.DatabaseError as error:
            raise RunError(
                f"{self._path} cannot be read ({error}). Restore it from a copy, or start again with another --out."
            ) from None

    def add(self, record: Record, position: int, part: int, effort: Effort) -> None:
        """Commit one finished example together with what the attack has cost so far in this part of the run."""
        row = (record.attack, record.id, position, record.status, record.similarity, _to_json(record))
        with self._connection:
            self._connection.execute("BEGIN")
            self._connection.execute("INSERT OR REPLACE INTO results VALUES (?, ?, ?, ?, ?, ?)", row)
            self._connection.execute(
                "INSERT OR REPLACE INTO effort VALUES (?, ?, ?, ?, ?)",
                (record.attack, part, effort.seconds, effort.model_seconds, effort.model_rows),
            )

    def set_similarities(self, attack: str, similarities: Iterable[tuple[str, float]]) -> None:
        with self._connection:
            self._connection.execute("BEGIN")
            self._connection.executemany(
                "UPDATE results SET similarity = ? WHERE attack = ? AND id = ?",
                [(similarity, attack, example) for example, similarity in similarities],
            )

    def finished_ids(self, attack: str) -> set[str]:
        return {row[0] for row in self._connection.execute("SELECT id FROM results WHERE attack = ?", (attack,))}

    def unmeasured(self, attack: str) -> list[Record]:
        """The successes whose similarity is not known yet."""
        return list(
            self._select("WHERE attack = ? AND status = 'success' AND similarity IS NULL ORDER BY position", (attack,))
        )

    def records(self, attack: str | None = None, status: Status | None = None) -> Iterator[Record]:
        """The results, attack by attack in the order they ran, examples in the order of the data."""
        query = "SELECT attack FROM results GROUP BY attack ORDER BY MIN(rowid)"
        names = [attack] if attack is not None else [row[0] for row in self._connection.execute(query)]
        for name in names:
            if status is None:
                yield from self._select("WHERE attack = ? ORDER BY position", (name,))
            else:
                yield from self._select("WHERE attack = ? AND status = ? ORDER BY position", (name, status))

    def effort(self, attack: str) -> Effort:
        """What the attack cost, over all parts of an interrupted and resumed run."""
        row = self._connection.execute(
            "SELECT TOTAL(seconds), TOTAL(model_seconds), TOTAL(model_rows) FROM effort WHERE attack = ?", (attack,)
        ).fetchone()
        return Effort(row[0], row[1], int(row[2]))

    def next_part(self) -> int:
        """The number of this part of the run: 0 for a new run, one more after each interruption."""
        return int(self._connection.execute("SELECT COALESCE(MAX(part), -1) + 1 FROM effort").fetchone()[0])

    def _select(self, where: str, parameters: tuple[Any, ...]) -> Iterator[Record]:
        with self._readable():
            cursor = self._connection.execute(f"SELECT record, similarity FROM results {where}", parameters)
            for text, similarity in cursor:
                yield _from_json(text, similarity)


def _to_json(record: Record) -> str:
    fields = {name: getattr(record, name) for name in _FIELDS}
    fields["edits"] = [{"op": e.op, "index": e.index, "before": e.before, "after": e.after} for e in record.edits]
    return json.dumps(fields)


def _from_json(text: str, similarity: float | None) -> Record:
    fields = json.loads(text)
    fields["edits"] = tuple(Edit(**edit) for edit in fields["edits"])
    for name in ("original_scores", "adversarial_scores"):
        if fields[name] is not None:
            fields[name] = tuple(fields[name])
    return Record(**fields, similarity=similarity)


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
