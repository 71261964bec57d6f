"""The grid of an evaluation as its folder holds it: answers and cells in the store, a run folder for each cell."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from stockade.core.errors import RunError
from stockade.experiment.inputs import unique_names
from stockade.experiment.result import SUMMARY
from stockade.experiment.store import ResultStore
from stockade.experiment.workspace import MANIFEST, Manifest
from stockade.workflows.attack.result import AttackResult
from stockade.workflows.evaluate.analysis import Failure
from stockade.workflows.evaluate.answers import CODEC, Answers
from stockade.workflows.evaluate.outcomes import CELL_CODEC, Cell, GridRow

ANSWERS, CELLS = "answers", "cells"
"""The parts of the store: what rows say of clean and pre-made texts, and what became of the texts of each cell."""
_REASON = "reason"
"""Stands in place of answers or statuses that could not be had."""
_LONGEST_FOLDER = 60


class CellKey(NamedTuple):
    """Which cell: what is attacked, with what, what the attack sees of it, and with which seed."""

    model: str
    defense: str
    attack: str
    view: str
    seed: int

    def __str__(self) -> str:
        return f"{self.model}, {self.defense}: {self.attack}, {self.view}, seed {self.seed}"


class Grid:
    """Reads and writes the parts of a grid.

    Parameters
    ----------
    folder, manifest, store
        Of the evaluation.

    `places` are the rows, each a model and a defense: what a folder records is a row of that folder's model alone.
    """

    def __init__(self, folder: Path, manifest: Manifest, store: ResultStore) -> None:
        self._folder, self._store = folder, store
        spec = manifest.spec
        self.models: tuple[str, ...] = tuple(manifest.inputs["models"])
        self.defenses: tuple[str, ...] = tuple(chain["key"] for chain in spec["defenses"])
        from_folder = {chain["key"] for chain in spec["defenses"] if chain["defenses"] is None}
        self.places: tuple[tuple[str, str], ...] = tuple(
            (model, defense)
            for model, described in manifest.inputs["models"].items()
            for defense in self.defenses
            if defense not in from_folder or described.get("records_defense", True)
        )
        self.attacks: tuple[str, ...] = tuple(attack["key"] for attack in spec["attacks"])
        self.seeds: tuple[int, ...] = tuple(range(spec["seed"], spec["seed"] + spec["seeds"]))
        self._defense_folders = dict(zip(self.defenses, folder_names(self.defenses), strict=True))
        self._attack_folders = dict(zip(self.attacks, folder_names(self.attacks), strict=True))

    def answers(self, model: str, defense: str, seed: int) -> Answers | None:
        """What a row says of the clean and pre-made texts, if it could be asked."""
        document = self._store.get(ANSWERS, _identity(model, defense, seed))
        return None if document is None or _REASON in document else CODEC.read(document)

    def add_answers(self, model: str, defense: str, seed: int, answers: Answers | str) -> None:
        """Keep what a row says, or why it cannot be asked."""
        document = {_REASON: answers} if isinstance(answers, str) else CODEC.encode(answers)
        self._add(ANSWERS, _identity(model, defense, seed), document)

    def cell(self, key: CellKey) -> Cell | None:
        """What became of the texts of a cell, if it could be run to its end."""
        document = self._store.get(CELLS, _identity(*key))
        return None if document is None or _REASON in document else CELL_CODEC.read(document)

    def add_cell(self, key: CellKey, cell: Cell | str) -> None:
        """Keep what became of the texts of a cell, or why it cannot be run."""
        document = {_REASON: cell} if isinstance(cell, str) else CELL_CODEC.encode(cell)
        self._add(CELLS, _identity(*key), document)

    def _add(self, part: str, identity: str, document: Mapping[str, Any]) -> None:
        self._store.add(part, identity, document, status="failed" if _REASON in document else "done")

    def cell_folder(self, key: CellKey) -> Path:
        """The folder of a cell: a run like any other."""
        row = self._folder / "models" / key.model / self._defense_folders[key.defense]
        return row / self._attack_folders[key.attack] / f"{key.view}-{key.seed}"

    def rows(self) -> tuple[GridRow, ...]:
        """Every row, with what it says and what became of its texts; nothing where not all seeds have answers."""
        return tuple(self._row(model, defense) for model, defense in self.places)

    def _row(self, model: str, defense: str) -> GridRow:
        answers = {seed: read for seed in self.seeds if (read := self.answers(model, defense, seed)) is not None}
        if len(answers) < len(self.seeds):
            return GridRow(model, defense)
        row = GridRow(model, defense, answers)
        cells = {(key.attack, key.view, key.seed): self.cell(key) for key in self.keys(row)}
        return replace(row, cells={place: cell for place, cell in cells.items() if cell is not None})

    def keys(self, row: GridRow) -> Iterator[CellKey]:
        """Every cell that a row should have."""
        for attack in self.attacks:
            for view in row.views:
                for seed in self.seeds:
                    yield CellKey(row.model, row.defense, attack, view, seed)

    def failures(self, rows: Sequence[GridRow]) -> Iterator[Failure]:
        """Why parts of the grid have no numbers, in the order of the grid."""
        for row in rows:
            reasons = [self._reason(ANSWERS, row.model, row.defense, seed) for seed in self.seeds]
            reason = next((reason for reason in reasons if reason is not None), None)
            if not row.answers and reason is not None:
                yield Failure(row.model, row.defense, None, None, None, reason)
            for key in self.keys(row):
                reason = self._reason(CELLS, *key)
                if reason is not None:
                    yield Failure(*key, reason)

    def unfinished(self, rows: Sequence[GridRow]) -> Iterator[str]:
        """What is missing without a reason: the evaluation was interrupted, or the folder of a cell was removed."""
        for row in rows:
            if not row.answers:
                if not any(self._reason(ANSWERS, row.model, row.defense, seed) for seed in self.seeds):
                    yield f"{row.model}, {row.defense}"
                continue
            for key in self.keys(row):
                measured = (key.attack, key.view, key.seed) in row.cells
                is_there = (self.cell_folder(key) / SUMMARY).exists() if measured else self._reason(CELLS, *key)
                if not is_there:
                    yield str(key)

    def _reason(self, part: str, *place: str | int) -> str | None:
        document = self._store.get(part, _identity(*place)) or {}
        return document.get(_REASON)


def read_cell(run: AttackResult) -> Cell:
    """What an evaluation keeps of the run of a cell."""
    (attack,) = run.attacks
    numbers = run.summary["attacks"][attack]
    knows_flips = "first_flip_success_rate" in numbers or (
        not numbers["attacked"] and "confirmation" in run.manifest.inputs
    )
    return Cell(
        {record.id: "untried" if record.untried else record.status for record in run.records(attack)},
        numbers["mean_queries"],
        frozenset(record.id for record in run.records(attack, "failed") if record.hit_rate),
        frozenset(record.id for record in run.records(attack) if record.first_flip) if knows_flips else None,
    )


def finished_cell(folder: Path) -> AttackResult | None:
    """The run of a cell, if nothing is left to be attacked; it needs neither model nor data then."""
    if not (folder / MANIFEST).exists():
        return None
    try:
        run = AttackResult.open(folder)
    except RunError:  # interrupted before its first result; if it is damaged, going on will say so
        return None
    if not run.complete:
        return None
    run.complete_summary()
    return run


def folder_names(names: Sequence[str]) -> tuple[str, ...]:
    """Names that can be folders and stay different."""
    return unique_names(re.sub(r"[^\w.=@-]+", "-", name).strip(".-")[:_LONGEST_FOLDER] or "part" for name in names)


def _identity(*place: str | int) -> str:
    return json.dumps(place)
