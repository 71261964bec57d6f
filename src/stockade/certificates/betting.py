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

from stockade.certificates.bounds import Number, Rule
from stockade.certificates.confidence import check_alpha
from stockade.core.errors import OptionError

Rounds = NDArray[np.float64]
"""A row for each round, a column for each class: the votes, or the probabilities, of its copies together."""
_LOG_SLACK = 1e-9
_LARGEST_STAKE = 0.99
"""Of what may be staked without ever losing all. Recorded radii are computed again with this and the next number."""
_PRIOR_ROUNDS = 0.1
"""So many rounds of the largest variance there is are added to those drawn, so that a few equal ones do not tempt."""
_OPTIMISM = 1.5
"""How many standard errors better than so far the rounds to come may be, when it is asked whether they could help."""


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


class BettingTest:
    """The wealth of every bet on a text: a row for each other class, a column for each level.

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
        self._levels = np.array([_above(level) for level in levels])
        self._largest_stakes = _LARGEST_STAKE / (self._levels + (1.0 if rule == "gap" else 0.0))
        leads = self._leads(pilot)
        self._sums, self._played = _powers(leads).sum(axis=0), 0
        self._log_wealth = np.zeros((leads.shape[1], len(self._levels)))
        self._peak = self._log_wealth

    def bet_on(self, rounds: Rounds) -> None:
        """Bet on rounds, one after another: each stake depends on the rounds before it only."""
        leads = self._leads(rounds)
        sums = np.cumsum(np.concatenate([self._sums[None], _powers(leads)]), axis=0)
        gains = np.log1p(self._stakes(sums[:-1]) * (leads[:, :, None] - self._levels))
        log_wealth = np.cumsum(np.concatenate([self._log_wealth[None], gains]), axis=0)
        self._peak = np.maximum(self._peak, log_wealth.max(axis=0))
        self._log_wealth, self._sums, self._played = log_wealth[-1], sums[-1], self._played + len(leads)

    def rejected_levels(self, randomizer: float) -> int:
        """After the last round: how many levels the lead exceeds for sure, counted from the lowest up."""
        needed = self.plan.log_threshold
        return _rejected_in_a_row((self._peak >= needed) | (self._log_wealth >= needed + math.log(randomizer)))

    def wealth(self, level: int) -> tuple[float, float]:
        """The wealth of the worst bet against this level, as a multiple of what it began with: at its peak, and now."""
        return float(np.exp(self._peak[:, level].min())), float(np.exp(self._log_wealth[:, level].min()))

    def finished(self, target: int | None = None) -> bool:
        """Whether more rounds are not worth it.

        So it is when none is left, when a target is reached, or when the next level (or the target) would need more
        rounds than there may be, even if the lead were in truth better than so far by a few standard errors. Stopping
        for lack of hope can only make a radius smaller than it might have been, never wrong.
        """
        sure, left = _rejected_in_a_row(self._peak >= self.plan.log_threshold), self.plan.rounds - self._played
        aim = sure if target is None else target
        return left <= 0 or sure > aim or aim >= len(self._levels) or self._rounds_needed(aim) > left

    def _stakes(self, sums: Rounds) -> Rounds:
        """What maximises the growth if the lead is as so far, but no less than what pays off by half of the rounds if
        it pays off by then at all.
        """
        mean, variance = (values[:, :, None] for values in self._moments(sums))
        edge = mean - self._levels
        patient = np.sqrt(2 * self.plan.log_threshold / (variance * max(1.0, self.plan.rounds / 2)))
        stakes: Rounds = np.minimum(np.maximum(edge / (variance + edge * edge), patient), self._largest_stakes)
        return stakes

    def _rounds_needed(self, level: int) -> float:
        """How many more rounds a level may take, at the least."""
        needed = self.plan.log_threshold
        mean, variance = self._moments(self._sums)
        error = np.sqrt(variance / np.maximum(1, self._sums[0]))
        edge = mean + _OPTIMISM * error - self._levels[level]
        missing = np.where(self._peak[:, level] >= needed, 0.0, needed - self._log_wealth[:, level])
        if np.any((edge <= 0) & (missing > 0)):
            return math.inf
        growth = edge * edge / (2 * (variance + edge * edge))
        return float(np.max(missing / np.maximum(growth, 1e-300)))

    def _moments(self, sums: Rounds) -> tuple[Rounds, Rounds]:
        """Mean and variance of leads with these sums of powers."""
        number, total, squares = np.moveaxis(sums, -2, 0)
        widest = 1.0 if self.rule == "gap" else 0.25
        mean = total / np.maximum(1, number)
        spread = np.maximum(squares - number * mean * mean, 0.0)
        return mean, (spread + _PRIOR_ROUNDS * widest) / (number + _PRIOR_ROUNDS)

    def _leads(self, rounds: Rounds) -> Rounds:
        votes = rounds[:, [self.chosen]]
        if self.rule == "majority":
            return votes / self.plan.copies_per_round
        return (votes - np.delete(rounds, self.chosen, axis=1)) / self.plan.copies_per_round


def _powers(leads: Rounds) -> Rounds:
    """For each round and rival: 1, the lead, its square."""
    return np.stack([np.ones_like(leads), leads, leads * leads], axis=1)


def _rejected_in_a_row(rejected: NDArray[np.bool_]) -> int:
    """How many levels, from the lowest up, have all their bets won."""
    return int(np.logical_and.accumulate(rejected.all(axis=0)).sum())


def _above(level: Number) -> float:
    """The nearest float that is not below."""
    near = float(level)
    return near if near >= level else math.nextafter(near, math.inf)
