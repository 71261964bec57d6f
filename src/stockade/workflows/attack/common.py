"""What attacks on classifiers and on translators share: how their searches are run and stored, how similar the texts
they end with are, and what can be read from both results.
"""

from __future__ import annotations

import shlex
import time
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np

from stockade.attacks.registry import NamedAttack
from stockade.core.records import Status
from stockade.engine.scheduler import Finished, Scheduler, Search
from stockade.experiment.progress import Runtime, SearchProgress
from stockade.experiment.result import Result
from stockade.experiment.store import Codec, Effort, ResultStore
from stockade.models.language import LanguageModels

if TYPE_CHECKING:
    from stockade.report.examples import Example

_SIMILARITY_BATCH = 256


class Identified(Protocol):
    """Something that data name: an example, a pair of sentences."""

    @property
    def id(self) -> str: ...


class AttackRecord(Identified, Protocol):
    """What is stored of one text under one attack, as far as both kinds of attack have it."""

    @property
    def attack(self) -> str: ...

    @property
    def status(self) -> Status: ...

    @property
    def reason(self) -> str | None: ...

    @property
    def original(self) -> str: ...

    @property
    def adversarial(self) -> str | None: ...

    @property
    def changed_texts(self) -> Sequence[tuple[str, str]]: ...

    @property
    def similarity(self) -> float | None: ...


class Charged(Protocol):
    """A service that counts what its model had to compute."""

    @property
    def rows(self) -> int: ...

    @property
    def model_seconds(self) -> float: ...


Item = TypeVar("Item", bound=Identified)
Outcome = TypeVar("Outcome")
AnyRecord = TypeVar("AnyRecord", bound=AttackRecord)


def unfinished(
    items: Iterable[Item], finished: Collection[str], runtime: Runtime, *, first: int = 0, spent: float = 0.0
) -> Iterator[tuple[int, Item]]:
    """The items that have no result yet with their positions, until the time is up.

    Parameters
    ----------
    items, finished, runtime
        The items, the ids of those that have a result, and how the job is run.
    first
        The position of the first item.
    spent
        The seconds that have gone already.
    """
    started = time.monotonic() - spent
    for position, item in enumerate(items, first):
        if runtime.seconds is not None and time.monotonic() - started > runtime.seconds:
            return
        if item.id not in finished:
            yield position, item


class SearchRun(Generic[Outcome]):
    """The searches of one attack, run at once or part by part; each result is committed as it ends.

    Parameters
    ----------
    store, scheduler, attack, runtime
        Where the results go, who runs the searches, which attack, and how.
    size
        How many texts there are.
    charged
        Who counts what the model computed.
    encoded
        The record of what came out, and the document that is stored of it.
    """

    def __init__(
        self,
        store: ResultStore,
        scheduler: Scheduler,
        attack: NamedAttack,
        size: int,
        runtime: Runtime,
        charged: Charged,
        encoded: Callable[[Finished[tuple[int, Outcome]], Outcome], tuple[AttackRecord, Any]],
    ) -> None:
        self._store, self._scheduler, self._size, self._runtime = store, scheduler, size, runtime
        self._charged, self._encoded = charged, encoded
        self.attack = attack
        self.finished = store.ids(attack.key)
        """The ids that an earlier session has a result for."""
        self._done = len(self.finished)
        self.effort = Effort()
        """What the parts so far have cost."""

    def run(self, searches: Iterator[Search[tuple[int, Outcome]]]) -> None:
        """Run some searches, each of which ends in a position and what came out."""
        key, before = self.attack.key, self.effort
        started, seconds, rows = time.perf_counter(), self._charged.model_seconds, self._charged.rows
        progress = SearchProgress(key, self._size, self._done, self._runtime.observer)

        def spent() -> Effort:
            return Effort(
                before.seconds + time.perf_counter() - started,
                before.model_seconds + self._charged.model_seconds - seconds,
                before.model_rows + self._charged.rows - rows,
            )

        for ended in self._scheduler.run(searches, progress.after_round):
            position, outcome = ended.result  # type: ignore[misc]
            record, document = self._encoded(ended, outcome)
            self._store.add(key, record.id, document, position=position, status=record.status, effort=spent())
            self._done += 1
            progress.ended(record.status, self._scheduler.usage)
        self.effort = spent()


