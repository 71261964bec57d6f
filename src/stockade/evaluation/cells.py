"""One cell of the grid: one attack, one way of looking, one seed, on one defended model; a run of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from stockade.core.errors import RunError, StockadeError
from stockade.evaluation.chains import Chain
from stockade.evaluation.inputs import Inputs
from stockade.evaluation.ways import DIRECT
from stockade.runs.attack import AttackSettings, Observer, Progress, run_attacks
from stockade.runs.finished import finished_run
from stockade.runs.manifest import FILE_NAME, begin_run
from stockade.runs.run import Run
from stockade.runs.store import FILE_NAME as STORE_NAME


@dataclass(frozen=True, slots=True)
class Cell:
    """What is attacked, with what, how the attack looks at it, and with which seed."""

    model: str
    chain: Chain
    attack: str
    way: str
    seed: int

    @property
    def title(self) -> str:
        return f"{self.model}, {self.chain.name}: {self.attack}, {self.way}, seed {self.seed}"


@dataclass(frozen=True, slots=True)
class Failure:
    """A part of the grid without numbers, and why; what is None stands for all of its kind."""

    model: str
    defense: str
    attack: str | None
    way: str | None
    seed: int | None
    reason: str


@dataclass(frozen=True, slots=True)
class Speed:
    """What changes how fast an evaluation is, never its results; and who watches it."""

    concurrency: int = 64
    batch_tokens: int | None = None
    observer: Observer | None = None


def run_cell(folder: Path, cell: Cell, inputs: Inputs, speed: Speed) -> Run:
    """The run of a cell, gone on with if it is not finished. A finished one needs neither model nor data."""
    finished = finished_run(folder)
    if finished is not None:
        return finished
    request = inputs.request
    classifier = inputs.defended(cell.model, cell.chain, cell.seed)
    examples = inputs.examples(cell.model)
    job = inputs.job(cell.model, cell.chain, cell.attack, cell.seed)
    _begin(folder, _told_the_way(job.manifest(classifier, examples), cell, request.expectation))
    settings = AttackSettings(
        job.attacks, cell.seed, request.budget, request.max_words, speed.concurrency, speed.batch_tokens
    )
    through = inputs.views(cell.model, classifier)[cell.way]
    observer = _named(cell.title, speed.observer)
    run_attacks(classifier, examples, settings, folder, observer, request.language, through=through)
    run = Run(folder)
    run.write_summary()
    return run


def contained(error: Exception) -> str:
    """Why a part of the grid failed; what concerns the folder as a whole is raised again."""
    if isinstance(error, RunError):
        raise error
    return str(error) if isinstance(error, StockadeError) else f"{type(error).__name__}: {error}"


def _told_the_way(manifest: dict[str, Any], cell: Cell, expectation: int) -> dict[str, Any]:
    """The manifest with what the searches saw, so that nothing else goes on with this run by mistake."""
    if cell.way == DIRECT:
        return manifest
    seen = {"way": cell.way, "expectation": expectation}
    return {**manifest, "config": {**manifest["config"], "through": seen}}


def _begin(folder: Path, manifest: Mapping[str, Any]) -> None:
    if (folder / STORE_NAME).exists() and not (folder / FILE_NAME).exists():
        raise RunError(f"{folder} has results but no {FILE_NAME}. Remove it and resume: it is made again.")
    begin_run(folder, manifest, resume=(folder / FILE_NAME).exists())


def _named(title: str, observer: Observer | None) -> Observer | None:
    """An observer that is told the cell."""
    if observer is None:
        return None

    def tell(progress: Progress) -> None:
        observer(replace(progress, attack=title))

    return tell
