"""Radii of many texts: medians, the curve of certified accuracy, and its confidence band.

A radius of None stands for a text with no certificate: a wrong prediction, or no decision. It counts as less than 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeVar

from stockade.certificates.confidence import check_alpha
from stockade.core.errors import OptionError

_Number = TypeVar("_Number", int, float)


def median_bound(radii: Sequence[int | None]) -> int | None:
    """The largest radius that at least half of all texts have (Zeng et al. 2021, §4.1, MCB); None: fewer are certified.

    The ceil(n / 2)-th largest, so that the sentence is true for even numbers too. Difference to the paper's code, which
    counts a missing certificate as -1 and takes the arithmetic median: half of 3 and None there gives 1.
    """
    return _upper_median(radii)


def median_rate(radii: Sequence[int | None], words: Sequence[int]) -> float | None:
    """The same for the radius as a share of the words of each text (MCR)."""
    if len(radii) != len(words) or any(count < 1 for count in words):
        raise OptionError(f"Each of {len(radii)} texts needs its number of words, 1 or more (found: {list(words)}).")
    return _upper_median(
        [None if radius is None else radius / count for radius, count in zip(radii, words, strict=True)]
    )


def certified_curve(radii: Sequence[int | None]) -> tuple[float, ...]:
    """The share of all texts with a radius of at least d, for d = 0 up to the largest; (0.0,) if none is certified."""
    _check_texts(radii)
    certified = [radius for radius in radii if radius is not None]
    return tuple(sum(radius >= d for radius in certified) / len(radii) for d in range(max(certified, default=0) + 1))


def curve_band(radii: Sequence[int | None], alpha: float = 0.05) -> tuple[tuple[float, float], ...]:
    """A confidence band for `certified_curve`: for each point a low and a high end.

    The band holds for all d at once with probability 1 - alpha, if the texts are independent draws from one
    distribution: the curve is one minus a distribution function, and by Dvoretzky, Kiefer & Wolfowitz with Massart's
    (1990) constant an empirical one is nowhere farther than sqrt(log(2 / alpha) / 2n) from the true one, steps or not.
    It takes the certificates as they are; that each may be wrong itself is a matter of `corrected_alpha`.
    """
    check_alpha(alpha)
    width = math.sqrt(math.log(2 / alpha) / (2 * max(1, len(radii))))
    return tuple((max(0.0, share - width), min(1.0, share + width)) for share in certified_curve(radii))


def corrected_alpha(alpha: float, texts: int) -> float:
    """The alpha for each text such that all certificates hold together with probability 1 - alpha (Bonferroni)."""
    check_alpha(alpha)
    if texts < 1:
        raise OptionError(f"A set has at least one text (found: {texts}).")
    return alpha / texts


def _upper_median(values: Sequence[_Number | None]) -> _Number | None:
    _check_texts(values)
    ordered = sorted((value for value in values if value is not None), reverse=True)
    place = math.ceil(len(values) / 2) - 1
    return ordered[place] if place < len(ordered) else None


def _check_texts(values: Sequence[object]) -> None:
    if not values:
        raise OptionError("There are no texts to sum up: certify at least one.")
