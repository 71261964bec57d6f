"""`stockade resume`: go on with any interrupted job."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click


@click.command("resume")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--trust-run", is_flag=True, help="Run code that the folder names (a python: model, pickles). Only if you trust it."
)
@click.option(
    "--concurrency", type=int, default=64, show_default=True, help="Searches in flight; changes speed, not results."
)
@click.option("--batch-tokens", type=int, help="Tokens per batch.  [default: tuned]")
@click.option("--seconds", type=float, help="A time limit: nothing new is started after it.")
@click.option("--workers", type=int, default=1, show_default=True, help="Processes, for jobs that can use several.")
@click.option("--ray", metavar="ADDRESS", help="The workers of an attack are on this Ray cluster (or: auto).")
def command(folder: Path, trust_run: bool, **runtime: Any) -> int:
    """Go on with the job in FOLDER: attack, certify, evaluate, tune, train, rules mine or study.

    Its manifest says with what. A finished job is not run again: its report is made anew.
    """
    from stockade.cli.finish import run_job
    from stockade.kinds import resume

    return run_job(folder, lambda observer: resume(folder, trust=trust_run, observer=observer, **runtime))
