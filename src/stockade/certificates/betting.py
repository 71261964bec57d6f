"""Bets on deals of copies: how many changes are sure after each deal, and whether more deals could say more.

Copies show a part of the words of a text, drawn at random. A deal hands out the words to several copies at once
(`core.masks.draw_antithetic_masks`, `core.partitions.keep_antithetic_words`). Each copy alone is as random as any
other, so the mean lead of class c over class j in a deal has the expectation p_c - p_j. But the copies of a deal have
no word in common, what single words do evens out among them, and their mean varies less than that of as many
independent copies. They are not independent of each other, so no binomial limit holds; the deals are.

Theorem (Ville 1939; Waudby-Smith & Ramdas 2024, Estimating means of bounded random variables by betting). Let X_1, X_2,
… be the mean leads of deals, independent, in [-1, 1], with mean m, and let a stake s_t in [0, 1 / (1 + τ)) depend on
earlier deals only. If m <= τ the capital ∏ (1 + s_t (X_t - τ)) is a supermartingale that starts with 1, and ever holds
1 / alpha with chance at most alpha. The same holds if at the end U / alpha is enough, for one U drawn evenly from
(0, 1] apart from the deals, if the end depends on the deals only, never on U (Ramdas & Manole 2024, Randomized and
exchangeable improvements of Markov's, Chebyshev's and Chernoff's inequalities): given the capital K where it first held
1 / alpha, or else at the end, the chance is that of U <= alpha K, at most alpha K, and K has mean 1 at most. Whoever
ends when he sees U / alpha is wrong more often: with chance up to alpha (1 + log(1 / alpha)).

So d changes are sure if for every other class j, and for every e <= d, the capital against "p_c - p_j <= 2 loss(e)" has
once held 1 / alpha or holds U / alpha in the end. If r is the largest radius that is true, some class j has p_c - p_j
<= 2 loss(r + 1), and a claim of more than r needs the capital of that one bet: alpha is paid once, whatever the number
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
"""A row for each deal, a column for each class: the votes, or the probabilities, of its copies together."""
_LOG_SLACK = 1e-9
_BOLDEST = 0.99
"""Of what may be staked without ever losing all. Recorded radii are computed again with this and the next number."""
_UNSEEN = 0.1
"""So many deals of the largest variance there is are added to those seen, so that few equal ones do not tempt."""
_HOPE = 1.5
"""How many standard errors better than so far the deals to come may be, when it is asked whether they could help."""


@dataclass(frozen=True, slots=True)
class BettingPlan:
    """What is fixed before the first deal: at most `most` copies, `copies_per_round` to each deal."""

    alpha: float
    most: int
    copies_per_round: int

    def __post_init__(self) -> None:
        check_alpha(self.alpha)
        if min(self.most, self.copies_per_round) < 1:
            raise OptionError(
                f"A deal needs at least one copy (found: most {self.most}, copies_per_round {self.copies_per_round})."
            )

    @property
    def rounds(self) -> int:
        """How many deals there may be."""
        return max(1, self.most // self.copies_per_round)

    @property
    def log_threshold(self) -> float:
        """The logarithm of the capital that proves, with more on top than rounding can be wrong."""
        return -math.log(self.alpha) + _LOG_SLACK


class BettingTest:
    """The capital of every bet against a text: a row for each other class, a column for each level that its lead (its
    share, by the majority rule) may have to exceed, from the lowest up.

    `earlier` deals, those that chose the class, tell how much to stake at first and are not bet on.
    """

    def __init__(self, plan: BettingPlan, rule: Rule, chosen: int, levels: Sequence[Number], pilot: Rounds) -> None:
        self.plan, self.rule, self.chosen = plan, rule, chosen
        self._levels = np.array([_above(level) for level in levels])
        self._most_staked = _BOLDEST / (self._levels + (1.0 if rule == "gap" else 0.0))
        leads = self._leads(pilot)
        self._sums, self._played = _powers(leads).sum(axis=0), 0
        self._capital = np.zeros((leads.shape[1], len(self._levels)))
        self._peak = self._capital

    def bet_on(self, deals: Rounds) -> None:
        """Bet on deals, one after another: each stake knows the deals before it only."""
        leads = self._leads(deals)
        sums = np.cumsum(np.concatenate([self._sums[None], _powers(leads)]), axis=0)
        gains = np.log1p(self._stakes(sums[:-1]) * (leads[:, :, None] - self._levels))
        capital = np.cumsum(np.concatenate([self._capital[None], gains]), axis=0)
        self._peak = np.maximum(self._peak, capital.max(axis=0))
        self._capital, self._sums, self._played = capital[-1], sums[-1], self._played + len(leads)

    def rejected_levels(self, randomizer: float) -> int:
        """After the last deal: how many levels are exceeded for sure, all below them too."""
        return _first_lost(
            (self._peak >= self.plan.log_threshold) | (self._capital >= self.plan.log_threshold + math.log(randomizer))
        )

    def wealth(self, level: int) -> tuple[float, float]:
        """How many times what it began with the least lucky bet against this level held at best, and holds now."""
        return float(np.exp(self._peak[:, level].min())), float(np.exp(self._capital[:, level].min()))

    def finished(self, target: int | None = None) -> bool:
        """Whether more deals are not worth it.

        So it is when none is left, when a target is reached, or when the next level (or the target) would need more
        deals than there may be, even if the lead were in truth better than so far by a few standard errors. Stopping
        for lack of hope can only make a radius smaller than it might have been, never wrong.
        """
        sure, left = _first_lost(self._peak >= self.plan.log_threshold), self.plan.rounds - self._played
        aim = sure if target is None else target
        return left <= 0 or sure > aim or aim >= len(self._levels) or self._needed(aim) > left

    def _stakes(self, sums: Rounds) -> Rounds:
        """What maximises the growth if the lead is as seen so far, but no less than what pays off by half of the deals
        if it pays off by then at all.
        """
        mean, variance = (values[:, :, None] for values in self._moments(sums))
        edge = mean - self._levels
        patient = np.sqrt(2 * self.plan.log_threshold / (variance * max(1.0, self.plan.rounds / 2)))
        stakes: Rounds = np.minimum(np.maximum(edge / (variance + edge * edge), patient), self._most_staked)
        return stakes

    def _needed(self, level: int) -> float:
        """How many more deals a level may take, at the least."""
        mean, variance = self._moments(self._sums)
        error = np.sqrt(variance / np.maximum(1, self._sums[0]))
        edge = mean + _HOPE * error - self._levels[level]
        missing = np.where(
            self._peak[:, level] >= self.plan.log_threshold, 0.0, self.plan.log_threshold - self._capital[:, level]
        )
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
        return mean, (spread + _UNSEEN * widest) / (number + _UNSEEN)

    def _leads(self, deals: Rounds) -> Rounds:
        own = deals[:, [self.chosen]]
        if self.rule == "majority":
            return own / self.plan.copies_per_round
        return (own - np.delete(deals, self.chosen, axis=1)) / self.plan.copies_per_round


def _powers(leads: Rounds) -> Rounds:
    """For each deal and rival: 1, the lead, its square."""
    return np.stack([np.ones_like(leads), leads, leads * leads], axis=1)


def _first_lost(won: NDArray[np.bool_]) -> int:
    """The first level with a bet that is not won."""
    return int(np.logical_and.accumulate(won.all(axis=0)).sum())


def _above(level: Number) -> float:
    """The float that is not below."""
    near = float(level)
    return near if near >= level else math.nextafter(near, math.inf)
