"""One-sided confidence limits of a share or a mean: each is wrong with probability at most alpha.

    clopper_pearson   votes of independent copies, one look
    hypergeometric    votes of distinct copies out of a finite number, one look
    anytime           votes or scores in [0, 1] of independent copies, votes of distinct ones, at every look at once
    chernoff          scores in [0, 1], independent or distinct copies, one look
    bernstein         scores in [0, 1] that vary little, independent copies, one look
    betting           scores in [0, 1] in the order in which they were drawn, at every look at once

A limit that comes out of floating-point arithmetic is moved outwards by more than that arithmetic can be wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
from scipy.special import betaincinv, gammaln

from stockade.core.errors import OptionError

_SLACK = 1e-12
_LOG_SLACK = 1e-9
_STEPS = 64


def check_alpha(alpha: float) -> None:
    """Refuse an alpha that is no probability between 0 and 1."""
    if not 0 < alpha < 1:
        raise OptionError(f"alpha is the probability of a wrong limit and must lie between 0 and 1 (found: {alpha}).")


def check_counts(successes: float, trials: int, population: int | None = None) -> None:
    """Refuse counts that are impossible: more successes than trials, or more trials than copies in the population."""
    if trials < 0 or not 0 <= successes <= trials:
        raise OptionError(f"There must be between 0 and {trials} successes in {trials} trials (found: {successes}).")
    if population is not None and trials > population:
        raise OptionError(f"There are only {population} distinct copies, {trials} were counted: draw no copy twice.")


def clopper_pearson_low(successes: int, trials: int, alpha: float) -> float:
    """The lower limit of Clopper & Pearson (1934): the p at which so many successes or more have the chance alpha."""
    check_alpha(alpha)
    check_counts(successes, trials)
    if successes == 0:
        return 0.0
    return _down(float(betaincinv(successes, trials - successes + 1, alpha)))


def clopper_pearson_high(successes: int, trials: int, alpha: float) -> float:
    """The upper limit: one minus the lower limit of the failures."""
    check_counts(successes, trials)
    return _up(1.0 - clopper_pearson_low(trials - successes, trials, alpha))


def hypergeometric_low(successes: int, trials: int, population: int, alpha: float) -> Fraction:
    """The lower limit of the share of successes in a population, from trials drawn without replacement.

    The smallest number K of successes in the population for which so many successes or more in the sample have a
    probability above alpha, by binary search (it grows with K). If all of the population is drawn it is the share
    itself. In a vast population n independent draws repeat one with probability at most n² / 2N and are else such a
    sample, so that the limit of Clopper & Pearson holds at alpha less that.
    """
    check_alpha(alpha)
    check_counts(successes, trials, population)
    if population == 0:
        return Fraction(0)
    repeated = trials * trials / (2 * population)
    if repeated < _LOG_SLACK * alpha:
        return Fraction(clopper_pearson_low(successes, trials, alpha - repeated))
    low, high = successes, population - (trials - successes)
    tail = _hypergeometric_tail(successes, trials, population)
    while low < high:
        middle = (low + high) // 2
        if tail(middle) > alpha * (1 - _LOG_SLACK):
            high = middle
        else:
            low = middle + 1
    return Fraction(low, population)


def hypergeometric_high(successes: int, trials: int, population: int, alpha: float) -> Fraction:
    """The upper limit: one minus the lower limit of the failures."""
    check_counts(successes, trials, population)
    return 1 - hypergeometric_low(trials - successes, trials, population, alpha)


def anytime_low(successes: float, trials: int, alpha: float, population: int | None = None) -> float | Fraction:
    """A lower limit that holds after every trial at once, so that sampling may stop whenever one likes.

    The likelihood of the trials under p, divided into their likelihood under a Beta(1/2, 1/2) mixture, is a martingale
    of mean 1 if p is true; Ville's inequality bounds the probability that it ever reaches 1/alpha. The limit is the
    smallest p below the mean that it has not ruled out. Scores in [0, 1] in place of votes leave it valid (each factor
    is convex in the score, so that its mean is at most that of a vote with the same mean). With a population the
    likelihood is that of draws without replacement (Waudby-Smith & Ramdas 2020, the prior-posterior ratio): for votes
    only.
    """
    check_alpha(alpha)
    check_counts(successes, trials, population)
    if successes == 0:
        return 0.0 if population is None else Fraction(0)
    evidence = _log_mixture(successes, trials) + math.log(alpha) - _LOG_SLACK
    if population is None:
        return _last_excluded(lambda share: evidence >= _log_likelihood(successes, trials, share), successes / trials)
    if successes != int(successes):
        raise OptionError(
            "Scores drawn without replacement have no limit for every time: count votes, or fix the looks."
        )
    return Fraction(_least_plausible(int(successes), trials, population, evidence), population)


def anytime_high(successes: float, trials: int, alpha: float, population: int | None = None) -> float | Fraction:
    """The upper limit: one minus the lower limit of the failures."""
    check_counts(successes, trials, population)
    low = anytime_low(trials - successes, trials, alpha, population)
    return 1 - low if isinstance(low, Fraction) else _up(1.0 - low)


def chernoff_low(total: float, trials: int, alpha: float) -> float:
    """A lower limit of the mean of scores in [0, 1] from their sum (Hoeffding 1963, Theorem 1, before simplification).

    The p below the mean m with trials · KL(m, p) = log(1/alpha). His Theorem 4 carries it to draws without replacement.
    """
    check_alpha(alpha)
    check_counts(total, trials)
    if total <= 0:
        return 0.0
    mean = min(1.0, total / trials)
    best = _log_likelihood(total, trials, mean)
    return _last_excluded(
        lambda share: best - _log_likelihood(total, trials, share) >= -math.log(alpha) + _LOG_SLACK, mean
    )


def chernoff_high(total: float, trials: int, alpha: float) -> float:
    """The upper limit: one minus the lower limit of the complements."""
    check_counts(total, trials)
    return _up(1.0 - chernoff_low(trials - total, trials, alpha))


def bernstein_low(total: float, squares: float, trials: int, alpha: float) -> float:
    """A lower limit of the mean of independent scores in [0, 1] from their sum and their sum of squares.

    Maurer & Pontil (2009), Theorem 4: mean - sqrt(2 V log(2/alpha) / n) - 7 log(2/alpha) / (3 (n - 1)) with the sample
    variance V. Better than `chernoff_low` only when the scores vary much less than votes would.
    """
    check_alpha(alpha)
    check_counts(total, trials)
    if not total * total / max(trials, 1) - _LOG_SLACK * trials <= squares <= total + _LOG_SLACK * trials:
        raise OptionError(f"{trials} scores in [0, 1] that sum to {total} cannot have squares that sum to {squares}.")
    if trials < 2:
        return 0.0
    variance = max(0.0, squares - total * total / trials) / (trials - 1) + _SLACK
    cost = math.log(2 / alpha)
    return _down(total / trials - math.sqrt(2 * variance * cost / trials) - 7 * cost / (3 * (trials - 1)))


def bernstein_high(total: float, squares: float, trials: int, alpha: float) -> float:
    """The upper limit: one minus the lower limit of the complements."""
    check_counts(total, trials)
    return _up(1.0 - bernstein_low(trials - total, trials - 2 * total + squares, trials, alpha))


def betting_low(values: Sequence[float], alpha: float) -> float:
    """A lower limit of the mean of independent scores in [0, 1] that holds after every one of them at once.

    Waudby-Smith & Ramdas (2024, Estimating means of bounded random variables by betting): if the mean is m or less,
    the wealth of bets that the next score exceeds m, with stakes that depend on earlier scores only, ever reaches
    1/alpha times the start with probability at most alpha (Ville). The limit is the largest m at which it did.
    Difference to the paper: only the upward bet, at the full alpha, since one limit is needed (they hedge to get both).
    """
    check_alpha(alpha)
    scores = np.asarray(values, dtype=np.float64)
    if scores.ndim != 1 or not np.all((scores >= 0) & (scores <= 1)):
        raise OptionError("Scores to bet on must be a list of numbers between 0 and 1.")
    if not len(scores):
        return 0.0
    before = np.arange(1, len(scores) + 1)
    means = (0.5 + np.cumsum(scores)) / (before + 1)
    variances = (0.25 + np.cumsum((scores - means) ** 2)) / (before + 1)
    predicted = np.concatenate([[0.25], variances[:-1]])
    stakes = np.sqrt(2 * math.log(1 / alpha) / (predicted * before * np.log1p(before)))
    needed = math.log(1 / alpha) + _LOG_SLACK

    def excluded(mean: float) -> bool:
        # Half of what could be lost at most: the wealth stays positive, and falls as the mean in question grows.
        log_wealth = np.cumsum(np.log1p(np.minimum(stakes, 0.5 / mean) * (scores - mean)))
        return bool(np.max(log_wealth) >= needed)

    return _last_excluded(excluded, 1.0)


def betting_high(values: Sequence[float], alpha: float) -> float:
    """The upper limit: one minus the lower limit of the complements."""
    return _up(1.0 - betting_low([1.0 - value for value in values], alpha))


def _down(limit: float) -> float:
    return max(0.0, limit - _SLACK)


def _up(limit: float) -> float:
    return min(1.0, limit + _SLACK)


def _last_excluded(excluded: Callable[[float], bool], top: float) -> float:
    """By bisection: the largest number in (0, top) that is still excluded, if small ones are; 0 if none is."""
    low, high = 0.0, top
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if middle > 0 and excluded(middle):
            low = middle
        else:
            high = middle
    return _down(low)


def _log_likelihood(successes: float, trials: int, share: float) -> float:
    failures = trials - successes
    return (successes * math.log(share) if successes else 0.0) + (failures * math.log1p(-share) if failures else 0.0)


def _log_mixture(successes: float, trials: int) -> float:
    """log of B(1/2 + successes, 1/2 + failures) / B(1/2, 1/2)."""
    failures = trials - successes
    return math.lgamma(0.5 + successes) + math.lgamma(0.5 + failures) - math.lgamma(1.0 + trials) - math.log(math.pi)


def _hypergeometric_tail(successes: int, trials: int, population: int) -> Callable[[int], float]:
    """The chance of at least so many successes in the sample, by how many there are in the population.

    Each term is C(n, i) times a product of n ratios, so that populations of any size lose no digits.
    """
    counts = np.arange(trials + 1, dtype=np.float64)
    size = float(population)
    ways = gammaln(trials + 1.0) - gammaln(counts + 1.0) - gammaln(trials - counts + 1.0)
    draws = np.sum(np.log1p(-counts[:-1] / size))

    def tail(good: int) -> float:
        bad = population - good
        first, last = max(successes, trials - bad), min(trials, good)
        chosen = _falling(good, last, size)[first : last + 1]
        others = _falling(bad, trials - first, size)[trials - last :][::-1]
        return float(np.sum(np.exp(ways[first : last + 1] + chosen + others - draws)))

    return tail


def _falling(start: int, most: int, size: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """log of start (start - 1) … over size, for 0 to `most` factors."""
    factors = np.log((float(start) - np.arange(most, dtype=np.float64)) / size)
    return np.concatenate([[0.0], np.cumsum(factors)])


def _least_plausible(successes: int, trials: int, population: int, evidence: float) -> int:
    """The smallest number of successes in the population whose likelihood the evidence does not exceed."""
    failures = trials - successes
    draws = float(np.sum(np.log1p(-np.arange(trials, dtype=np.float64) / population)))
    low, high = successes, max(successes, min(population - failures, population * successes // trials))
    while low < high:
        middle = (low + high) // 2
        good = _falling(middle, successes, float(population))[-1]
        bad = _falling(population - middle, failures, float(population))[-1]
        if evidence >= good + bad - draws:
            low = middle + 1
        else:
            high = middle
    return low
