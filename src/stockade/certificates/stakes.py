"""Stakes with which bets prove nearly what one look at all rounds would prove, and far earlier where the lead is large.

Bets are valid with any stakes that depend on earlier rounds only (see `betting`), so nothing here can make a
certificate wrong; good stakes make the wealth reach 1 / alpha often and early. Stakes for the fastest growth (Kelly)
ignore that the rounds are limited: where the lead is close to what it must exceed they reach 1 / alpha too late.

Take the sum of leads, less what they must exceed, as Brownian motion that starts at 0 and ends at time 1, after the
last round, with variance 1. A group sequential test with an error spending function (Lan & DeMets 1983) rejects "no
drift" where the motion is above a boundary at one of many looks, with probability alpha in all if there is no drift.
Let u(x, t) be the probability that it rejects later, if the motion is at x at time t and has no drift. u(x, t) / alpha
is a martingale that starts at 1 and ends at 1 / alpha or at 0: the wealth of bets with stakes u' / u (u' is the
derivative by x). So those are stakes with which bets have the power of that test. Browne (1999, Reaching goals by a
deadline) shows the same for a single look, which is the most powerful test, and that the stakes need not know the
drift. Real rounds are no Brownian motion: the stake is that of the x at which u is the wealth that the bet really has,
as a share of 1 / alpha, so that errors are made good by the bets to come.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

Array = NDArray[np.float64]
_FIRST_LOOK, _GROWTH = 0.004, 1.06
"""The looks of the test: the first one, as a share of all rounds, and how much later each next one is."""
_EARLY, _POWER = 0.04, 12.0
"""The spending function: this share of alpha evenly over log t, for large leads; of the rest t to this power by t."""
_AIM = 1.1
"""Stakes aim at so many times 1 / alpha. Those that aim at 1 / alpha itself get ever smaller just below it."""
_STEP, _WIDEST = 0.005, 8.0
_LEAST, _MOST = 1e-13, 1 - 1e-9
"""Between these shares of the goal stakes are computed; beyond, those at the end are used."""
_SCORES = np.linspace(-7.0, 6.0, 131)
_DIGITS = 6
"""Stakes are rounded, so that every machine has the same."""


@dataclass(frozen=True, slots=True, eq=False)
class StakeTable:
    """Stakes by time and wealth, for rounds of variance 1 in all.

    Parameters
    ----------
    alpha : float
        The probability that a bound may be wrong.
    times : Array
        The share of the rounds that are over, for each row; growing, from 0.
    stakes : Array
        A column for each of a row of wealths: normal quantiles of the wealth as a share of the goal.
    """

    alpha: float
    times: Array
    stakes: Array

    def at(self, time: float, log_wealth: Array) -> Array:
        """The stakes of bets with these wealths when this share of the rounds is over."""
        row = int(np.searchsorted(self.times, time, side="right")) - 1
        later = min(row + 1, len(self.times) - 1)
        between = (time - self.times[row]) / (self.times[later] - self.times[row]) if later > row else 0.0
        stakes = self.stakes[row] * (1 - between) + self.stakes[later] * between
        shares = np.minimum(np.exp(np.minimum(log_wealth, 700.0)) * (self.alpha / _AIM), _MOST)
        found: Array = np.interp(ndtri(np.maximum(shares, _LEAST)), _SCORES, stakes)
        return found


@lru_cache(maxsize=64)
def stake_table(alpha: float) -> StakeTable:
    """The stakes for this alpha."""
    looks = np.geomspace(_FIRST_LOOK, 1.0, math.ceil(math.log(1 / _FIRST_LOOK) / math.log(_GROWTH)))
    starts = np.concatenate([[0.0], looks[:-1]])
    kernels = [_normal_steps(length) for length in looks - starts]
    places = np.arange(-_WIDEST, _WIDEST + _STEP / 2, _STEP)
    boundary = _boundary(alpha, looks, kernels, len(places))
    rows, reject = [], np.zeros_like(places)
    for at, kernel in zip(boundary[::-1], kernels[::-1], strict=True):
        reject[at:] = 1.0
        reject = np.convolve(np.pad(reject, len(kernel) // 2, mode="edge"), kernel, "valid")
        inside = (reject > _LEAST) & (reject < _MOST)
        slope = np.gradient(np.log(np.maximum(reject, 1e-300)), _STEP)
        rows.append(np.interp(_SCORES, ndtri(reject[inside]), slope[inside]).round(_DIGITS))
    return StakeTable(alpha, starts, np.array(rows[::-1]))


def _boundary(alpha: float, looks: Array, kernels: list[Array], places: int) -> list[int]:
    """For each look the first place at which the test rejects, so that it spends what the spending function allows."""
    density, spent, boundary = np.zeros(places), 0.0, []
    density[places // 2] = 1.0
    for time, kernel in zip(looks, kernels, strict=True):
        density = np.convolve(density, kernel, "same")
        above = np.cumsum(density[::-1])[::-1]
        at = min(int(np.searchsorted(-above, spent - alpha * _spent_by(time))), places - 1)
        boundary.append(at)
        spent += above[at]
        density[at:] = 0.0
    return boundary


def _spent_by(time: float) -> float:
    """The share of alpha that is spent by then."""
    early = max(0.0, 1 - math.log(time) / math.log(_FIRST_LOOK))
    return float(_EARLY * early + (1 - _EARLY) * time**_POWER)


def _normal_steps(variance: float) -> Array:
    """The chances of steps on the grid, of a normal distribution around 0."""
    deviation = math.sqrt(variance)
    most = int(6 * deviation / _STEP) + 1
    edges = (np.arange(-most, most + 2) - 0.5) * _STEP / deviation
    steps: Array = np.diff(ndtr(edges))
    return steps
