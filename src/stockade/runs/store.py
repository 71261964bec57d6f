"""The run's results in SQLite: one row per example and attack, committed as it finishes.

Texts are stored as ASCII-escaped JSON so that even lone surrogates come back as they were.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from stockade.core.records import FORMER_NAMES, Record, Status
from stockade.core.text import Edit
from stockade.runs.database import Database

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
        tables = _TABLES if writable else None
        self._database = Database(folder / FILE_NAME, SCHEMA, tables, "stockade attack MODEL DATA --out …")

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._database.close()

    def add(self, record: Record, position: int, part: int, effort: Effort) -> None:
        """Commit one finished example together with what the attack has cost so far in this part of the run."""
        row = (record.attack, record.id, position, record.status, record.similarity, _to_json(record))
        with self._database.transaction() as connection:
            connection.execute("INSERT OR REPLACE INTO results VALUES (?, ?, ?, ?, ?, ?)", row)
            connection.execute(
                "INSERT OR REPLACE INTO effort VALUES (?, ?, ?, ?, ?)",
                (record.attack, part, effort.seconds, effort.model_seconds, effort.model_rows),
            )

    def set_similarities(self, attack: str, similarities: Iterable[tuple[str, float]]) -> None:
        with self._database.transaction() as connection:
            connection.executemany(
                "UPDATE results SET similarity = ? WHERE attack = ? AND id = ?",
                [(similarity, attack, example) for example, similarity in similarities],
            )

    def finished_ids(self, attack: str) -> set[str]:
        return {row[0] for row in self._database.rows("SELECT id FROM results WHERE attack = ?", (attack,))}

    def unmeasured(self, attack: str) -> list[Record]:
        """The successes whose similarity is not known yet."""
        return list(
            self._select("WHERE attack = ? AND status = 'success' AND similarity IS NULL ORDER BY position", (attack,))
        )

    def records(self, attack: str | None = None, status: Status | None = None) -> Iterator[Record]:
        """The results, attack by attack in the order they ran, examples in the order of the data."""
        query = "SELECT attack FROM results GROUP BY attack ORDER BY MIN(rowid)"
        names = [attack] if attack is not None else [row[0] for row in self._database.rows(query)]
        for name in names:
            if status is None:
                yield from self._select("WHERE attack = ? ORDER BY position", (name,))
            else:
                yield from self._select("WHERE attack = ? AND status = ? ORDER BY position", (name, status))

    def effort(self, attack: str) -> Effort:
        """What the attack cost, over all parts of an interrupted and resumed run."""
        query = "SELECT TOTAL(seconds), TOTAL(model_seconds), TOTAL(model_rows) FROM effort WHERE attack = ?"
        ((seconds, model_seconds, model_rows),) = self._database.rows(query, (attack,))
        return Effort(seconds, model_seconds, int(model_rows))

    def next_part(self) -> int:
        """The number of this part of the run: 0 for a new run, one more after each interruption."""
        return int(next(self._database.rows("SELECT COALESCE(MAX(part), -1) + 1 FROM effort"))[0])

    def _select(self, where: str, parameters: tuple[Any, ...]) -> Iterator[Record]:
        for text, similarity in self._database.rows(f"SELECT record, similarity FROM results {where}", parameters):
            yield _from_json(text, similarity)


def _to_json(record: Record) -> str:
    fields = {name: getattr(record, name) for name in _FIELDS}
    fields["edits"] = [{"op": e.op, "index": e.index, "before": e.before, "after": e.after} for e in record.edits]
    return json.dumps(fields)


def _from_json(text: str, similarity: float | None) -> Record:
    fields = {FORMER_NAMES.get(name, name): value for name, value in json.loads(text).items()}
    fields["edits"] = tuple(Edit(**edit) for edit in fields["edits"])
    for name in ("original_scores", "adversarial_scores"):
        if fields[name] is not None:
            fields[name] = tuple(fields[name])
    return Record(**fields, similarity=similarity)
