"""The betting bound: how many changes are safe after each round of copies, and whether more rounds could say more.

Copies show a part of the words of a text, drawn at random. A round is one antithetic group of copies, which share no
word (`core.masks.draw_antithetic_masks`, `core.partitions.keep_antithetic_words`), or a single copy. Each copy alone is
distributed like any other, so the mean lead of class c over class j in a round has the expectation p_c - p_j. But what
single words do evens out within a group, and its mean varies less than that of as many independent copies. The copies
of a group are not independent of each other, so no binomial limit holds; the rounds are independent.

Theorem (Ville 1939; Waudby-Smith & Ramdas 2024, Estimating means of bounded random variables by betting). Let X_1, X_2,
… be the mean leads of rounds, independent, in [-1, 1], with mean m, and let a stake s_t in [0, 1 / (1 + τ)) depend on
earlier rounds only. If m <= τ the wealth ∏ (1 + s_t (X_t - τ)) is a supermartingale that starts at 1, and ever reaches
1 / alpha with probability at most alpha. The same holds if at the end U / alpha is enough, for one randomizer U drawn
uniformly from (0, 1] apart from the rounds, if the end depends on the rounds only, never on U (Ramdas & Manole 2024,
Randomized and exchangeable improvements of Markov's, Chebyshev's and Chernoff's inequalities): given the wealth K where
it first reached 1 / alpha, or else at the end, the probability is that of U <= alpha K, at most alpha K, and K has mean
1 at most. Stopping when U / alpha is reached is wrong more often: with probability up to alpha (1 + log(1 / alpha)).

Which stakes those are decides how soon bets are won, and nothing else: see `stakes`.

So d changes are safe if for every other class j, and for every e <= d, the wealth against "p_c - p_j <= 2 loss(e)" has
once reached 1 / alpha or is U / alpha in the end. If r is the largest radius that is true, some class j has p_c - p_j
<= 2 loss(r + 1), and a claim of more than r needs the wealth of that one bet: alpha is paid once, whatever the number
of looks, radii and classes. If c is not the leading class the same holds with "p_c - p_j <= 0". The majority rule has
p_c itself, in [0, 1], in place of the lead.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from stockade.certificates.bounds import Number, Rule
from stockade.certificates.confidence import check_alpha
from stockade.certificates.stakes import stake_table
from stockade.core.errors import OptionError

Rounds = NDArray[np.float64]
"""A row for each round, a column for each class: the votes, or the probabilities, of its copies together."""
_LOG_SLACK = 1e-9
_LARGEST_STAKE = 0.99
"""Of what may be staked without ever losing all."""
_PRIOR_ROUNDS = 0.1
"""So many rounds are added to those drawn when moments are computed, half of them won outright and half lost outright,
so that a few equal ones do not tempt.
"""
_LEAST_VARIANCE = 1e-4
_BLOCK = 0.02
"""Stakes are computed anew after so many rounds for each one played, and after each of the first: more often would be
slow.
"""
_SOON, _CAREFUL = 0.3, 2.0
"""Stakes may be those of the fastest growth if they win within this share of the rounds, even if the lead is less than
so far by so many standard errors.
"""


@dataclass(frozen=True, slots=True)
class BettingPlan:
    """What is fixed before the first round.

    Parameters
    ----------
    alpha : float
        The probability that the bound may be wrong.
    most : int
        The largest number of copies.
    copies_per_round : int
        The size of an antithetic group, or 1.
    """

    alpha: float
    most: int
    copies_per_round: int

    def __post_init__(self) -> None:
        check_alpha(self.alpha)
        if min(self.most, self.copies_per_round) < 1:
            values = f"most {self.most}, copies_per_round {self.copies_per_round}"
            raise OptionError(f"A round needs at least one copy (found: {values}).")

    @property
    def rounds(self) -> int:
        """How many rounds there may be."""
        return max(1, self.most // self.copies_per_round)

    @property
    def log_threshold(self) -> float:
        """The logarithm of the wealth that proves, with more on top than rounding can be wrong."""
        return -math.log(self.alpha) + _LOG_SLACK


class Bets:
    """The wealth of bets on the leads of several rivals, each against several levels: a row and a column each.

    Parameters
    ----------
    plan : BettingPlan
        What was fixed before the first round.
    rule : Rule
        Whether leads ("gap", from -1 to 1) or shares ("majority", from 0 to 1) are bet on.
    levels : Sequence[Number]
        What each lead may have to exceed: "at most this level" is bet against.
    pilot : Rounds
        Leads of earlier rounds, a column for each rival: they set the first stakes and are not bet on.
    """

    def __init__(self, plan: BettingPlan, rule: Rule, levels: Sequence[Number], pilot: Rounds) -> None:
        self.plan = plan
        self._levels = np.array([_above(level) for level in levels])
        worst = -1.0 if rule == "gap" else 0.0
        self._largest_stakes = _LARGEST_STAKE / (self._levels - worst)
        self._largest_variances = (1 - self._levels) * (self._levels - worst)
        self._table = stake_table(plan.alpha)
        prior = _PRIOR_ROUNDS * (_powers(np.ones((1, 1))) + _powers(np.full((1, 1), worst))) / 2
        self._sums: Rounds = prior[0] + _powers(pilot).sum(axis=0)
        self.log_wealth: Rounds = np.zeros((pilot.shape[1], len(self._levels)))
        self.peak: Rounds = self.log_wealth
        self.played, self._restake = 0, 0
        self._stakes = self.log_wealth

    def play(self, leads: Rounds) -> None:
        """Bet on rounds, one after another: each stake depends on the rounds before it only."""
        while len(leads):
            if self.played == self._restake:
                self._stakes = self._next_stakes()
                self._restake += max(1, int(_BLOCK * self.played))
            block, leads = np.split(leads, [self._restake - self.played])
            gains = np.log1p(self._stakes * (block[:, :, None] - self._levels))
            log_wealth = np.cumsum(np.concatenate([self.log_wealth[None], gains]), axis=0)
            self.peak = np.maximum(self.peak, log_wealth.max(axis=0))
            self.log_wealth = log_wealth[-1]
            self._sums = np.cumsum(np.concatenate([self._sums[None], _powers(block)]), axis=0)[-1]
            self.played += len(block)

    def won(self) -> NDArray[np.bool_]:
        """Which bets have once reached 1 / alpha."""
        return self.peak >= self.plan.log_threshold

    def power(self, level: int) -> Rounds:
        """For each rival the chance that a bet that is not won yet will be, in the rounds that are left.

        That is Browne's for the best stakes, Φ(Φ⁻¹(alpha · wealth) + drift · √left) with leads in units of their
        deviation, in the mean over the drifts that rounds so far leave likely: Normal around the mean so far.
        """
        left = self.plan.rounds - self.played
        shares = np.exp(np.minimum(self.log_wealth[:, level] - self.plan.log_threshold, -_LOG_SLACK))
        mean, variance, variances = self._moments()
        drift = (mean - self._levels[level]) / np.sqrt(variances[:, level])
        spread = 1 + left / self._sums[0] * variance / variances[:, level]
        chance: Rounds = ndtr((ndtri(np.maximum(shares, 1e-300)) + drift * math.sqrt(left)) / np.sqrt(spread))
        return np.where(self.won()[:, level], 1.0, chance)

    def _next_stakes(self) -> Rounds:
        """Those of the table, in units of the leads; or those of the fastest growth, where they are larger and soon
        enough. Never more than can be lost.
        """
        mean, variance, variances = self._moments()
        stakes = self._table.at(self.played / self.plan.rounds, self.log_wealth)
        stakes /= np.sqrt(variances * self.plan.rounds)
        careful = (mean - _CAREFUL * np.sqrt(variance / self._sums[0]))[:, None]
        fastest = (careful - self._levels) / variances
        growth = fastest * (careful - self._levels) / 2
        soon = growth * _SOON * self.plan.rounds > self.plan.log_threshold - self.log_wealth
        stakes = np.where(soon & (careful > self._levels), np.maximum(stakes, fastest), stakes)
        return np.minimum(stakes, self._largest_stakes)

    def _moments(self) -> tuple[Rounds, Rounds, Rounds]:
        """Mean and variance of the leads so far; and the variance they would have at each level.

        Stakes are about leads whose mean is the level, and with another mean they also have another variance: of 0.02 ·
        0.98 for votes with a share of 0.98, but 0.1 · 0.9 at 0.9. For leads that are tilted exponentially to another
        mean the variance changes by the third moment over the variance, for each unit of the mean, to the first order.
        Less the square of the difference in means it is exact for votes; that of a group is divided by its size.
        """
        number, total, squares, cubes = self._sums
        mean = total / number
        variance = np.maximum(squares / number - mean * mean, _LEAST_VARIANCE)
        third = cubes / number - 3 * mean * squares / number + 2 * mean**3
        edge = mean[:, None] - self._levels
        slope = (third / variance)[:, None]
        at_level = variance[:, None] - edge * slope - edge * edge / self.plan.copies_per_round
        return mean, variance, np.clip(at_level, _LEAST_VARIANCE, self._largest_variances)


class BettingTest:
    """All bets on a text: a row for each other class, a column for each level.

    Parameters
    ----------
    plan : BettingPlan
        What was fixed before the first round.
    rule : Rule
        Whether the lead ("gap") or the share ("majority") of the class is bet on.
    chosen : int
        The class.
    levels : Sequence[Number]
        What the lead (the share) may have to exceed, from the lowest up: "at most this level" is bet against.
    pilot : Rounds
        The rounds that chose the class: they set the first stakes and are not bet on.
    """

    def __init__(self, plan: BettingPlan, rule: Rule, chosen: int, levels: Sequence[Number], pilot: Rounds) -> None:
        self.plan, self.rule, self.chosen = plan, rule, chosen
        self._number = len(levels)
        self._bets = Bets(plan, rule, levels, self._leads(pilot))

    def bet_on(self, rounds: Rounds) -> None:
        """Bet on rounds, one after another: each stake depends on the rounds before it only."""
        self._bets.play(self._leads(rounds))

    def rejected_levels(self, randomizer: float) -> int:
        """After the last round: how many levels the lead exceeds for sure, counted from the lowest up."""
        enough_now = self._bets.log_wealth >= self.plan.log_threshold + math.log(randomizer)
        return _rejected_in_a_row(self._bets.won() | enough_now)

    def wealth(self, level: int) -> tuple[float, float]:
        """The wealth of the worst bet against this level, as a multiple of what it began with: at its peak, and now."""
        with np.errstate(over="ignore"):  # a wealth beyond all numbers is infinite
            peak, now = (float(np.exp(values[:, level].min())) for values in (self._bets.peak, self._bets.log_wealth))
        return peak, now

    def finished(self, target: int | None = None, least_power: float = 0.0) -> bool:
        """Whether more rounds are not worth it.

        So it is when none is left, when a target is reached, or when the estimated chance to reach the next level (or
        the target) is too small. Stopping for lack of hope can only make a radius smaller than it might have been,
        never wrong.

        Parameters
        ----------
        target : int, optional
            The level that matters; the first that is not exceeded for sure, if there is none.
        least_power : float
            How large that chance must be for more rounds.
        """
        sure = _rejected_in_a_row(self._bets.won())
        aim = sure if target is None else target
        if self._bets.played >= self.plan.rounds or sure > aim or aim >= self._number:
            return True
        return bool(self._bets.power(aim).min() < least_power)

    def _leads(self, rounds: Rounds) -> Rounds:
        return leads_of(rounds, self.rule, self.chosen) / self.plan.copies_per_round


def leads_of(votes: Rounds, rule: Rule, chosen: int) -> Rounds:
    """The votes of a class less those of each other class, or (rule "majority") its votes alone."""
    ahead = votes[:, [chosen]]
    return ahead if rule == "majority" else ahead - np.delete(votes, chosen, axis=1)


def _powers(leads: Rounds) -> Rounds:
    """For each round and rival: 1, the lead, its square, its cube."""
    return np.stack([np.ones_like(leads), leads, leads**2, leads**3], axis=1)


def _rejected_in_a_row(rejected: NDArray[np.bool_]) -> int:
    """How many levels, from the lowest up, have all their bets won."""
    return int(np.logical_and.accumulate(rejected.all(axis=0)).sum())


def _above(level: Number) -> float:
    """The nearest float that is not below."""
    near = float(level)
    return near if near >= level else math.nextafter(near, math.inf)
