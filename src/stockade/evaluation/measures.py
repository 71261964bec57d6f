"""Numbers over seeds: each seed's share with its own interval, their mean, and how far the seeds lie apart."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import fmean, stdev
from typing import Any

from stockade.core.statistics import sign_flips, wilson
from stockade.evaluation.outcomes import Fate

Measure = Mapping[str, Any]
"""`value` is the mean over seeds; `low` and `high` enclose the 95 % Wilson intervals of all seeds, which speak of the
choice of texts; `over_seeds` is the 95 % t-interval of the mean, which speaks of the random choices; `by_seed` has each
seed's own.
"""


def share_over_seeds(found: Mapping[int, tuple[int, int]]) -> Measure:
    """A share of hits among trials by seed."""
    return measure({seed: wilson(hits, trials) for seed, (hits, trials) in found.items()})


def measure(by_seed: Mapping[int, Mapping[str, float | None]]) -> Measure:
    values = [one["value"] for one in by_seed.values() if one["value"] is not None]
    lows = [one["low"] for one in by_seed.values() if one["low"] is not None]
    highs = [one["high"] for one in by_seed.values() if one["high"] is not None]
    return {
        "value": fmean(values) if values else None,
        "low": min(lows) if lows else None,
        "high": max(highs) if highs else None,
        "over_seeds": t_interval(values),
        "by_seed": {str(seed): dict(one) for seed, one in by_seed.items()},
    }


def t_interval(values: Sequence[float]) -> dict[str, float] | None:
    """The mean of shares with its 95 % t-interval, kept inside [0, 1]; None for less than two."""
    if len(values) < 2:
        return None
    from scipy.stats import t

    middle = fmean(values)
    half = float(t.ppf(0.975, len(values) - 1)) * stdev(values) / math.sqrt(len(values))
    return {"value": middle, "low": max(0.0, middle - half), "high": min(1.0, middle + half)}


def macro_f1(labels: Sequence[str], predicted: Sequence[str | None]) -> float | None:
    """The mean of the F1 of all classes that occur among true or predicted labels, over the texts with an answer."""
    pairs = [(label, answer) for label, answer in zip(labels, predicted, strict=True) if answer is not None]
    classes = {name for pair in pairs for name in pair}
    if not classes:
        return None
    scores = []
    for name in classes:
        hits = sum(label == answer == name for label, answer in pairs)
        named = sum((label == name) + (answer == name) for label, answer in pairs)
        scores.append(2 * hits / named)
    return fmean(scores)


def paired(by_seed: Sequence[tuple[Mapping[str, Fate], Mapping[str, Fate]]]) -> dict[str, float | int]:
    """The test of two rows on the same texts, given what came of them with each seed: `gained` texts are robust with
    more seeds in the first row, `lost` ones in the second. Where a text is unknown in either, that seed of it is left
    out.
    """
    more: Counter[str] = Counter()
    for one, other in by_seed:
        for text, fate in one.items():
            if fate != "unknown" and other.get(text, "unknown") != "unknown":
                more[text] += (fate == "robust") - (other[text] == "robust")
    return compared(more)


def compared(more: Mapping[str, int]) -> dict[str, float | int]:
    """The test of two rows, given with how many more seeds each text is robust in the first."""
    gained = sum(difference > 0 for difference in more.values())
    lost = sum(difference < 0 for difference in more.values())
    return {"texts": len(more), "gained": gained, "lost": lost, "p": sign_flips(list(more.values()))}


def told_p(p: float) -> str:
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"
