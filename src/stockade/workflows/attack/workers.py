"""Attacks by several workers: processes of this machine, or actors of a Ray cluster.

Texts are leased to workers, each of which loads the model once and runs its own engine. One process, that of the job,
holds the folder and commits every result as it comes. A search depends on seed, text and attack alone, so the results
are those of a single process.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from stockade.attacks.registry import NamedAttack
from stockade.attacks.trial import Trial
from stockade.core.errors import OptionError
from stockade.core.example import Example
from stockade.datasets.examples import ExampleSet, UnlabelledSet
from stockade.experiment.pool import ModelPool
from stockade.experiment.progress import Progress, Runtime
from stockade.experiment.store import Document, Effort, ResultStore
from stockade.lexicon.neighbours import read_neighbours, use_neighbours
from stockade.scale.leases import Carrier, Lost, share
from stockade.scale.local import LocalCarrier
from stockade.workflows.attack.common import unfinished
from stockade.workflows.attack.result import CODEC
from stockade.workflows.attack.searches import AttackEngine, make_record, with_classes
from stockade.workflows.attack.spec import AttackSpec

Item = tuple[int, Example]
"""A text with its position in the data."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What a worker has found of one text.

    Parameters
    ----------
    position
        Of the text in the data.
    document, status
        What is stored.
    effort
        What the worker has computed for this attack so far.
    """

    position: int
    document: Document
    status: str
    effort: Effort


@dataclass(frozen=True, slots=True)
class AttackWork:
    """One attack of a job, as a worker does it.

    Parameters
    ----------
    spec, runtime
        Those of the job.
    attack
        Which of its attacks.
    """

    spec: AttackSpec
    runtime: Runtime
    attack: NamedAttack

    def open(self) -> Callable[[Sequence[Item]], Iterator[tuple[str, Finding]]]:
        """Load the model and whatever the attack needs."""
        spec = self.spec
        models = ModelPool({"": spec.model}, spec.model_options, language=spec.language)
        classifier = models.defended("", spec.defenses, seed=spec.seed)
        engine = AttackEngine(classifier, spec, self.runtime)
        neighbours = None if spec.neighbours is None else read_neighbours(spec.neighbours)

        def run(items: Sequence[Item]) -> Iterator[tuple[str, Finding]]:
            with use_neighbours(neighbours):
                for position, record, effort in engine.results(self.attack, items):
                    yield record.id, Finding(position, CODEC.encode(record), record.status, effort)

        return run


def check_references(spec: AttackSpec) -> None:
    """Refuse Python objects as models: a worker could not load them."""
    if not isinstance(spec.model, str | Path):
        raise OptionError("Several workers load the model themselves: name it, or use one worker.")


def run_by_workers(
    store: ResultStore, spec: AttackSpec, runtime: Runtime, examples: ExampleSet | UnlabelledSet, labels: Sequence[str]
) -> None:
    """Attack every text that the store has no result for yet, with several workers.

    Parameters
    ----------
    store
        Where the results go.
    spec, runtime
        What decides the results, and how the job is run.
    examples
        The texts.
    labels
        The classes of the model.
    """
    for attack in spec.attacks:
        _Shared(store, spec, runtime, attack, examples, labels).run()


class _Shared:
    """One attack, shared among workers."""

    def __init__(
        self,
        store: ResultStore,
        spec: AttackSpec,
        runtime: Runtime,
        attack: NamedAttack,
        examples: ExampleSet | UnlabelledSet,
        labels: Sequence[str],
    ) -> None:
        self._store, self._spec, self._runtime, self._attack = store, spec, runtime, attack
        self._examples, self._labels = examples, tuple(labels)
        self._finished = store.ids(attack.key)
        self._efforts: dict[int, Effort] = {}
        self._started = time.perf_counter()

    def run(self) -> None:
        runtime, left = self._runtime, self._examples.size - len(self._finished)
        if not left:
            return
        workers = min(runtime.workers, left)
        work = AttackWork(self._spec, replace(runtime, workers=1, observer=None), self._attack)
        deadline = None if runtime.seconds is None else time.monotonic() + runtime.seconds
        done = len(self._finished)
        for outcome in share(work, self._items(), self._carrier(workers), workers, size=left, deadline=deadline):
            finding = self._lost(outcome) if isinstance(outcome, Lost) else outcome.value
            if not isinstance(outcome, Lost):
                self._efforts[outcome.worker] = finding.effort
            self._store.add(
                self._attack.key,
                outcome.key,
                finding.document,
                position=finding.position,
                status=finding.status,
                effort=self._effort(),
            )
            done += 1
            if runtime.observer is not None:
                size = self._examples.size
                runtime.observer(Progress(part=self._attack.key, done=done, total=size, status=finding.status))

    def _carrier(self, workers: int) -> Carrier:
        if self._runtime.ray is None:
            return LocalCarrier(workers)
        from stockade.scale.cluster import RayCarrier

        return RayCarrier(self._runtime.ray)

    def _items(self) -> Iterator[tuple[str, Item]]:
        examples = with_classes(self._examples, self._spec.sides)
        for position, example in unfinished(examples, self._finished, replace(self._runtime, seconds=None)):
            yield example.id, (position, example)

    def _effort(self) -> Effort:
        """What all workers together have cost; the seconds are those that went by here."""
        efforts = self._efforts.values()
        return Effort(
            time.perf_counter() - self._started,
            sum(effort.model_seconds for effort in efforts),
            sum(effort.model_rows for effort in efforts),
        )

    def _lost(self, lost: Lost[Item]) -> Finding:
        """The error of a text that ended every worker that took it."""
        position, example = lost.item
        trial = Trial("error", f"the attack on this text ended two worker processes; {lost.reason}")
        record = make_record(self._attack.key, example, trial, self._labels, 0, 0)
        return Finding(position, CODEC.encode(record), record.status, self._effort())
