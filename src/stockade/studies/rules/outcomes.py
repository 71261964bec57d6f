"""What rule sets did to every text of every target: kept by target, and read as arrays to count, resample and compare.

Replacements are made in one order whatever the budget, so a text that is fooled with m changed words is fooled within
every budget that allows m, and within no smaller one: a single attack that asks after each replacement gives all
budgets. Intervals come from resampling texts; the models stay what they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stockade.core.records import Record
from stockade.core.statistics import sign_flip_test, sign_flips
from stockade.core.text import Text
from stockade.experiment.store import Codec, Document
from stockade.lexicon.rules import words_allowed
from stockade.report.numbers import Interval
from stockade.studies.records import was_attacked
from stockade.studies.transferability.matrix import OTHER, traits_of
from stockade.studies.transferability.resampling import Flags, centred_interval, resampled_shares, shares

ALL, HELD_OUT = "All", "Held-out"
FAMILIES = (ALL, "Word", "Character", "ELMo", "BERT", OTHER)
_NOT_ATTACKED = -1


@dataclass(frozen=True, slots=True)
class TargetOutcomes:
    """What every rule set did to the texts of one target.

    Parameters
    ----------
    target
        The model.
    ids, words
        The texts, and how many words each has.
    edits
        By rule set: for each text how many words were changed when it fooled the model; 0 if it did not, -1 if it was
        not attacked, because the model is wrong on it anyway or failed.
    """

    target: str
    ids: tuple[str, ...]
    words: tuple[int, ...]
    edits: Mapping[str, tuple[int, ...]]


def outcomes_of(target: str, results: Mapping[str, Iterable[Record]]) -> TargetOutcomes:
    """What is kept of the attacks on one target.

    Parameters
    ----------
    target
        The model.
    results
        The records of each rule set, all in the order of the data.
    """
    ids: tuple[str, ...] = ()
    words: tuple[int, ...] = ()
    edits: dict[str, tuple[int, ...]] = {}
    for key, records in results.items():
        listed = list(records)
        if not ids:
            ids = tuple(record.id for record in listed)
            words = tuple(len(Text.parse(record.original)) for record in listed)
        edits[key] = tuple(_edits(record) for record in listed)
    return TargetOutcomes(target, ids, words, edits)


def _edits(record: Record) -> int:
    if not was_attacked(record):
        return _NOT_ATTACKED
    return len(record.edits) if record.status == "success" else 0


def _encode(outcomes: TargetOutcomes) -> Document:
    edits = {key: list(values) for key, values in outcomes.edits.items()}
    return {"target": outcomes.target, "ids": list(outcomes.ids), "words": list(outcomes.words), "edits": edits}


def _decode(document: Document) -> TargetOutcomes:
    edits = {key: tuple(values) for key, values in document["edits"].items()}
    return TargetOutcomes(document["target"], tuple(document["ids"]), tuple(document["words"]), edits)


OUTCOMES: Codec[TargetOutcomes] = Codec(_encode, _decode)
"""How the outcomes of a target are stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two rule sets on the same texts and targets.

    Parameters
    ----------
    first, second
        The rule sets.
    among
        `All` targets, or the `Held-out` ones.
    targets, texts
        How many.
    success
        Of each.
    difference
        First minus second, with a 95 % bootstrap interval by text.
    only
        Pairs of a text and a target that only the first, and only the second, fools.
    p
        Exact, two-sided, by text: whether each text's balance over the targets could as well have the other sign. With
        one target that is McNemar's test.
    """

    first: str
    second: str
    among: str
    targets: int
    texts: int
    success: tuple[float | None, float | None]
    difference: Interval
    only: tuple[int, int]
    p: float | None


@dataclass(frozen=True, slots=True)
class FamiliesCompared:
    """Two families of targets under the same rules.

    Parameters
    ----------
    first, second
        The families.
    texts
        How many texts were attacked in both.
    difference
        The mean over texts of the share of the first family's targets that a text fools, less that of the second's.
    p
        Two-sided, by text: whether each text's difference could as well have the other sign.
    """

    first: str
    second: str
    texts: int
    difference: float | None
    p: float | None


class Outcomes:
    """What every rule set did to every text of every target, as arrays.

    Parameters
    ----------
    targets
        What is kept of each target; texts that not all have are left out.
    sources
        Models that rules were mined with.
    seed
        Which texts are drawn for intervals.
    """

    def __init__(self, targets: Sequence[TargetOutcomes], sources: Iterable[str], seed: int = 0) -> None:
        self.targets = tuple(entry.target for entry in targets)
        self.rule_sets = tuple(targets[0].edits) if targets else ()
        places = [{id: place for place, id in enumerate(entry.ids)} for entry in targets]
        common = [id for id in targets[0].ids if all(id in place for place in places)] if targets else []
        shape = (len(self.rule_sets), len(targets), len(common))
        self._edits = np.full(shape, _NOT_ATTACKED, dtype=np.int32)
        for column, (entry, place) in enumerate(zip(targets, places, strict=True)):
            for row, key in enumerate(self.rule_sets):
                self._edits[row, column] = [entry.edits[key][place[id]] for id in common]
        self.ids = tuple(common)
        self._words = np.array([targets[0].words[places[0][id]] for id in common] if targets else [], dtype=np.int32)
        self._seed = seed
        mined_with = set(sources)
        families = np.array([traits_of(target).form for target in self.targets])
        self._groups: dict[str, Flags] = {
            ALL: np.ones(len(targets), dtype=np.bool_),
            HELD_OUT: np.array([target not in mined_with for target in self.targets], dtype=np.bool_),
            **{family: families == family for family in FAMILIES[1:]},
        }

    def family(self, target: str) -> str:
        """What a target reads."""
        return traits_of(target).form

    def is_held_out(self, target: str) -> bool:
        """Whether no rules were mined with it."""
        return bool(self._groups[HELD_OUT][self.targets.index(target)])

    def size(self, group: str) -> int:
        """How many targets a group has."""
        return int(self._groups[group].sum())

    @property
    def counted(self) -> Flags:
        """Whether a text was attacked; rule sets, targets, texts."""
        counted: Flags = self._edits != _NOT_ATTACKED
        return counted

    def fooled(self, budget: float | None = None) -> Flags:
        """Whether a text fools a target within a budget; within that of the attack if None."""
        if budget is None:
            return self._edits > 0
        allowed = np.array([words_allowed(int(words), budget) for words in self._words], dtype=np.int32)
        return (self._edits > 0) & (self._edits <= allowed)

    def rate(self, rule_set: str, target: str) -> float | None:
        """The share of the attacked texts that fool a target."""
        value = float(self._rates[self._row(rule_set), self.targets.index(target)])
        return round(value, 6) if np.isfinite(value) else None

    def changed(self, rule_set: str, group: str) -> float | None:
        """The mean percent of changed words of the texts that fool a target, as a mean over targets."""
        return self._changed(rule_set, self._groups[group])

    def changed_on(self, rule_set: str, target: str) -> float | None:
        """The mean percent of changed words of the texts that fool one target."""
        return self._changed(rule_set, np.array([name == target for name in self.targets], dtype=np.bool_))

    def _changed(self, rule_set: str, targets: Flags) -> float | None:
        edits = self._edits[self._row(rule_set)][targets]
        means = [float((100 * row / np.maximum(self._words, 1))[row > 0].mean()) for row in edits if (row > 0).any()]
        return round(float(np.mean(means)), 4) if means else None

    def success(self, rule_set: str, group: str, budget: float | None = None) -> Interval:
        """The mean success rate over a group of targets, with a 95 % interval by text."""
        rates, drawn = (self._rates, self._drawn) if budget is None else self._within(budget)
        row, targets = self._row(rule_set), self._groups[group]
        interval = centred_interval(_mean(rates[row, targets]), _means(drawn[:, row, targets]))
        return {name: None if end is None else min(1.0, max(0.0, end)) for name, end in interval.items()}

    def compare(self, first: str, second: str, group: str) -> Comparison:
        """Two rule sets on the texts that both have attacked, text by text."""
        rows, targets = [self._row(first), self._row(second)], self._groups[group]
        fooled, counted = self.fooled()[rows][:, targets], self.counted[rows][:, targets]
        both: Flags = np.logical_and.reduce(counted, axis=0)
        ahead, behind = (fooled[0] & ~fooled[1] & both), (fooled[1] & ~fooled[0] & both)
        balance = (ahead.sum(axis=0) - behind.sum(axis=0)).tolist()
        successes = [_mean(shares(entry, both)) for entry in fooled]
        pair = np.stack([both, both])
        drawn = _means(resampled_shares(fooled[0] & both, pair[0], seed=self._seed)) - _means(
            resampled_shares(fooled[1] & both, pair[1], seed=self._seed)
        )
        return Comparison(
            first=first,
            second=second,
            among=group,
            targets=int(targets.sum()),
            texts=int(both.any(axis=0).sum()),
            success=(_rounded(successes[0]), _rounded(successes[1])),
            difference=centred_interval(successes[0] - successes[1], drawn),
            only=(int(ahead.sum()), int(behind.sum())),
            p=round(sign_flips(balance), 6) if both.any() else None,
        )

    def compare_families(self, rule_set: str, first: str, second: str) -> FamiliesCompared:
        """Two families of targets on the texts that were attacked in both, text by text."""
        row = self._row(rule_set)
        fooled, counted = self.fooled()[row], self.counted[row]
        rates = [
            shares(fooled[targets].T, counted[targets].T) for targets in (self._groups[first], self._groups[second])
        ]
        differences = rates[0] - rates[1]
        measured = differences[np.isfinite(differences)]
        if not measured.size:
            return FamiliesCompared(first, second, 0, None, None)
        p = round(sign_flip_test(measured.tolist(), self._seed), 6)
        return FamiliesCompared(first, second, int(measured.size), round(float(measured.mean()), 6), p)

    def universal(self, rule_set: str) -> tuple[str, ...]:
        """The texts that every target gets right before and wrong after."""
        if rule_set not in self.rule_sets or not self.targets:
            return ()
        fooled = self.fooled()[self._row(rule_set)].all(axis=0)
        return tuple(id for id, all_fooled in zip(self.ids, fooled.tolist(), strict=True) if all_fooled)

    def attacked(self, target: str) -> int:
        """How many texts of a target were attacked by the first rule set; the same by all, as a rule."""
        return int(self.counted[0, self.targets.index(target)].sum()) if self.rule_sets else 0

    def _row(self, rule_set: str) -> int:
        return self.rule_sets.index(rule_set)

    @cached_property
    def _rates(self) -> NDArray[np.float64]:
        return shares(self.fooled(), self.counted)

    @cached_property
    def _drawn(self) -> NDArray[np.float32]:
        return resampled_shares(self.fooled(), self.counted, seed=self._seed)

    def _within(self, budget: float) -> tuple[NDArray[np.float64], NDArray[np.float32]]:
        if budget not in self._budgets:
            fooled = self.fooled(budget)
            rates = shares(fooled, self.counted)
            self._budgets[budget] = rates, resampled_shares(fooled, self.counted, seed=self._seed)
        return self._budgets[budget]

    @cached_property
    def _budgets(self) -> dict[float, tuple[NDArray[np.float64], NDArray[np.float32]]]:
        return {}


def _mean(values: NDArray[Any]) -> float:
    measured = values[np.isfinite(values)]
    return float(measured.mean()) if measured.size else float("nan")


def _means(drawn: NDArray[Any]) -> NDArray[np.floating]:
    """The mean over targets in each resample; NaN where a resample has none."""
    counted = np.isfinite(drawn)
    with np.errstate(invalid="ignore"):
        means: NDArray[np.floating] = np.where(counted, drawn, 0).sum(axis=1) / counted.sum(axis=1)
    return means


def _rounded(value: float) -> float | None:
    return round(value, 6) if np.isfinite(value) else None
