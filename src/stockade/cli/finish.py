"""What every command does with a job: watch it, survive Ctrl-C, write the report, print it in short."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from contextlib import nullcontext
from datetime import datetime
from itertools import chain, count
from pathlib import Path

from stockade.cli.progress import watch
from stockade.cli.screen import say
from stockade.core.errors import InputError, OptionError, StockadeError, Terminated
from stockade.core.files import reading
from stockade.experiment.inputs import skipped_rows
from stockade.experiment.progress import Observer
from stockade.experiment.result import REPORT, Result
from stockade.experiment.workspace import MANIFEST, read_manifest

EXIT_INCOMPLETE, EXIT_INTERRUPTED, EXIT_TERMINATED = 3, 130, 143


def run_job(out: Path, start: Callable[[Observer], Result]) -> int:
    """Run a job under a progress bar, then report it; Ctrl-C leaves a job that can be resumed.

    Parameters
    ----------
    out
        The folder of the job.
    start
        Runs it, given who watches.
    """
    resumed = (out / MANIFEST).exists()
    try:
        with watch() as observer:
            result = start(observer)
    except KeyboardInterrupt as stopped:
        advice = _advice(out)
        terminated = isinstance(stopped, Terminated)
        say(f"stockade: {'terminated' if terminated else 'interrupted'}; {advice}", err=True)
        return EXIT_TERMINATED if terminated else EXIT_INTERRUPTED
    with reading(out) if resumed else nullcontext():
        return report(result)


def _advice(out: Path) -> str:
    """How to go on with a job that was stopped; a model that is code has to be trusted again."""
    from stockade.kinds import find_workflow

    if not (out / MANIFEST).exists():
        return "nothing was begun: run the same command again."
    command = f"resume with: stockade resume {shlex.quote(str(out))}"
    try:
        manifest = read_manifest(out)
        spec = find_workflow(manifest.kind, out).spec.read(manifest.spec, out / MANIFEST, trust=True)
    except StockadeError:  # going on will say what is wrong
        return command
    return command if spec.runs_code() is None else f"{command} --trust-run"


def report(result: Result) -> int:
    """Write the report into the folder, print it in short, and give the exit code.

    A job without a single usable result is an error; one that lacks something it was asked for exits with 3.
    """
    from stockade.report.render_terminal import standard_output

    document = result.document()
    page = document.write(result.folder / REPORT)
    document.brief().to_terminal(standard_output())
    say(f"Results: {result.folder}  ·  report: {page}")
    for sentence in skipped_rows(result.manifest.inputs.get("data") or {}):
        if sentence not in result.summary.get("warnings", ()):  # else it is on the page and was printed with it
            say(f"stockade: {sentence}", err=True)
    problem = result.problem()
    if problem is not None:
        raise InputError(problem)
    shortfall = result.shortfall()
    if shortfall is not None:
        say(f"stockade: {shortfall}", err=True)
        return EXIT_INCOMPLETE
    return 0


def output_folder(out: Path | None, kind: str, resume: bool = False) -> Path:
    """The folder of a job: the one that was named, else a new one with the date in its name."""
    if out is None and resume:
        raise OptionError("--resume needs the job's folder: name it with --out.")
    if out is not None:
        return out
    dated = f"{kind}-{datetime.now():%Y%m%d-%H%M%S}"
    names = chain([dated], (f"{dated}-{number}" for number in count(2)))
    return next(folder for folder in (Path("runs") / name for name in names) if not folder.exists())
