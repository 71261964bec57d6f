"""A run's results by attack and text, and the few questions that every part of a study asks them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

import numpy as np

from stockade.core.records import Record
from stockade.runs.run import Run

Records = Mapping[str, Record]
"""The results of one attack by the id of the text."""
Results = Mapping[str, Records]
"""The results of a run by attack."""
Share = Mapping[str, float | None]
"""A value with its 95 % interval, `{"value", "low", "high"}`; None where nothing was counted."""

_RESAMPLES = 2_000
_MOST_AT_ONCE = 4_000_000


def read_results(run: Run, attacks: Sequence[str]) -> Results:
    return {attack: {record.id: record for record in run.records(attack)} for attack in attacks}


def was_attacked(record: Record | None) -> bool:
    return record is not None and record.status in ("success", "failed")


def succeeded(record: Record | None) -> bool:
    return record is not None and record.status == "success"


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


def successes(records: Records) -> list[Record]:
    return [record for record in records.values() if succeeded(record)]


def mean(values: Sequence[float]) -> float | None:
    return round(fmean(values), 6) if values else None


def bootstrap_mean(values: Sequence[float], seed: int = 0) -> Share:
    """A mean with its 95 % percentile bootstrap interval. A single value has no interval: nothing is known of its
    spread.
    """
    middle = mean(values)
    if len(values) < 2:
        return {"value": middle, "low": None, "high": None}
    rng, given = np.random.default_rng(seed), np.asarray(values, dtype=np.float64)
    at_once = max(1, _MOST_AT_ONCE // len(given))
    means: list[float] = []
    while len(means) < _RESAMPLES:
        size = (min(at_once, _RESAMPLES - len(means)), len(given))
        means += given[rng.integers(len(given), size=size)].mean(axis=1).tolist()
    low, high = np.percentile(means, [2.5, 97.5]).tolist()
    return {"value": middle, "low": round(low, 6), "high": round(high, 6)}
