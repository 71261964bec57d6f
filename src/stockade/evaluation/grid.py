"""The whole grid: every model in every chain of defenses under every attack, in every way, with every seed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stockade.core.records import Status
from stockade.evaluation.answers import read_or_ask
from stockade.evaluation.cells import Cell, Failure, Speed, contained, run_cell
from stockade.evaluation.chains import Chain
from stockade.evaluation.inputs import Inputs
from stockade.evaluation.plan import Plan
from stockade.runs.run import Run

Statuses = Mapping[str, Status]
"""What came of each text in one cell, by its id."""
_LONGEST = 60


@dataclass(frozen=True, slots=True)
class CellResult:
    """What is kept of a cell."""

    statuses: Statuses
    mean_queries: float | None
    undecided: frozenset[str] = frozenset()
    """Texts for which something was found that fools the model in some draws, but in less than half of them."""


@dataclass(frozen=True, slots=True)
class Row:
    """One defended model: its answers by seed, the ways in which it was attacked, and its cells by attack, way and
    seed. A row that could not be made has a failure and nothing else.
    """

    model: str
    defense: str
    answers: Mapping[int, Mapping[str, Any]]
    ways: tuple[str, ...]
    cells: Mapping[tuple[str, str, int], CellResult]


def run_grid(folder: Path, plan: Plan, inputs: Inputs, speed: Speed) -> tuple[list[Row], list[Failure]]:
    """Every row of the grid; what failed costs nothing but itself."""
    rows, failures = [], []
    chains = inputs.request.chains()
    chain_folders = dict(zip((chain.name for chain in chains), folder_names(plan.defenses), strict=True))
    attack_folders = dict(zip(plan.attacks, folder_names(list(plan.attacks)), strict=True))
    for model in plan.models:
        for chain in chains:
            place = folder / "models" / model / chain_folders[chain.name]
            row, failed = _run_row(place, model, chain, attack_folders, inputs, speed)
            rows.append(row)
            failures += failed
    return rows, failures


def _run_row(
    place: Path, model: str, chain: Chain, attack_folders: Mapping[str, str], inputs: Inputs, speed: Speed
) -> tuple[Row, list[Failure]]:
    seeds = inputs.request.all_seeds
    answers: dict[int, Any] = {}
    try:
        for seed in seeds:
            path = place / f"answers-{seed}.json"
            answers[seed] = read_or_ask(path, inputs, model, chain, seed, speed.batch_tokens)
    except Exception as error:
        return Row(model, chain.name, {}, (), {}), [Failure(model, chain.name, None, None, None, contained(error))]
    ways = tuple(answers[seeds[0]]["ways"])
    cells: dict[tuple[str, str, int], CellResult] = {}
    failures = []
    for attack, name in attack_folders.items():
        for way in ways:
            for seed in seeds:
                try:
                    run = run_cell(place / name / f"{way}-{seed}", Cell(model, chain, attack, way, seed), inputs, speed)
                    cells[attack, way, seed] = _result(run, attack)
                except Exception as error:
                    failures.append(Failure(model, chain.name, attack, way, seed, contained(error)))
    return Row(model, chain.name, answers, ways, cells), failures


def _result(run: Run, attack: str) -> CellResult:
    statuses: dict[str, Status] = {record.id: record.status for record in run.records(attack)}
    undecided = frozenset(record.id for record in run.records(attack, "failed") if record.hit_rate)
    return CellResult(statuses, run.summary["attacks"][attack]["mean_queries"], undecided)


def folder_names(names: Sequence[str]) -> list[str]:
    """Names that can be folders and stay different."""
    found: list[str] = []
    for name in names:
        short = re.sub(r"[^\w.=@-]+", "-", name).strip(".-")[:_LONGEST] or "part"
        number = 1
        while (unique := short if number == 1 else f"{short}-{number}") in found:
            number += 1
        found.append(unique)
    return found
