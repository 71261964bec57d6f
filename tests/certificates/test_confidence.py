"""Confidence limits: known values, the tails they are defined by, and how often they miss."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cache
from math import comb
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.certificates.confidence import (
    anytime_high,
    anytime_low,
    bernstein_high,
    bernstein_low,
    betting_high,
    betting_low,
    chernoff_high,
    chernoff_low,
    clopper_pearson_high,
    clopper_pearson_low,
    hypergeometric_high,
    hypergeometric_low,
)
from stockade.core.errors import OptionError

COUNTS = st.integers(1, 60).flatmap(lambda trials: st.tuples(st.integers(0, trials), st.just(trials)))
ALPHAS = st.sampled_from([0.001, 0.05, 0.2])


def binomial_tail(successes: int, trials: int, share: Fraction) -> Fraction:
    ways = range(successes, trials + 1)
    return sum((comb(trials, i) * share**i * (1 - share) ** (trials - i) for i in ways), Fraction(0))


def hypergeometric_tail(successes: int, trials: int, good: int, population: int) -> Fraction:
    hits = sum(comb(good, i) * comb(population - good, trials - i) for i in range(successes, trials + 1))
    return Fraction(hits, comb(population, trials))


def missed_too_often(misses: int, runs: int, alpha: float) -> bool:
    return clopper_pearson_low(misses, runs, 0.001) > alpha


def test_clopper_pearson_by_hand() -> None:
    assert clopper_pearson_low(10, 10, 0.05) == pytest.approx(0.05 ** (1 / 10))
    assert clopper_pearson_high(0, 10, 0.05) == pytest.approx(1 - 0.05 ** (1 / 10))
    assert clopper_pearson_low(0, 10, 0.05) == 0
    assert clopper_pearson_high(10, 10, 0.05) == 1
    assert clopper_pearson_low(1, 10, 0.05) == pytest.approx(1 - 0.95 ** (1 / 10))


@given(COUNTS, ALPHAS)
def test_clopper_pearson_is_where_the_tail_is_alpha_and_errs_downwards(counts: tuple[int, int], alpha: float) -> None:
    successes, trials = counts
    low = clopper_pearson_low(successes, trials, alpha)
    assert binomial_tail(successes, trials, Fraction(low)) <= Fraction(alpha) or successes == 0
    assert binomial_tail(successes, trials, Fraction(low) + Fraction(1, 10**9)) > Fraction(alpha)
    high = clopper_pearson_high(successes, trials, alpha)
    assert binomial_tail(trials - successes, trials, 1 - Fraction(high)) <= Fraction(alpha) or successes == trials


@given(COUNTS, st.integers(0, 80), ALPHAS)
def test_hypergeometric_low_is_the_least_share_that_is_not_ruled_out(
    counts: tuple[int, int], more: int, alpha: float
) -> None:
    successes, trials = counts
    population = trials + more
    low = hypergeometric_low(successes, trials, population, alpha) * population
    assert low.denominator == 1
    # A tail of alpha itself, give or take its rounding, is not ruled out either.
    nearly = Fraction(alpha) * (1 - Fraction(1, 10**8))
    assert hypergeometric_tail(successes, trials, int(low), population) > nearly or low == successes
    assert low == 0 or hypergeometric_tail(successes, trials, int(low) - 1, population) <= Fraction(alpha)


@pytest.mark.parametrize("alpha", [0.05, 0.5])
def test_all_drawn_is_all_known(alpha: float) -> None:
    assert hypergeometric_low(184, 210, 210, alpha) == hypergeometric_high(184, 210, 210, alpha) == Fraction(184, 210)
    assert anytime_low(184, 210, alpha, 210) == anytime_high(184, 210, alpha, 210) == Fraction(184, 210)


def test_distinct_copies_are_worth_more_the_fewer_there_are() -> None:
    slack = [Fraction(9, 10) - hypergeometric_low(1800, 2000, size, 0.05) for size in (2000, 3876, 10**5, 10**9)]
    independent = 0.9 - clopper_pearson_low(1800, 2000, 0.05)
    assert slack[0] == 0
    assert slack == sorted(slack)
    assert round(float(slack[1]), 4) == 0.0081
    assert float(slack[3]) == pytest.approx(independent, abs=1e-6)
    vast = hypergeometric_low(1800, 2000, 10**40, 0.05)
    assert float(vast) == pytest.approx(0.9 - independent, abs=1e-9)
    assert vast <= 0.9 - independent + 1e-12


def test_a_sample_of_a_vast_population_is_bounded_the_same_on_both_sides_of_the_short_cut() -> None:
    searched, short = (hypergeometric_low(450, 500, size, 0.05) for size in (10**12, 10**18))
    assert float(searched) == pytest.approx(float(short), abs=1e-8)


def test_anytime_by_hand() -> None:
    # 3 of 3: B(3.5, .5) / B(.5, .5) = 5/16; ruled out are the p with 5/16 / p^3 >= 20, so p <= (1/64)^(1/3) = 1/4.
    assert anytime_low(3, 3, 0.05) == pytest.approx(0.25)
    assert anytime_high(0, 3, 0.05) == pytest.approx(0.75)
    assert anytime_low(0, 3, 0.05) == 0
    # All of 4 distinct ones but one: 5/16 over the chance of three hits with K of 4: 0 for K < 3, 1/4 for K = 3.
    assert anytime_low(3, 3, 0.05, 4) == Fraction(3, 4)


@given(COUNTS, ALPHAS)
def test_every_other_limit_is_on_the_safe_side_of_clopper_pearson(counts: tuple[int, int], alpha: float) -> None:
    """It is the best there is for votes at one look: whatever holds more often must be further out."""
    successes, trials = counts
    low, high = clopper_pearson_low(successes, trials, alpha), clopper_pearson_high(successes, trials, alpha)
    assert anytime_low(successes, trials, alpha) <= low
    assert anytime_high(successes, trials, alpha) >= high
    assert chernoff_low(successes, trials, alpha) <= low
    assert chernoff_high(successes, trials, alpha) >= high
    assert bernstein_low(successes, successes, trials, alpha) <= low + 1e-9
    assert bernstein_high(successes, successes, trials, alpha) >= high - 1e-9


def test_chernoff_by_hand() -> None:
    assert chernoff_low(10, 10, 0.05) == pytest.approx(0.05 ** (1 / 10))
    low = chernoff_low(60, 100, 0.05)
    divergence = 0.6 * np.log(0.6 / low) + 0.4 * np.log(0.4 / (1 - low))
    assert 100 * divergence == pytest.approx(np.log(20), rel=1e-6)


def test_bernstein_by_hand() -> None:
    # 100 scores, half .4 and half .6: variance .01 * 100/99; log 40 = 3.6889.
    expected = 0.5 - (2 * (1 / 99) * 3.688879 / 100) ** 0.5 - 7 * 3.688879 / (3 * 99)
    assert bernstein_low(50, 26, 100, 0.05) == pytest.approx(expected, abs=1e-6)
    assert bernstein_high(50, 26, 100, 0.05) == pytest.approx(1 - expected, abs=1e-6)
    assert bernstein_low(1, 1, 1, 0.05) == 0
    assert bernstein_low(5000, 2500.5, 10000, 0.05) > chernoff_low(5000, 10000, 0.05), "scores that hardly vary"


def test_betting_gets_near_a_mean_of_scores_that_hardly_vary() -> None:
    scores = [0.4, 0.6] * 500
    assert 0.47 < betting_low(scores, 0.05) < 0.5 < betting_high(scores, 0.05) < 0.53
    assert betting_low(scores, 0.05) > chernoff_low(sum(scores), len(scores), 0.05)
    assert betting_low([], 0.05) == 0
    assert betting_high([], 0.05) == 1
    assert betting_low([0.0] * 10, 0.05) == 0


def test_the_first_bet_by_hand() -> None:
    # Before any score the variance is taken for 1/4: the stake is sqrt(2 log 2 / (log 2 / 4)) = sqrt 8, below .5 / m.
    # The capital 1 + sqrt 8 (.5 - m) reaches 2 at m = .5 - 1 / sqrt 8. A stake that saw the score would say 1/6.
    assert betting_low([0.5], 0.5) == pytest.approx(0.5 - 8**-0.5)
    # A score of 1: at most half of what can be lost is staked, and 1 + .5 / m (1 - m) reaches 2 at m = 1/3.
    assert betting_low([1.0], 0.5) == pytest.approx(1 / 3)
    assert betting_high([0.0], 0.5) == pytest.approx(2 / 3)


@given(st.lists(st.floats(0, 1), max_size=30), st.lists(st.floats(0, 1), max_size=10))
def test_what_betting_has_ruled_out_stays_ruled_out(scores: list[float], more: list[float]) -> None:
    assert betting_low(scores + more, 0.05) >= betting_low(scores, 0.05)


def test_misses_at_one_look() -> None:
    rng, runs, alpha = np.random.default_rng(0), 4000, 0.05
    for share in (0.6, 0.9):
        votes = rng.binomial(200, share, runs)
        low = cache(lambda hits: clopper_pearson_low(hits, 200, alpha))
        misses = sum(low(int(hits)) > share for hits in votes)
        assert not missed_too_often(misses, runs, alpha)
        assert misses > runs * alpha / 3
        drawn = rng.hypergeometric(round(455 * share), 455 - round(455 * share), 200, runs)
        finite = cache(lambda hits: hypergeometric_low(hits, 200, 455, alpha))
        misses = sum(finite(int(hits)) > Fraction(round(455 * share), 455) for hits in drawn)
        assert not missed_too_often(misses, runs, alpha)
        assert misses > runs * alpha / 3


def test_misses_of_means_of_scores() -> None:
    rng, runs, alpha = np.random.default_rng(1), 4000, 0.05
    for first, second in ((0.3, 0.1), (5.0, 2.0), (0.02, 0.02)):
        scores, mean = rng.beta(first, second, (runs, 100)), first / (first + second)
        totals, squares = scores.sum(axis=1), (scores**2).sum(axis=1)
        for name, low in (
            ("chernoff", [chernoff_low(total, 100, alpha) for total in totals]),
            ("bernstein", [bernstein_low(*pair, 100, alpha) for pair in zip(totals, squares, strict=True)]),
        ):
            assert not missed_too_often(int(np.sum(np.array(low) > mean)), runs, alpha), name


def test_misses_of_chernoff_without_replacement() -> None:
    rng, runs, alpha = np.random.default_rng(2), 4000, 0.05
    population = rng.beta(0.3, 0.1, 150)
    drawn = rng.permuted(np.tile(population, (runs, 1)), axis=1)[:, :60].sum(axis=1)
    misses = sum(chernoff_low(total, 60, alpha) > population.mean() for total in drawn)
    assert not missed_too_often(misses, runs, alpha)


def ever_missed(low: Callable[[int, int], float | Fraction], truth: float | Fraction, hits: Any) -> int:
    """How many rows of votes had, after any of their votes, a lower limit above the truth."""
    known = cache(lambda successes, trials: low(successes, trials) > truth)
    totals = np.cumsum(hits, axis=1)
    return sum(any(known(total, place + 1) for place, total in enumerate(row)) for row in totals.tolist())


def test_anytime_misses_over_all_looks_together() -> None:
    rng, runs, alpha = np.random.default_rng(3), 3000, 0.2
    misses = ever_missed(lambda hits, n: anytime_low(hits, n, alpha), 0.7, rng.random((runs, 150)) < 0.7)
    assert not missed_too_often(misses, runs, alpha)
    assert misses > 0.02 * runs
    distinct = rng.permuted(np.tile(np.arange(150) < 105, (runs, 1)), axis=1)
    misses = ever_missed(lambda hits, n: anytime_low(hits, n, alpha, 150), Fraction(7, 10), distinct)
    assert not missed_too_often(misses, runs, alpha)
    assert misses > 0.02 * runs
    repeated = ever_missed(lambda hits, n: clopper_pearson_low(hits, n, alpha), 0.7, rng.random((runs, 150)) < 0.7)
    assert missed_too_often(repeated, runs, alpha), "a limit for one look must fail here, or this test sees nothing"


def test_betting_misses_over_all_looks_together() -> None:
    rng, runs, alpha = np.random.default_rng(4), 500, 0.2
    for first, second in ((0.3, 0.1), (5.0, 2.0)):
        scores = rng.beta(first, second, (runs, 80))
        misses = sum(betting_low(row, alpha) > first / (first + second) for row in scores)
        assert not missed_too_often(misses, runs, alpha)
        assert misses > 0.01 * runs


@pytest.mark.parametrize("alpha", [0.0, 1.0, -0.1, 2.0, float("nan")])
def test_alpha_outside_of_0_and_1_is_refused(alpha: float) -> None:
    calls: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
        (clopper_pearson_low, (1, 2)),
        (clopper_pearson_high, (1, 2)),
        (lambda *arguments: hypergeometric_low(*arguments), (1, 2, 4)),
        (anytime_low, (1, 2)),
        (chernoff_low, (1, 2)),
        (bernstein_low, (1, 1, 2)),
        (betting_low, ([0.5],)),
    ]
    for function, arguments in calls:
        with pytest.raises(OptionError, match="alpha"):
            function(*arguments, alpha)


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (clopper_pearson_low, (3, 2)),
        (clopper_pearson_low, (-1, 2)),
        (clopper_pearson_high, (3, 2)),
        (hypergeometric_low, (3, 5, 4)),
        (hypergeometric_high, (6, 5, 10)),
        (anytime_low, (3, 2)),
        (anytime_low, (1.5, 2, 0.05, 4)),
        (anytime_high, (1, -2)),
        (chernoff_low, (2.5, 2)),
        (bernstein_low, (1.0, 1.5, 2)),
        (bernstein_low, (1.0, 0.1, 2)),
        (betting_low, ([1.5],)),
        (betting_high, ([-0.5],)),
    ],
)
def test_counts_that_make_no_sense_are_refused(function: Any, arguments: tuple[Any, ...]) -> None:
    complete = arguments if len(arguments) == 4 else (*arguments, 0.05)
    with pytest.raises(OptionError, match=r"\.$"):
        function(*complete)
