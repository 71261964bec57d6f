"""Confidence intervals of shares, tests of paired counts, and what guessing would do."""

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


def even_split_p(first: int, second: int) -> float:
    """The two-sided p of counts as uneven as these, if every case is as likely on either side."""
    from scipy.stats import binomtest

    return float(binomtest(first, first + second).pvalue) if first + second else 1.0


def mcnemar(first: int, second: int) -> float:
    """McNemar's exact two-sided p: whether the two kinds of disagreement, so many each, are equally likely."""
    return even_split_p(first, second)


def sign_flips(differences: Sequence[int]) -> float:
    """The exact two-sided p of a sign-flip test: whether each difference could as well have had the other sign.

    A difference belongs to a text: how much more often it is robust in one row than in the other, over all seeds. The
    seeds of a text go together, because they are no new texts. With a single seed it is McNemar's exact test.
    """
    import numpy as np
    from scipy.stats import binom

    sizes = Counter(abs(difference) for difference in differences if difference)
    chances = np.ones(1)
    for size, count in sizes.items():
        steps = np.zeros(2 * size * count + 1)
        steps[:: 2 * size] = binom.pmf(np.arange(count + 1), count, 0.5)
        chances = np.convolve(chances, steps)
    largest = len(chances) // 2
    sums = np.arange(-largest, largest + 1)
    return min(1.0, float(chances[np.abs(sums) >= abs(sum(differences))].sum()))


def below_chance(right: int, texts: int, classes: int) -> bool:
    """Whether guessing among `classes` would be right on so few of `texts` less than once in 20 times."""
    from scipy.stats import binom

    return bool(binom.cdf(right, texts, 1 / classes) < _RARE)
