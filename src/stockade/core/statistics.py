"""Confidence intervals of shares, tests of paired counts, and what guessing would do."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

_Z = 1.959963984540054
_RARE = 0.05
_MOST_ENUMERATED, _FLIPS, _MOST_AT_ONCE, _ROUNDING = 16, 20_000, 4_000_000, 1e-9


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


def paired_difference(first: int, second: int, trials: int) -> dict[str, float | None]:
    """The difference of two shares of the same texts, with Tango's 95 % score interval (Statistics in Medicine 1998).

    It is not empty where the two never disagree, as that of a bootstrap would be.

    Parameters
    ----------
    first, second
        How many texts only the first, and only the second, has.
    trials
        How many texts there are.
    """
    if trials == 0:
        return {"value": None, "low": None, "high": None}
    from scipy.optimize import brentq

    def score(difference: float) -> float:
        linear = (2 * trials - first + second) * difference - first - second
        constant = -second * difference * (1 - difference)
        only_second = (math.sqrt(max(0.0, linear * linear - 8 * trials * constant)) - linear) / (4 * trials)
        variance = trials * (2 * only_second + difference * (1 - difference))
        return (first - second - trials * difference) / math.sqrt(max(variance, 1e-300))

    value, edge = (first - second) / trials, 1 - 1e-12
    low = brentq(lambda at: score(at) - _Z, -edge, value) if score(-edge) > _Z else -1.0
    high = brentq(lambda at: score(at) + _Z, value, edge) if score(edge) < -_Z else 1.0
    return {"value": value, "low": float(low), "high": float(high)}


def sign_flip_test(differences: Sequence[float], seed: int = 0) -> float:
    """The two-sided p of a mean of paired differences: how often it is as far from 0 with random signs.

    Exact up to 16 differences; beyond that by 20,000 seeded draws of signs.

    Parameters
    ----------
    differences
        One for each text.
    seed
        Which draws.
    """
    import numpy as np

    values = np.asarray([value for value in differences if value], dtype=np.float64)
    if not len(values):
        return 1.0
    if len(values) <= _MOST_ENUMERATED:
        patterns = np.arange(2 ** len(values))[:, None] >> np.arange(len(values)) & 1
        return float((np.abs((1 - 2 * patterns) @ values) >= abs(values.sum()) - _ROUNDING).mean())
    rng = np.random.default_rng(seed)
    chunks = np.array_split(np.arange(_FLIPS), 1 + _FLIPS * len(values) // _MOST_AT_ONCE)
    least = abs(values.sum()) - _ROUNDING
    hits = sum(
        int((np.abs((1 - 2 * rng.integers(0, 2, size=(len(chunk), len(values)))) @ values) >= least).sum())
        for chunk in chunks
    )
    return (1 + hits) / (1 + _FLIPS)


def below_chance(right: int, texts: int, classes: int) -> bool:
    """Whether guessing among `classes` would be right on so few of `texts` less than once in 20 times."""
    from scipy.stats import binom

    return bool(binom.cdf(right, texts, 1 / classes) < _RARE)


class RunningMean:
    """A running mean that skips None; None before the first value."""

    def __init__(self) -> None:
        self.total, self._count = 0.0, 0

    def add(self, value: float | None) -> None:
        if value is not None:
            self.total += value
            self._count += 1

    @property
    def value(self) -> float | None:
        return round(self.total / self._count, 6) if self._count else None
