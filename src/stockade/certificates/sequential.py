"""Sequential analysis: limits that hold at every interim look at the copies of a text, and when to stop.

Five schemes, each wrong with probability at most alpha for a text, however many looks there are:

    betting     bets on rounds of copies that have no word in common: see `betting`, not this module
    curtailed   Clopper–Pearson at the looks of a schedule that was fixed beforehand, half of alpha at the last, the
                other half shared by those before; stops as soon as the last look could not say more
    spending    the same with alpha / looks at each, until the upper limit allows no more
    anytime     a mixture martingale, valid at every number of copies
    fixed       one look, at all the copies

The copies that chose the class must not be among those that are counted here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from stockade.certificates.bounds import Number, Rule, largest_radius
from stockade.certificates.confidence import (
    anytime_high,
    anytime_low,
    bernstein_high,
    bernstein_low,
    check_alpha,
    chernoff_high,
    chernoff_low,
    clopper_pearson_high,
    clopper_pearson_low,
    hypergeometric_high,
    hypergeometric_low,
)
from stockade.core.errors import OptionError

Scheme = Literal["betting", "curtailed", "spending", "anytime", "fixed"]
SCHEMES: tuple[Scheme, ...] = ("curtailed", "spending", "anytime", "fixed")
"""Those that look at sums of copies, in whatever order they came."""
_ROUNDING = 1e-9
_OPTIMISM = 2.0
"""How many standard deviations better than so far the copies to come may be, when it is asked whether they could help.
"""


def look_schedule(most: int, first: int = 50, growth: float = 1.5) -> tuple[int, ...]:
    """After how many copies to look: first, then each time `growth` times as many, `most` in the end."""
    if most < 1 or first < 1 or not growth > 1:
        values = f"most {most}, first {first}, growth {growth}"
        raise OptionError(f"Looks need at least one copy and a growth of more than 1 (found: {values}).")
    looks, size = [], float(first)
    while size < most:
        looks.append(int(size))
        size = max(size * growth, int(size) + 1)
    return tuple(dict.fromkeys([*looks, most]))


@dataclass(frozen=True, slots=True)
class Plan:
    """How copies are drawn and looked at, fixed before the first one is drawn."""

    scheme: Scheme
    alpha: float
    looks: tuple[int, ...]
    population: int | None = None
    """Copies are drawn without replacement from so many; None: they are independent."""

    def __post_init__(self) -> None:
        check_alpha(self.alpha)
        if self.scheme not in SCHEMES:
            raise OptionError(f'There is no scheme "{self.scheme}" (found: {", ".join(SCHEMES)}).')
        if not self.looks or self.looks[0] < 1 or any(a >= b for a, b in zip(self.looks, self.looks[1:], strict=False)):
            raise OptionError(f"Looks must be growing numbers of copies (found: {self.looks}).")
        if self.scheme == "fixed" and len(self.looks) > 1:
            raise OptionError(f'The scheme "fixed" looks once (found: {len(self.looks)} looks): use "spending".')
        if self.population is not None and self.looks[-1] > self.population:
            raise OptionError(
                f"There are only {self.population} distinct copies, the last look is at {self.looks[-1]}."
            )

    def alpha_at(self, copies: int) -> float:
        """What is paid at the look at so many copies."""
        if self.scheme in ("anytime", "fixed") or len(self.looks) == 1:
            return self.alpha
        if self.scheme == "spending":
            return self.alpha / len(self.looks)
        return self.alpha / 2 if copies == self.looks[-1] else self.alpha / 2 / (len(self.looks) - 1)


@dataclass(frozen=True, slots=True)
class Tally:
    """Votes by class; copies that vote for nothing are in `copies` only."""

    counts: tuple[int, ...]
    copies: int

    def __post_init__(self) -> None:
        if min(self.counts, default=0) < 0 or sum(self.counts) > self.copies:
            raise OptionError(f"{self.copies} copies cannot cast the votes {self.counts}.")


@dataclass(frozen=True, slots=True)
class Means:
    """Sums of the probabilities by class, and of their squares."""

    totals: tuple[float, ...]
    squares: tuple[float, ...]
    copies: int

    def __post_init__(self) -> None:
        slack = _ROUNDING * (self.copies + 1)
        if len(self.totals) != len(self.squares):
            raise OptionError(f"{len(self.totals)} sums of probabilities have {len(self.squares)} sums of squares.")
        if min(self.totals, default=0.0) < 0 or sum(self.totals) > self.copies + slack:
            raise OptionError(f"The probabilities of {self.copies} copies cannot sum to {self.totals}.")


@dataclass(frozen=True, slots=True)
class Limits:
    """`low` is what a certificate may rest on; `high` only says when to stop."""

    low: Number
    high: Number


@dataclass(frozen=True, slots=True)
class Decision:
    """How many changes are safe as of now (None: abstain), and whether more copies could say more."""

    radius: int | None
    done: bool


def margin_limits(tally: Tally | Means, chosen: int, plan: Plan, rule: Rule) -> Limits:
    """Limits of p_c (majority) or of p_c - max p_j over the other classes j (gap).

    For the gap half of alpha pays for the lower limit of p_c, half for the largest upper limit of any p_j on the same
    copies: the truly second class is one fixed j, its own limit is among those, so that nothing is paid for not
    knowing which it is. (Naming it beforehand from a few copies, and bounding only that one, is not valid.) With two
    classes p_j <= 1 - p_c gives the gap 2 p_c - 1 from one limit at the full alpha. All copies drawn: no chance left.
    `high` is made the same way; as it only ends the sampling, and what is returned then still rests on `low`, its
    alpha is not part of the risk.
    """
    shares = _Shares(tally, plan)
    others = [label for label in range(shares.classes) if label != chosen]
    if not others or len(others) == shares.classes:
        raise OptionError(f"The chosen class must be one of at least two (found: class {chosen} of {shares.classes}).")
    if rule == "majority":
        return shares.limits(chosen, shares.alpha)
    if len(others) == 1 and not shares.exact:
        leader, rival = shares.limits(chosen, shares.alpha), shares.strongest(others, shares.alpha)
        return Limits(2 * leader.low - 1, leader.high - max(rival.low, 1 - leader.high if shares.all_vote else 0))
    leader, rival = shares.limits(chosen, shares.alpha / 2), shares.strongest(others, shares.alpha / 2)
    return Limits(leader.low - min(rival.high, 1 - leader.low), leader.high - rival.low)


def decide(
    tally: Tally | Means,
    chosen: int,
    plan: Plan,
    rule: Rule,
    losses: Sequence[Number],
    target: int | None = None,
) -> Decision:
    """The radius that is sure at this look, and whether to stop.

    Done when no copy is left, when the upper limit allows no larger radius, or when a target is reached or out of
    reach. The scheme "curtailed" also stops when the last look would not say more, if the copies to come were better
    than those so far by two standard deviations. Stopping early for lack of hope can only make a radius smaller than it
    might have been, never wrong.
    """
    limits = margin_limits(tally, chosen, plan, rule)
    radius = largest_radius(limits.low, losses, rule)
    best = limits.high
    if plan.scheme == "curtailed" and isinstance(tally, Tally) and tally.copies < plan.looks[-1]:
        best = min(best, margin_limits(_optimistic(tally, chosen, plan), chosen, plan, rule).low)
    sure, possible = (-1 if limit is None else limit for limit in (radius, largest_radius(best, losses, rule)))
    done = tally.copies >= plan.looks[-1] or possible <= sure
    if target is not None:
        done = done or sure >= target or possible < target
    return Decision(radius, done)


def _optimistic(tally: Tally, chosen: int, plan: Plan) -> Tally:
    """The votes at the last look, if the chosen class does better in the copies to come than could be expected.

    The others share what is left in proportion to their votes so far; half a vote each keeps that proper.
    """
    more, last = plan.looks[-1] - tally.copies, plan.looks[-1]
    silent = tally.copies - sum(tally.counts)
    smoothed = [votes + 0.5 for votes in (*tally.counts, silent)] if silent else [votes + 0.5 for votes in tally.counts]
    shares = [votes / sum(smoothed) for votes in smoothed]
    share = shares[chosen]
    hoped = min(1.0, share + _OPTIMISM * math.sqrt(share * (1 - share) * (1 / tally.copies + 1 / more)))
    left = (1 - hoped) / (1 - share)
    counts = [
        votes + round(more * (hoped if label == chosen else shares[label] * left))
        for label, votes in enumerate(tally.counts)
    ]
    counts[chosen] -= max(0, sum(counts) - last)
    return Tally(tuple(counts), last)


def choose_class(counts: Sequence[float]) -> int:
    """The class with most votes; of equals the one with the smaller index."""
    if not counts:
        raise OptionError("There is no class to choose from: count the votes of at least one.")
    return max(range(len(counts)), key=lambda label: (counts[label], -label))


class _Shares:
    """Limits of one class's share under a plan."""

    def __init__(self, tally: Tally | Means, plan: Plan) -> None:
        self.tally, self.plan = tally, plan
        self.exact = tally.copies == plan.population
        self.classes = len(tally.counts if isinstance(tally, Tally) else tally.totals)
        self.all_vote = isinstance(tally, Means) or sum(tally.counts) == tally.copies
        self.alpha = plan.alpha_at(tally.copies)
        if plan.scheme != "anytime" and not self.exact and tally.copies not in plan.looks:
            raise OptionError(f"Look only after {plan.looks} copies, as planned (found: {tally.copies}).")
        if tally.copies > (plan.population or tally.copies):
            raise OptionError(f"There are only {plan.population} distinct copies, {tally.copies} were counted.")

    def limits(self, label: int, alpha: float) -> Limits:
        if isinstance(self.tally, Tally):
            return self._of_votes(self.tally.counts[label], alpha)
        return self._of_scores(self.tally.totals[label], self.tally.squares[label], alpha)

    def strongest(self, labels: Sequence[int], alpha: float) -> Limits:
        """The largest lower and the largest upper limit of any of these classes."""
        if isinstance(self.tally, Tally):  # limits grow with the votes
            counts = self.tally.counts
            return self.limits(max(labels, key=lambda label: counts[label]), alpha)
        every = [self.limits(label, alpha) for label in labels]
        return Limits(max(limits.low for limits in every), max(limits.high for limits in every))

    def _of_votes(self, votes: int, alpha: float) -> Limits:
        copies, population = self.tally.copies, self.plan.population
        if self.exact:
            return Limits(Fraction(votes, copies), Fraction(votes, copies))
        if self.plan.scheme == "anytime":
            return Limits(anytime_low(votes, copies, alpha, population), anytime_high(votes, copies, alpha, population))
        if population is not None:
            return Limits(
                hypergeometric_low(votes, copies, population, alpha),
                hypergeometric_high(votes, copies, population, alpha),
            )
        return Limits(clopper_pearson_low(votes, copies, alpha), clopper_pearson_high(votes, copies, alpha))

    def _of_scores(self, total: float, squares: float, alpha: float) -> Limits:
        copies, population = self.tally.copies, self.plan.population
        total = min(total, float(copies))
        if self.exact:
            # Sums of floats are not exact: what they can be off by is taken off.
            return Limits(total / copies - _ROUNDING, total / copies + _ROUNDING)
        if self.plan.scheme == "anytime":
            if population is not None:
                raise OptionError(
                    'Mean probabilities of distinct copies have no limits for "anytime": use "spending" or votes.'
                )
            return Limits(anytime_low(total, copies, alpha), anytime_high(total, copies, alpha))
        if population is not None:
            return Limits(chernoff_low(total, copies, alpha), chernoff_high(total, copies, alpha))
        # Half of alpha each: one is better when the probabilities vary little, the other when they are near 0 and 1.
        low = max(chernoff_low(total, copies, alpha / 2), bernstein_low(total, squares, copies, alpha / 2))
        high = min(chernoff_high(total, copies, alpha / 2), bernstein_high(total, squares, copies, alpha / 2))
        return Limits(low, high)
