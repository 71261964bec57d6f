"""Any job by its folder: open it, or go on with it. The folder's manifest says of which kind it is."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from stockade.core.errors import RunError
from stockade.core.files import reading
from stockade.experiment.progress import Observer, Runtime
from stockade.experiment.result import Result, Workflow
from stockade.experiment.workspace import MANIFEST, read_manifest

WORKFLOWS = {
    "attack": "stockade.workflows.attack.run",
    "certify": "stockade.workflows.certify.run",
    "evaluate": "stockade.workflows.evaluate.run",
    "tune": "stockade.workflows.tune.run",
    "train": "stockade.workflows.train.run",
    "rules": "stockade.workflows.mine.run",
    "translation": "stockade.workflows.translation.run",
    "study-attention": "stockade.studies.attention.study",
    "study-bae": "stockade.studies.bae.study",
    "study-ensemble": "stockade.studies.ensemble.study",
    "study-firebert": "stockade.studies.firebert.study",
    "study-masking": "stockade.studies.masking.study",
    "study-rules": "stockade.studies.rules.study",
    "study-transfer": "stockade.studies.transfer.study",
    "study-translation": "stockade.studies.translation.study",
}
"""The module whose `WORKFLOW` runs a kind of job."""


def find_workflow(kind: str, folder: Path) -> Workflow[Any]:
    """The workflow of a kind, as a manifest names it."""
    if kind not in WORKFLOWS:
        raise RunError(f"{folder / MANIFEST} is of the kind {kind}, expected one of {', '.join(WORKFLOWS)}.")
    workflow: Workflow[Any] = importlib.import_module(WORKFLOWS[kind]).WORKFLOW
    return workflow


def load(folder: str | Path) -> Result:
    """Open the folder of any job: attack, certify, evaluate, tune, train, mine_rules, study.

    Parameters
    ----------
    folder
        What was `out` when the job was run.
    """
    path = Path(folder)
    with reading(path):
        return find_workflow(read_manifest(path).kind, path).result.open(path)


def resume(
    folder: str | Path,
    *,
    model: object = None,
    models: object = None,
    data: object = None,
    trust: bool = False,
    concurrency: int = 64,
    batch_tokens: int | None = None,
    seconds: float | None = None,
    workers: int = 1,
    ray: str | None = None,
    observer: Observer | None = None,
) -> Any:
    """Go on with any interrupted job; a finished one is opened, and its report is made again.

    Parameters
    ----------
    folder
        What was `out` when the job was begun. Its manifest says with what to go on.
    model, models, data
        The models and data again, if they were Python objects.
    trust
        Whether code that the folder names, such as a `python:` model, may be run.
    concurrency, batch_tokens, seconds, workers, ray
        How fast the job is run, see `st.attack` and `st.tune`.
    observer
        Called with a `Progress` after each unit of work.
    """
    path = Path(folder)
    workflow = find_workflow(read_manifest(path).kind, path)
    runtime = Runtime(
        concurrency=concurrency,
        batch_tokens=batch_tokens,
        seconds=seconds,
        workers=workers,
        ray=ray,
        observer=observer,
    )
    with reading(path):
        return workflow.resume(path, runtime, trust=trust, model=model, models=models, data=data)
