"""Shares with their intervals, the paired test of two of them, and what chance would do."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

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


def even_split_p(one: int, other: int) -> float:
    """The chance of counts as uneven as these, or more so to either side, if every case falls on both sides alike."""
    from scipy.stats import binomtest

    return float(binomtest(one, one + other).pvalue) if one + other else 1.0


def mcnemar(one: int, other: int) -> float:
    """The exact two-sided p that both kinds of disagreement, `one` and `other` often, are equally likely."""
    return even_split_p(one, other)


def sign_flips(differences: Sequence[int]) -> float:
    """The exact two-sided p that each of these differences could as well have had the other sign.

    One difference belongs to one text: how much more often it is robust in one row than in the other, over all seeds.
    The seeds of a text go together, because they are no new texts. With one seed it is McNemar's exact test.
    """
    import numpy as np
    from scipy.stats import binom

    sizes = Counter(abs(one) for one in differences if one)
    chances = np.ones(1)
    for size, often in sizes.items():
        steps = np.zeros(2 * size * often + 1)
        steps[:: 2 * size] = binom.pmf(np.arange(often + 1), often, 0.5)
        chances = np.convolve(chances, steps)
    reach = len(chances) // 2
    sums = np.arange(-reach, reach + 1)
    return min(1.0, float(chances[np.abs(sums) >= abs(sum(differences))].sum()))


def below_chance(right: int, texts: int, classes: int) -> bool:
    """Whether guessing among `classes` would be right on so few of `texts` less than once in 20 times."""
    from scipy.stats import binom

    return bool(binom.cdf(right, texts, 1 / classes) < _RARE)
