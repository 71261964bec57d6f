"""The attacks of one trial: several ways to look at the defended model, each tried on the texts that are left.

A search that follows single draws of a randomised defense follows noise, and what it finds by luck does not hold when
the model is asked again. Options that only add noise would win by that. So a text survives only if it survives every
way, and where the model is undecided about what was found the attack is tried again with more answers averaged.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from stockade.core.protocols import Classifier
from stockade.core.records import Record
from stockade.datasets.examples import ExampleSet
from stockade.evaluation.averaged import Averaged
from stockade.evaluation.ways import DIRECT, EXPECTATION, TRANSFER, twin_of, views
from stockade.models.language import LanguageModels
from stockade.runs.attack import AttackSettings, run_attacks
from stockade.runs.store import Store

_CHEAP_FIRST = (TRANSFER, DIRECT, EXPECTATION)
_RETRIES = 3


@dataclass(frozen=True, slots=True)
class Attacker:
    """One attack on the same texts, whatever stands around the model."""

    examples: ExampleSet
    settings: AttackSettings
    expectation: int
    language: LanguageModels

    def records(self, model: Classifier) -> list[Record]:
        """What came of each text: a success if any way has one. The first way's answer says whether the model is right
        on the clean text. A text is tried again if something that was found for it fools the model now and then.
        """
        found: dict[str, Record] = {}
        undecided: set[str] = set()
        for through in self._views(model).values():
            records = self._attacked(model, _left(self.examples, found), through)
            _merge(found, records)
            undecided |= {record.id for record in records if record.hit_rate}
        if self.expectation > 1:
            for draws in averaged_in_retries(self.expectation):
                seen = Averaged(twin_of(model) or model, draws, self.language)
                _merge(found, self._attacked(model, _left(self.examples, found, undecided), seen))
        return list(found.values())

    def _views(self, model: Classifier) -> dict[str, Classifier | None]:
        """What searches see, by way: the twin of the defense in place of itself, where it has one."""
        twin = twin_of(model)
        found = views(twin or model, self.expectation, self.language)
        return {way: twin if found[way] is None else found[way] for way in _CHEAP_FIRST if way in found}

    def _attacked(self, model: Classifier, examples: ExampleSet, through: Classifier | None) -> list[Record]:
        if not examples.size:
            return []
        with tempfile.TemporaryDirectory(prefix="stockade-tune-") as folder:
            run_attacks(model, examples, self.settings, Path(folder), language=self.language, through=through)
            with Store(Path(folder)) as store:
                return list(store.records())


def averaged_in_retries(expectation: int) -> list[int]:
    """How many answers each retry averages: always twice as many as the one before."""
    return [expectation * 2**retry for retry in range(1, _RETRIES + 1)]


def _merge(found: dict[str, Record], records: Iterable[Record]) -> None:
    """A success outdoes everything. An error outdoes a text that held out: who knows what it hides."""
    for record in records:
        known = found.get(record.id)
        if known is None or record.status == "success" or (record.status, known.status) == ("error", "failed"):
            found[record.id] = record


def _left(examples: ExampleSet, found: Mapping[str, Record], among: Container[str] | None = None) -> ExampleSet:
    """The examples that no way has fooled so far, all or those `among` them."""
    if not found:
        return examples
    left = [one for one in found.values() if one.status in ("failed", "error") and (among is None or one.id in among)]
    return replace(
        examples,
        ids=tuple(record.id for record in left),
        size=len(left),
        label_counts=Counter(record.label for record in left),
    )
