"""The results of attacks by attack and text, and the few questions that every study asks them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any, Self

import numpy as np

from stockade.core.records import Record
from stockade.report.numbers import Interval
from stockade.workflows.attack.result import AttackResult

Records = Mapping[str, Record]
"""The results of one attack by the id of the text."""
Results = Mapping[str, Records]
"""The results of several attacks by their name."""

FEW_TEXTS = 30
"""With fewer texts than this, comparisons are mostly chance."""
_RESAMPLES = 2_000
_MOST_AT_ONCE = 4_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class AttackNumbers:
    """The numbers of one attack, as the summary of its run holds them; see docs/runs.md."""

    n: int
    attacked: int
    skipped: int
    succeeded: int
    failed: int
    errors: int
    clean_accuracy: Interval
    robust_accuracy: Interval
    success_rate: Interval
    mean_queries: float | None
    mean_rows: float | None
    cache_hits: int
    mean_perturbed_percent: float | None
    mean_similarity: float | None
    similarity_scale: str | None
    mean_flip_share: float | None
    seconds: float
    model_seconds: float
    model_rows: int
    first_flip_robust_accuracy: Interval | None = None
    first_flip_success_rate: Interval | None = None

    @classmethod
    def of(cls, summary: Mapping[str, Any]) -> Self:
        """The numbers in the summary of one attack."""
        return cls(**{field.name: summary.get(field.name, field.default) for field in dataclasses.fields(cls)})

    @property
    def published_robust_accuracy(self) -> Interval:
        """Robust accuracy as papers count it: one wrong answer of a randomised model is enough."""
        return self.robust_accuracy if self.first_flip_robust_accuracy is None else self.first_flip_robust_accuracy


def read_results(run: AttackResult, attacks: Sequence[str]) -> Results:
    """What a run says about some of its attacks."""
    return {attack: {record.id: record for record in run.records(attack)} for attack in attacks}


def read_numbers(run: AttackResult, attacks: Sequence[str]) -> dict[str, AttackNumbers]:
    """The numbers of some of a run's attacks."""
    return {attack: AttackNumbers.of(run.summary["attacks"][attack]) for attack in attacks}


def was_attacked(record: Record | None) -> bool:
    """Whether the attack tried to change the text: the model was right on it, and nothing went wrong."""
    return record is not None and record.status in ("success", "failed")


def succeeded(record: Record | None) -> bool:
    """Whether the text fools the model."""
    return record is not None and record.status == "success"


def successes(records: Records) -> list[Record]:
    """The texts that fool the model."""
    return [record for record in records.values() if succeeded(record)]


def attacked_by_all(results: Results, attacks: Iterable[str]) -> list[str]:
    """The texts that each of the attacks has tried to change, in the order of the data.

    On the others the model is wrong anyway, or one of the attacks ended in an error and cannot be compared.
    """
    first, *others = attacks
    return [
        text
        for text, record in results[first].items()
        if was_attacked(record) and all(was_attacked(results[other].get(text)) for other in others)
    ]


def mean(values: Sequence[float]) -> float | None:
    """The mean; None if there is nothing."""
    return round(fmean(values), 6) if values else None


def middle(values: Sequence[float]) -> float | None:
    """The median; None if there is nothing."""
    return round(median(values), 6) if values else None


def bootstrap_mean(values: Sequence[float], seed: int = 0) -> Interval:
    """A mean with its 95 % percentile bootstrap interval.

    A single value has no interval: nothing is known of its spread.
    """
    centre = mean(values)
    if len(values) < 2:
        return {"value": centre, "low": None, "high": None}
    rng, sample = np.random.default_rng(seed), np.asarray(values, dtype=np.float64)
    at_once = max(1, _MOST_AT_ONCE // len(sample))
    means: list[float] = []
    while len(means) < _RESAMPLES:
        size = (min(at_once, _RESAMPLES - len(means)), len(sample))
        means += sample[rng.integers(len(sample), size=size)].mean(axis=1).tolist()
    low, high = np.percentile(means, [2.5, 97.5]).tolist()
    return {"value": centre, "low": round(low, 6), "high": round(high, 6)}


def warn_of_few(texts: int) -> list[str]:
    """The warning that goes with few texts; none if there are enough, or nothing was attacked at all."""
    if not 0 < texts < FEW_TEXTS:
        return []
    counted = "1 text was" if texts == 1 else f"{texts} texts were"
    return [f"Only {counted} attacked: read the intervals, the claims may hold or fail by chance."]
