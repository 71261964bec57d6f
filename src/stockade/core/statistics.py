"""Shares with their intervals, the paired test of two of them, and what chance would do."""

from __future__ import annotations

import math

_Z = 1.959963984540054
_RARE = 0.05


def wilson(hits: int, trials: int) -> dict[str, float | None]:
    """A share with its 95 % Wilson score interval, which stays inside [0, 1] and is not empty at 0 and 1."""
    if trials == 0:
        return {"value": None, "low": None, "high": None}
    share, z2 = hits / trials, _Z * _Z
    centre = (share + z2 / (2 * trials)) / (1 + z2 / trials)
    half = _Z / (1 + z2 / trials) * math.sqrt(share * (1 - share) / trials + z2 / (4 * trials * trials))
    return {"value": share, "low": max(0.0, min(share, centre - half)), "high": min(1.0, max(share, centre + half))}


def mcnemar(one: int, other: int) -> float:
    """The exact two-sided p that both kinds of disagreement, `one` and `other` often, are equally likely."""
    from scipy.stats import binomtest

    return float(binomtest(one, one + other).pvalue) if one + other else 1.0


def below_chance(right: int, texts: int, classes: int) -> bool:
    """Whether guessing among `classes` would be right on so few of `texts` less than once in 20 times."""
    from scipy.stats import binom

    return bool(binom.cdf(right, texts, 1 / classes) < _RARE)
