"""The search itself: trials in rounds, each stored as it ends, until their number or the time is used up."""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

from stockade.core.errors import OptionError
from stockade.experiment.processes import result_of, worker_processes
from stockade.experiment.progress import Progress, Runtime
from stockade.experiment.result import Workflow
from stockade.experiment.workspace import begin
from stockade.report.numbers import number
from stockade.workflows.tune.objective import Objective
from stockade.workflows.tune.ranges import Value
from stockade.workflows.tune.result import TRIALS, TuneResult
from stockade.workflows.tune.samplers import Sampler, make_sampler
from stockade.workflows.tune.spec import TuneSpec
from stockade.workflows.tune.training import keep_best
from stockade.workflows.tune.trials import CODEC, Trial, missing_numbers, written_options


def run(spec: TuneSpec, folder: Path, runtime: Runtime, resume: bool) -> TuneResult:
    """Look at the model, the texts and the defense, then make the trials that are missing."""
    loaded = [spec.model, spec.data, *spec.premade.values(), spec.train_data]
    if runtime.workers > 1 and not all(value is None or isinstance(value, str | Path) for value in loaded):
        raise OptionError("Several workers load the model and the data themselves: name them, or use one worker.")
    sampler = make_sampler(spec.sampler, spec.ranges, spec.seed)
    objective = Objective(spec, runtime, folder)
    with begin(folder, spec, objective.described(), resume=resume) as workspace:
        result = TuneResult.of(workspace)
        trials = list(result.records())
        try:
            for trial in run_trials(objective, sampler, trials, spec.trials):
                status = "rated" if trial.error is None else "error"
                workspace.store.add(
                    TRIALS, str(trial.number), CODEC.encode(trial), position=trial.number, status=status
                )
                if spec.train_data is not None:
                    keep_best(folder, trials)
                if runtime.observer is not None:
                    done = spec.trials - len(missing_numbers(trials, spec.trials))
                    runtime.observer(
                        Progress(part=TRIALS, done=done, total=spec.trials, note=_in_short(trial), unit="trials")
                    )
        finally:
            result.write_summary()
    return result


def _in_short(trial: Trial) -> str:
    outcome = trial.error or f"objective {number(trial.objective, 3)}"
    return f"trial {trial.number}: {written_options(trial.options)}: {outcome}"


def run_trials(objective: Objective, sampler: Sampler, trials: list[Trial], wanted: int) -> Iterator[Trial]:
    """New trials as they end, in rounds of as many as there are workers.

    Parameters
    ----------
    objective
        Rates options, as fast as its runtime says.
    sampler
        Chooses options.
    trials
        Those that were made before; new ones are added.
    wanted
        How many there should be in the end.
    """
    runtime = objective.runtime
    deadline = None if runtime.seconds is None else time.monotonic() + runtime.seconds
    missing = missing_numbers(trials, wanted)
    packed = pickle.dumps(objective.unloaded()) if runtime.workers > 1 else b""
    with _pool(runtime.workers) as pool:
        for start in range(0, len(missing), runtime.workers):
            if deadline is not None and time.monotonic() > deadline:
                return
            numbers = missing[start : start + runtime.workers]
            before = sorted((trial for trial in trials if trial.number < numbers[0]), key=lambda trial: trial.number)
            chosen = sampler.choose(numbers, before)
            if pool is None:
                finished = iter([objective.rate(numbers[0], chosen[0])])
            else:
                tasks = [pool.submit(_rate, packed, at, options) for at, options in zip(numbers, chosen, strict=True)]
                finished = map(result_of, as_completed(tasks))
            for trial in finished:
                trials.append(trial)
                yield trial


@contextmanager
def _pool(workers: int) -> Iterator[ProcessPoolExecutor | None]:
    """Processes to work in; None for a single one, which is this."""
    if workers == 1:
        yield None
        return
    with worker_processes(workers) as pool:
        yield pool


@lru_cache(maxsize=1)
def _unpacked(objective: bytes) -> Objective:
    """In a worker process: the objective of its search, which keeps the model it has loaded."""
    unpacked: Objective = pickle.loads(objective)
    return unpacked


def _rate(objective: bytes, number: int, options: Mapping[str, Value]) -> Trial:
    return _unpacked(objective).rate(number, options)


WORKFLOW: Workflow[Any] = Workflow(TuneSpec, run, TuneResult, reopens=True)
