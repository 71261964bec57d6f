"""Runs that need neither model nor data any more."""

from __future__ import annotations

from pathlib import Path

from stockade.core.errors import RunError
from stockade.runs.run import Run


def finished_run(folder: Path) -> Run | None:
    """The run of a folder, if nothing is left to be attacked or measured."""
    try:
        run = Run(folder)
    except RunError:  # not begun, or interrupted before its first result; if it is damaged, going on will say so
        return None
    with run.store() as store:
        measured = run.manifest["config"]["similarity"] is None or not any(map(store.unmeasured, run.attacks))
    return run if measured and run.summary["complete"] else None
