"""One generic SQLite store of results: JSON documents by part and id, each committed as it is found.

A part is an attack, a method, "trials", whatever a job repeats over texts. Write-ahead logging makes each commit
survive a killed process. Texts are stored as ASCII-escaped JSON so that even lone surrogates come back as they were.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar
from urllib.parse import quote

from pydantic import ValidationError

from stockade.core.errors import RunError
from stockade.core.files import replace_file
from stockade.experiment.integrity import digest_rows

FILE_NAME = "run.sqlite"
SCHEMA = 2
_TABLES = """
CREATE TABLE IF NOT EXISTS results (
    part TEXT NOT NULL, id TEXT NOT NULL, position INTEGER NOT NULL, status TEXT NOT NULL, document TEXT NOT NULL,
    PRIMARY KEY (part, id));
CREATE TABLE IF NOT EXISTS effort (
    part TEXT NOT NULL, session INTEGER NOT NULL, seconds REAL NOT NULL, model_seconds REAL NOT NULL,
    model_rows INTEGER NOT NULL, PRIMARY KEY (part, session));
"""
LONGEST_DOCUMENT = 1 << 28
"""The most bytes of one stored result: more than any text that can be attacked takes."""
Value = TypeVar("Value")
Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Effort:
    """What a part has cost: wall seconds, seconds inside the model, rows the model computed."""

    seconds: float = 0.0
    model_seconds: float = 0.0
    model_rows: int = 0


@dataclass(frozen=True, slots=True)
class StoredRow:
    """One result as the store has it, with the columns beside its document."""

    id: str
    position: int
    status: str
    document: Document


@dataclass(frozen=True, slots=True)
class Codec(Generic[Value]):
    """How a kind of results becomes a JSON document and comes back."""

    encode: Callable[[Value], Document]
    decode: Callable[[Document], Value]

    def read(self, document: Document) -> Value:
        """The result in a document; a document that holds something else is a `RunError`."""
        try:
            return self.decode(document)
        except ValidationError as error:
            first = error.errors()[0]
            reason = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            reason = repr(error)
        raise RunError(f"A result of this run cannot be read ({reason}). Restore it from a copy.")


class ResultStore:
    """Reads and writes the results of one job, over one connection.

    Parameters
    ----------
    folder
        The folder of the job.
    writable
        Make the tables if they are missing and allow `add`. The workspace holds the lock that keeps others away.
    """

    def __init__(self, folder: Path, *, writable: bool = False) -> None:
        self._path = folder / FILE_NAME
        self._copy: tempfile.TemporaryDirectory[str] | None = None
        if not writable and not self._path.exists():
            raise RunError(f"{folder} has no results: it has no {FILE_NAME}. The job was interrupted before its first.")
        self._refuse_strangers()
        with self._readable():
            if writable and not self._path.exists():
                self._create()
            self._connection = self._connect(writable)
            version = self._connection.execute("PRAGMA user_version").fetchone()[0]
            if version != SCHEMA:
                self._connection.close()
                raise other_format(self._path, version)
            self._check_schema()
            if writable:
                self._connection.execute("PRAGMA synchronous=NORMAL")
            problem = self._connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if problem != "ok":
            raise self._damaged(problem)
        self._session: int | None = None

    def _create(self) -> None:
        """Make the tables in a file of another name first: a job that is killed meanwhile leaves no half of one."""

        def write(path: Path) -> None:
            with closing(sqlite3.connect(path, isolation_level=None)) as connection:
                connection.execute("PRAGMA journal_mode=WAL")
                connection.executescript(_TABLES)
                connection.execute(f"PRAGMA user_version={SCHEMA}")

        try:
            replace_file(self._path, write)
        except OSError as error:
            raise RunError(f"{self._path} cannot be written ({error.strerror or error}).") from None

    def _connect(self, writable: bool) -> sqlite3.Connection:
        """A connection that runs nothing the file brings, and that reads where nothing can be written, too."""
        path, mode = self._path, "rw"  # not "ro": the last reader of a write-ahead log tidies it away
        if not writable and not (os.access(path.parent, os.W_OK) and os.access(path, os.W_OK)):
            path, mode = self._beside_its_log(), "ro&immutable=1"
        connection = sqlite3.connect(f"file:{quote(str(path.absolute()))}?mode={mode}", uri=True, isolation_level=None)
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST_DOCUMENT)
        for pragma in ("trusted_schema=OFF", "cell_size_check=ON", *(() if writable else ("query_only=ON",))):
            connection.execute(f"PRAGMA {pragma}")
        return connection

    def _beside_its_log(self) -> Path:
        """A file that can be opened without writing beside it: the store itself, or a copy where it has a log."""
        log = self._path.with_name(f"{FILE_NAME}-wal")
        if not log.exists() or log.stat().st_size == 0:
            return self._path
        self._copy = tempfile.TemporaryDirectory(prefix="stockade-")
        copy = Path(self._copy.name) / FILE_NAME
        shutil.copyfile(self._path, copy)
        shutil.copyfile(log, copy.with_name(log.name))
        with closing(sqlite3.connect(copy)) as connection:  # takes the log into the copy
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return copy

    def _refuse_strangers(self) -> None:
        """Refuse files that no job of ours leaves: links to elsewhere, and journals, which name files to delete."""
        for suffix in ("", "-wal", "-shm"):
            path = self._path.with_name(FILE_NAME + suffix)
            if path.is_symlink():
                raise RunError(f"{path} is a link to another place, which no run has. Put the file itself there.")
        journal = self._path.with_name(f"{FILE_NAME}-journal")
        if journal.exists() or journal.is_symlink():
            raise RunError(
                f"{journal} is the rollback journal of another program, or the job was killed before its first result. "
                "Remove it and run.sqlite, or start again with another folder."
            )

    def _check_schema(self) -> None:
        """Refuse a file with anything but our two tables: a view, a trigger or a virtual table could run for ever."""
        schema = self._connection.execute("SELECT type, name, sql FROM sqlite_master").fetchall()
        for kind, name, sql in schema:
            automatic = kind == "index" and str(name).startswith("sqlite_autoindex_") and sql is None
            if not automatic and (kind != "table" or _SCHEMA_OF.get(str(name)) != _plain_sql(str(sql))):
                raise self._damaged(f"it has a {kind} {name} that Stockade did not make")

    def settle(self) -> None:
        """Bring everything into the one file, so that it can be copied alone."""
        with suppress(sqlite3.OperationalError):  # somebody is still reading: nothing is lost, the log file stays
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()
        if self._copy is not None:
            self._copy.cleanup()

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
        """Commit one result, together with what its part has cost so far in this session."""
        row = (part, identity, position, status, json.dumps(document))
        session = self.session
        with self._transaction() as connection:
            connection.execute("INSERT OR REPLACE INTO results VALUES (?, ?, ?, ?, ?)", row)
            if effort is not None:
                cost = (part, session, effort.seconds, effort.model_seconds, effort.model_rows)
                connection.execute("INSERT OR REPLACE INTO effort VALUES (?, ?, ?, ?, ?)", cost)

    def replace(self, part: str, documents: Iterable[tuple[str, Document]]) -> None:
        """Replace the documents of results that exist already, by id."""
        rows = [(json.dumps(document), part, identity) for identity, document in documents]
        with self._transaction() as connection:
            connection.executemany("UPDATE results SET document = ? WHERE part = ? AND id = ?", rows)

    def parts(self) -> list[str]:
        """The parts in the order in which they were begun."""
        query = "SELECT part FROM results GROUP BY part ORDER BY MIN(rowid)"
        return [row[0] for row in self._rows(query)]

    def ids(self, part: str) -> set[str]:
        """The ids that a part has a result for."""
        return {row[0] for row in self._rows("SELECT id FROM results WHERE part = ?", (part,))}

    def get(self, part: str, identity: str) -> Document | None:
        """One document, if there is one."""
        query = "SELECT document FROM results WHERE part = ? AND id = ?"
        return next((self._document(row[0]) for row in self._rows(query, (part, identity))), None)

    def documents(self, part: str | None = None, status: str | None = None) -> Iterator[Document]:
        """The documents, part by part in the order they were begun, each in the order of the data."""
        for name in self.parts() if part is None else [part]:
            where, values = ("", (name,)) if status is None else (" AND status = ?", (name, status))
            query = f"SELECT document FROM results WHERE part = ?{where} ORDER BY position, id"
            for row in self._rows(query, values):
                yield self._document(row[0])

    def rows(self, part: str) -> Iterator[StoredRow]:
        """The rows of a part as they are stored, in the order of the data."""
        query = "SELECT id, position, status, document FROM results WHERE part = ? ORDER BY position, id"
        for identity, position, status, document in self._rows(query, (part,)):
            try:
                yield StoredRow(identity, position, status, json.loads(document))
            except (ValueError, TypeError) as error:
                raise self._damaged(error) from None

    def digest(self) -> str:
        """A hash of all results, but not of what they cost: a run that is repeated has the same."""
        query = "SELECT part, id, position, status, document FROM results ORDER BY part, position, id"
        return digest_rows(self._rows(query))

    def effort(self, part: str) -> Effort:
        """What a part has cost, over all sessions of an interrupted and resumed job."""
        query = "SELECT TOTAL(seconds), TOTAL(model_seconds), TOTAL(model_rows) FROM effort WHERE part = ?"
        ((seconds, model_seconds, model_rows),) = self._rows(query, (part,))
        return Effort(seconds, model_seconds, int(model_rows))

    @property
    def session(self) -> int:
        """The number of this session: 0 for a new job, one more after each interruption."""
        if self._session is None:
            self._session = int(next(self._rows("SELECT COALESCE(MAX(session), -1) + 1 FROM effort"))[0])
        return self._session

    def _document(self, text: str | bytes) -> Document:
        try:
            document = json.loads(text)
        except (ValueError, TypeError, RecursionError) as error:
            raise self._damaged(error) from None
        if not isinstance(document, dict):
            raise self._damaged(f"a result is {type(document).__name__}, expected an object")
        return document

    def _rows(self, query: str, values: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
        with self._readable():
            yield from self._connection.execute(query, values)

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
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
            f"{self._path} cannot be read ({reason}). Restore it from a copy, or start again with another folder; the "
            "folder of a single cell of an evaluation can be removed, and a resume makes it again."
        )


def _plain_sql(sql: str) -> str:
    return " ".join(sql.replace("IF NOT EXISTS ", "").split())


_SCHEMA_OF = {
    statement.split("(")[0].split()[-1]: _plain_sql(statement) for statement in _TABLES.split(";") if statement.strip()
}
"""The definition of each table, as SQLite keeps it."""


def other_format(path: Path, version: object) -> RunError:
    """The error for a file of another version of Stockade."""
    return RunError(
        f"{path} has format {version}; this version of Stockade reads format {SCHEMA}. Read it with the version that "
        "wrote it, or make the run again."
    )
