"""Trains a pool of models on the same data, several at a time, each with two seeds if it is to have a base rate.

Every member is a training folder like any other: one that is finished is read, one that was interrupted goes on, and
one that was trained on other data or with other options is refused. Each training computes on one thread: that is the
fastest way to use all cores for many small models, and the weights do not depend on how many cores there are.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from stockade.core.errors import StockadeError
from stockade.experiment.inputs import DataOptions
from stockade.experiment.processes import completed, worker_processes
from stockade.experiment.progress import Observer, Progress
from stockade.experiment.workspace import MANIFEST, read_manifest
from stockade.models.zoo.names import PRETRAINED, ZooName, parse_zoo_name

LANGUAGE_MODEL = "biLM"
_EPOCHS = {"C": 8, "WC": 4, "MiniLM-L6": 2, "MiniLM-L3": 3, "BERT-NOPT": 8}
"""Fewer than a single training has by default, for members that take long: a pool has many of them, trained twice."""
_NEED_CHECKPOINT = (*PRETRAINED, "MiniLM-L3")
_SLOW = ("WC", "", "C", "W")
"""What a member reads, the slowest to train first; transformers have no unit."""
_VECTORS = {"GloVe": "glove", "W2vec": "word2vec", "fastText": "fasttext"}

Arguments = Mapping[str, Any]
"""Those of one `st.train`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One training of a pool.

    Parameters
    ----------
    name
        The architecture, as the zoo calls it.
    seed
        The seed of this training.
    folder
        Where it is, or would be.
    problem
        Why there is no trained model; None if there is one.
    """

    name: str
    seed: int
    folder: Path
    problem: str | None = None


Followers = Mapping[Member, Mapping[Member, Arguments]]
"""Trainings that can only begin when another one has ended."""
Trainer = Callable[..., Iterator[tuple[Member, str | None]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolSources:
    """Files that members of a pool are built from.

    Parameters
    ----------
    vectors
        Files of word vectors under `glove`, `word2vec` and `fasttext`; the zoo's defaults for those that are missing.
    checkpoints
        Folders or hub names of pre-trained transformers by the name of the member, such as `BERT`.
    """

    vectors: Mapping[str, str] = field(default_factory=dict)
    checkpoints: Mapping[str, str] = field(default_factory=dict)


def member_folder(folder: Path, name: str, seed: int) -> Path:
    """Where a training of a pool is."""
    return folder / (name if seed == 0 else f"{name}.seed{seed}")


def train_pool(
    names: Sequence[str],
    data: object,
    folder: str | Path,
    *,
    seeds: Sequence[int] = (0, 1),
    sources: PoolSources | None = None,
    data_options: DataOptions | None = None,
    workers: int | None = None,
    observer: Observer | None = None,
) -> list[Member]:
    """Train what is missing of a pool, and return all its members; one that cannot be trained says why.

    Parameters
    ----------
    names
        Architectures of the zoo.
    data
        What all of them are trained on: a reference, or data that can be sent to another process.
    folder
        Where the trainings are, in a folder each.
    seeds
        A training for each; two of them give base rates.
    sources
        Files that members are built from. A member whose checkpoint is missing is not trained.
    data_options
        How the data are read.
    workers
        How many are trained at the same time; as many as there are cores by default.
    observer
        Called with a `Progress` after each training.
    """
    root, sources = Path(folder).resolve(), sources or PoolSources()
    parsed = {str(name): name for name in map(parse_zoo_name, names)}
    fingerprint = (data_options or DataOptions()).load(data).fingerprint()
    jobs = {
        Member(name=name, seed=seed, folder=member_folder(root, name, seed)): _arguments(
            zoo_name, seed, data, root, sources, data_options
        )
        for name, zoo_name in parsed.items()
        for seed in seeds
    }
    problems: dict[Member, str | None] = {}

    def ended(member: Member, problem: str | None) -> None:
        problems[member] = problem
        if observer is not None:
            done = Progress(
                part="training the pool", done=len(problems), total=len(jobs), note=member.name, unit="models"
            )
            observer(done)

    jobs = {member: _other_data(member.folder, fingerprint) or job for member, job in jobs.items()}
    trainings: dict[Member, Arguments] = {}
    for member, job in jobs.items():
        if isinstance(job, str):
            ended(member, job)
        else:
            trainings[member] = job
    trainings = _slowest_first(trainings, parsed)
    readers = {member: trainings.pop(member) for member in list(trainings) if parsed[member.name].unit == "WC"}
    language_model = Member(name=LANGUAGE_MODEL, seed=0, folder=root / LANGUAGE_MODEL)
    if readers:  # the language model first, because they are built from it; the others need not wait
        arguments = {"data": data, "architecture": LANGUAGE_MODEL, "data_options": data_options}
        trainings = {language_model: {**arguments, "out": language_model.folder}, **trainings}
    with _trainer(workers or os.cpu_count() or 1, len(trainings) + len(readers)) as train:
        for member, problem in train(trainings, after={language_model: readers}):
            if member != language_model:
                ended(member, problem)
            elif problem is not None:
                for reader in readers:
                    ended(reader, f"its language model: {problem}")
    return [replace(member, problem=problems[member]) for member in jobs]


def _arguments(
    name: ZooName,
    seed: int,
    data: object,
    root: Path,
    sources: PoolSources,
    data_options: DataOptions | None,
) -> Arguments | str:
    """How a member is trained, or why it cannot be."""
    files: dict[str, str] = {}
    vectors = _VECTORS.get(name.embedding, "")
    if vectors in sources.vectors:
        files[vectors] = sources.vectors[vectors]
    if name.unit == "WC":
        files["elmo"] = str(root / LANGUAGE_MODEL)
    if str(name) in sources.checkpoints:
        files["checkpoint"] = sources.checkpoints[str(name)]
    elif str(name) in _NEED_CHECKPOINT:
        return "no checkpoint was given to begin at"
    epochs = _EPOCHS.get(name.unit or str(name))
    return {
        "data": data,
        "architecture": str(name),
        "out": member_folder(root, str(name), seed),
        "sources": files,
        # A language model of a few thousand sentences has to learn on with the classifier.
        "sizes": {"frozen": False} if name.unit == "WC" else {},
        "data_options": data_options,
        "seed": seed,
        **({} if epochs is None else {"epochs": epochs}),
    }


def _other_data(folder: Path, fingerprint: str) -> str | None:
    """Why a training that is there already must not be taken: a finished one is read without looking at its data."""
    if not (folder / MANIFEST).exists():
        return None
    recorded = read_manifest(folder).inputs.get("data", {})
    if recorded.get("fingerprint") == fingerprint:
        return None
    return f"{folder} was trained on other data: choose another folder for the pool, or remove it"


def _slowest_first(trainings: Mapping[Member, Arguments], names: Mapping[str, ZooName]) -> dict[Member, Arguments]:
    """So that no core is idle while the last one is trained."""

    def slowness(member: Member) -> tuple[int, int]:
        name = names[member.name]
        return _SLOW.index(name.unit), -name.layers

    return {member: trainings[member] for member in sorted(trainings, key=slowness)}


@contextmanager
def _trainer(workers: int, count: int) -> Iterator[Trainer]:
    """Trains members one after the other, or in several processes."""
    if workers == 1:
        yield _train_in_turn
        return
    with worker_processes(min(workers, count or 1)) as processes:
        yield partial(_train_at_once, processes)


def _train_in_turn(trainings: Mapping[Member, Arguments], after: Followers) -> Iterator[tuple[Member, str | None]]:
    """Each member as its training ends, with what went wrong; those that follow one that failed are left out."""
    for member, arguments in trainings.items():
        problem = _train(arguments)
        yield member, problem
        if problem is None:
            yield from _train_in_turn(after.get(member, {}), {})


def _train_at_once(
    processes: ProcessPoolExecutor, trainings: Mapping[Member, Arguments], after: Followers
) -> Iterator[tuple[Member, str | None]]:
    """The same in several processes."""
    running: dict[Future[str | None], Member] = {
        processes.submit(_train, arguments): member for member, arguments in trainings.items()
    }
    for member, problem in completed(running):
        if problem is None:
            running |= {processes.submit(_train, job): reader for reader, job in after.get(member, {}).items()}
        yield member, problem


def _train(arguments: Arguments) -> str | None:
    """Train one model, or go on with it; the problem if it cannot be done."""
    import torch

    from stockade.workflows.train import train

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        train(**arguments, resume=Path(arguments["out"]).exists())
    except StockadeError as error:
        return str(error)
    finally:
        torch.set_num_threads(threads)
    return None
