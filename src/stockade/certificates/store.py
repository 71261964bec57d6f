"""A run's certificates in SQLite: one row per text and method, committed as it is found."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from stockade.certificates.certificate import Certificate, described, from_description
from stockade.core.errors import RunError
from stockade.runs.database import Database

FILE_NAME = "certificates.sqlite"
SCHEMA = 1
_TABLES = """
CREATE TABLE IF NOT EXISTS certificates (
    method TEXT NOT NULL, id TEXT NOT NULL, position INTEGER NOT NULL, status TEXT NOT NULL,
    certificate TEXT NOT NULL, PRIMARY KEY (method, id));
CREATE TABLE IF NOT EXISTS effort (
    method TEXT NOT NULL, part INTEGER NOT NULL, seconds REAL NOT NULL, rows INTEGER NOT NULL,
    PRIMARY KEY (method, part));
"""


class CertificateStore:
    """Reads and writes one run's certificates. Use it as a context manager, or close it."""

    def __init__(self, folder: Path, *, writable: bool = False) -> None:
        self._database = Database(
            folder / FILE_NAME, SCHEMA, _TABLES if writable else None, "stockade certify MODEL DATA --out …"
        )

    def __enter__(self) -> CertificateStore:
        return self

    def __exit__(self, *_: object) -> None:
        self._database.close()

    def add(self, certificate: Certificate, position: int, part: int, seconds: float, rows: int) -> None:
        """Commit one certificate together with what the method has cost so far in this part of the run."""
        told = json.dumps(described(certificate))
        row = (certificate.method, certificate.id, position, certificate.status, told)
        with self._database.transaction() as connection:
            connection.execute("INSERT OR REPLACE INTO certificates VALUES (?, ?, ?, ?, ?)", row)
            connection.execute(
                "INSERT OR REPLACE INTO effort VALUES (?, ?, ?, ?)", (certificate.method, part, seconds, rows)
            )

    def finished_ids(self, method: str) -> set[str]:
        return {row[0] for row in self._database.rows("SELECT id FROM certificates WHERE method = ?", (method,))}

    def certificates(self, method: str | None = None) -> Iterator[Certificate]:
        """Method by method in the order they ran, texts in the order of the data."""
        order = "SELECT method FROM certificates GROUP BY method ORDER BY MIN(rowid)"
        for name in [method] if method is not None else [row[0] for row in self._database.rows(order)]:
            query = "SELECT certificate FROM certificates WHERE method = ? ORDER BY position"
            for (told,) in self._database.rows(query, (name,)):
                yield _read(told)

    def effort(self, method: str) -> tuple[float, int]:
        """Seconds and rows that the method took, over all parts of an interrupted and resumed run."""
        query = "SELECT TOTAL(seconds), TOTAL(rows) FROM effort WHERE method = ?"
        ((seconds, rows),) = self._database.rows(query, (method,))
        return seconds, int(rows)

    def next_part(self) -> int:
        return int(next(self._database.rows("SELECT COALESCE(MAX(part), -1) + 1 FROM effort"))[0])


def _read(told: str) -> Certificate:
    try:
        return from_description(json.loads(told))
    except (ValueError, KeyError, TypeError) as error:
        raise RunError(f"A certificate of this run cannot be read ({error!r}). Restore it from a copy.") from None
