"""How far raters agree: Krippendorff's alpha, for labels and for scales.

Krippendorff, Computing Krippendorff's Alpha-Reliability (2011): one less the ratio of the disagreement within units to
that expected of values drawn from all of them, each pair of values counted by how far apart they are. 1 is perfect
agreement, 0 is what chance would give, below 0 raters disagree more than by chance.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from itertools import combinations
from typing import Literal

Metric = Literal["nominal", "ordinal"]


def krippendorff_alpha(units: Sequence[Sequence[Hashable]], metric: Metric = "nominal") -> float | None:
    """Krippendorff's alpha; None where nothing can be compared: no unit with two values, or all values alike.

    Parameters
    ----------
    units
        For each rated row the values that raters gave it; those with fewer than two values are left out.
    metric
        `nominal` for labels, which are alike or not; `ordinal` for ranks, which must be sortable.
    """
    compared = [unit for unit in units if len(unit) >= 2]
    totals = Counter(value for unit in compared for value in unit)
    if len(totals) < 2:
        return None
    distances = _distances(totals, metric)
    within = sum(
        2 * sum(distances[frozenset(pair)] for pair in combinations(unit, 2) if pair[0] != pair[1]) / (len(unit) - 1)
        for unit in compared
    )
    between = sum(2 * totals[a] * totals[b] * distances[frozenset((a, b))] for a, b in combinations(totals, 2))
    return round(1 - (sum(totals.values()) - 1) * within / between, 6)


def _distances(totals: Counter[Hashable], metric: Metric) -> dict[frozenset[Hashable], float]:
    """The squared distance of every two different values."""
    if metric == "nominal":
        return {frozenset(pair): 1.0 for pair in combinations(totals, 2)}
    ranked = sorted(totals)  # type: ignore[type-var]
    distances = {}
    for low, high in combinations(range(len(ranked)), 2):
        ends = totals[ranked[low]] + totals[ranked[high]]
        between = sum(totals[value] for value in ranked[low : high + 1]) - ends / 2
        distances[frozenset((ranked[low], ranked[high]))] = float(between * between)
    return distances
