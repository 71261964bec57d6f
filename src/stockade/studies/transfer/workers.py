"""The work of the transfer study in several processes: each attacks a source, or scores with a target, at a time.

A worker loads the models and texts itself, computes on one thread, and sends back what it would have stored. The
attacks on a source are a job in a folder of their own, which the worker writes.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from stockade.core.errors import OptionError
from stockade.experiment.pool import DataPool
from stockade.experiment.processes import Addition, StagedStore, completed
from stockade.experiment.progress import Runtime
from stockade.studies.transfer.job import AllSamples, TransferJob
from stockade.studies.transfer.spec import TransferSpec


@dataclass(frozen=True, slots=True)
class Work:
    """What every worker must know.

    Parameters
    ----------
    spec, folder, runtime
        Those of the study.
    models
        References by name, also of second trainings and of the members of a pool.
    samples, maps
        What is to be scored, once the attacks have ended.
    """

    spec: TransferSpec
    folder: Path
    runtime: Runtime
    models: Mapping[str, object]
    samples: AllSamples
    maps: tuple[str, ...]


def check_references(spec: TransferSpec) -> None:
    """Refuse Python objects: a worker could not load them."""
    given = (spec.data, spec.train_data or "", *spec.models.values(), *spec.second.values())
    if not all(isinstance(reference, str | Path) for reference in given):
        raise OptionError("Several workers load the models and the data themselves: name them, or use one worker.")


def work_at_once(
    processes: ProcessPoolExecutor, work: Work, part: str, names: Sequence[str]
) -> Iterator[list[Addition]]:
    """What is to be stored of each model, as their work ends.

    Parameters
    ----------
    processes
        The workers.
    work
        What they must know.
    part
        "attacking" or "scoring".
    names
        The models.
    """
    packed = pickle.dumps(work)
    running = {processes.submit(_work, packed, part, name): name for name in names}
    for _, additions in completed(running):
        yield additions


@lru_cache(maxsize=1)
def _unpacked(packed: bytes) -> Work:
    work: Work = pickle.loads(packed)
    return work


def _work(packed: bytes, part: str, name: str) -> list[Addition]:
    """In a worker: attack one source, or score with one target."""
    import torch

    torch.set_num_threads(1)
    work = _unpacked(packed)
    spec, store = work.spec, StagedStore(work.folder)
    try:
        data = DataPool(spec.data, spec.data_options, limit=spec.size, seed=spec.seed)
        job = TransferJob(spec, store, work.folder, data, work.runtime)
        roster = job.roster(work.models)
        if part == "attacking":
            job.attack(roster, name)
        else:
            job.score(roster, name, work.samples, work.maps)
    finally:
        store.close()
    return store.additions