def store_searches(
    store: ResultStore,
    scheduler: Scheduler,
    attack: NamedAttack,
    size: int,
    runtime: Runtime,
    charged: Charged,
    searches: Callable[[set[str]], Iterator[Search[tuple[int, Outcome]]]],
    encoded: Callable[[Finished[tuple[int, Outcome]], Outcome], tuple[AttackRecord, Any]],
) -> None:
    """Run the searches of an attack that have no result yet; `searches` gives them for the ids that are finished."""
    run = SearchRun(store, scheduler, attack, size, runtime, charged, encoded)
    run.run(searches(run.finished))


def measure_similarities(
    store: ResultStore,
    attacks: Sequence[NamedAttack],
    codec: Codec[AnyRecord],
    language: LanguageModels,
    status: Status | None = "success",
) -> None:
    """Measure how similar changed texts are to their originals, where that is missing; the encoder is loaded only then.

    The cosine of the sentence vectors of the whole texts; of a pair, of the side that was changed, and the smaller one
    if both were.

    Parameters
    ----------
    store, attacks, codec
        The results.
    language
        Makes the sentence encoder.
    status
        Only texts of this status; None for all that were changed.
    """
    for attack in attacks:
        records = map(codec.read, store.documents(attack.key, status))
        missing = [record for record in records if record.similarity is None and record.adversarial is not None]
        for start in range(0, len(missing), _SIMILARITY_BATCH):
            batch = missing[start : start + _SIMILARITY_BATCH]
            encoder = language.make_encoder()
            pairs = [pair for record in batch for pair in record.changed_texts]
            originals = encoder.embed([before for before, _ in pairs])
            adversarials = encoder.embed([after for _, after in pairs])
            cosines = iter(np.clip((originals * adversarials).sum(axis=1), -1.0, 1.0).tolist())
            least = [min(next(cosines) for _ in record.changed_texts) for record in batch]
            store.replace(
                attack.key,
                [
                    (record.id, {**codec.encode(record), "similarity": round(cosine, 6)})
                    for record, cosine in zip(batch, least, strict=True)
                ],
            )


class AttacksResult(Result):
    """The results of attacks on a model: one record per text and attack."""

    codec: ClassVar[Codec[Any]]

    @property
    def attacks(self) -> tuple[str, ...]:
        """The attacks by the names that the run calls them."""
        return tuple(attack["key"] for attack in self.manifest.spec["attacks"])

    def records(self, attack: str | None = None, status: Status | None = None) -> Iterator[Any]:
        """The results one by one, without holding them all: attack by attack as the job names them.

        Parameters
        ----------
        attack, status
            Only those of this attack or status; all if None.
        """
        names = self.attacks if attack is None else (attack,)
        return (self.codec.read(document) for name in names for document in self.store.documents(name, status))

    @cached_property
    def examples(self) -> tuple[Any, ...]:
        """Every result of the run."""
        return tuple(self.records())

    @abstractmethod
    def example(self, record: Any) -> Example:
        """A record as reports show it."""

    def problem(self) -> str | None:
        """The first error of an attack that ended in an error on every text."""
        for name, attack in self.summary["attacks"].items():
            if attack["errors"] and not attack["n"]:
                reason = next(self.records(name, "error")).reason
                return f"{name}: all {attack['errors']} examples ended in an error; the first: {reason}"
        return None

    def shortfall(self) -> str | None:
        """How many texts have no result: a time limit was reached."""
        if self.summary["complete"]:
            return None
        return f"not all texts have a result. Go on with: stockade resume {shlex.quote(str(self.folder))}"

    def rows(self) -> Iterator[dict[str, Any]]:
        """One row per text and attack, with the fields of an export."""
        return (dict(self.codec.encode(record)) for record in self.records())
