"""The betting bound: never wrong more often than alpha, whatever the copies of a round have to do with each other."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from stockade.certificates.betting import BettingPlan, BettingTest, Rounds
from stockade.certificates.betting_evidence import _multiples
from stockade.certificates.bounds import Rule, threshold
from stockade.certificates.confidence import clopper_pearson_low
from stockade.certificates.stakes import stake_table
from stockade.core.errors import OptionError

ALPHA, ROUNDS = 0.05, 60
TEXTS = [400, pytest.param(4000, marks=pytest.mark.slow)]
Draw = Callable[[np.random.Generator, int, tuple[float, ...], int], Rounds]


def alone(rng: np.random.Generator, rounds: int, shares: tuple[float, ...], copies: int) -> Rounds:
    """Copies that vote each for themselves."""
    return rng.multinomial(copies, shares, rounds).astype(np.float64)


def alike(rng: np.random.Generator, rounds: int, shares: tuple[float, ...], copies: int) -> Rounds:
    """All copies of a round vote for the same class."""
    return copies * rng.multinomial(1, shares, rounds).astype(np.float64)


def balanced(rng: np.random.Generator, rounds: int, shares: tuple[float, ...], copies: int) -> Rounds:
    """As even as whole votes can be: every class has its share of the copies in every round, up to one vote."""
    ends = np.cumsum(np.array(shares) * copies)[None, :] + rng.random((rounds, 1))
    return np.diff(np.floor(ends), axis=1, prepend=0)


def claims(draw: Draw, rule: Rule, shares: tuple[float, ...], loss: Fraction, texts: int) -> int:
    """How many texts are claimed to stand one change."""
    rng, plan = np.random.default_rng(7), BettingPlan(ALPHA, 4 * ROUNDS, 4)
    claimed = 0
    for randomizer in 1 - rng.random(texts):
        test = BettingTest(plan, rule, 0, [threshold(level, rule) for level in (0, loss)], draw(rng, 5, shares, 4))
        test.bet_on(draw(rng, ROUNDS, shares, 4))
        claimed += test.rejected_levels(randomizer) == 2
    return claimed


@pytest.mark.parametrize("texts", TEXTS)
@pytest.mark.parametrize(
    ("draw", "rule", "shares", "loss"),
    [
        (alone, "gap", (0.8, 0.2), Fraction(3, 10)),
        (alone, "gap", (0.6, 0.2, 0.2), Fraction(1, 5)),
        (alone, "gap", (0.5, 0.1, 0.1, 0.1, 0.1, 0.1), Fraction(1, 5)),
        (alike, "gap", (0.7, 0.2, 0.1), Fraction(1, 4)),
        (alike, "majority", (0.9, 0.1), Fraction(4, 10)),
        (balanced, "gap", (0.7, 0.3), Fraction(1, 5)),
        (balanced, "majority", (0.6, 0.3, 0.1), Fraction(1, 10)),
    ],
)
def test_false_certificates_are_as_rare_as_promised(
    draw: Draw, rule: Rule, shares: tuple[float, ...], loss: Fraction, texts: int
) -> None:
    """The probabilities sit exactly on the threshold, so that every claim of one safe change is false."""
    wrong = claims(draw, rule, shares, loss, texts)
    assert clopper_pearson_low(wrong, texts, 0.001) <= ALPHA
    if draw is alone and len(shares) == 2:
        assert wrong > texts * ALPHA / 3, "bets that are never won by chance cost more rounds than they should"


def test_a_stake_does_not_know_the_round_it_is_for() -> None:
    """Then the wealth after a round grows with its lead in a straight line, and has no edge if none is due."""
    before, plan = alone(np.random.default_rng(1), 6, (0.7, 0.3), 4), BettingPlan(ALPHA, 400, 4)

    def wealth(votes: int) -> float:
        test = BettingTest(plan, "gap", 0, [Fraction(0)], before[:2])
        test.bet_on(np.concatenate([before[2:], [[votes, 4 - votes]]]))
        return test.wealth(0)[1]

    assert wealth(2) == pytest.approx((wealth(0) + wealth(4)) / 2)
    assert wealth(0) < wealth(2) < wealth(4)


def test_a_lead_that_is_large_enough_is_proved() -> None:
    """Three quarters of the votes where six tenths are needed: here every claim is true, and nearly all are made."""
    assert claims(alone, "majority", (0.75, 0.25), Fraction(1, 10), 400) > 0.9 * 400


def test_the_wealth_of_the_first_rounds_by_hand() -> None:
    """Without a pilot the variance is taken for 1, the largest there is, so that of 100 rounds is 100, and the first
    stake is a tenth of the table's. A round that is won outright adds the stake to a wealth of 1.
    """
    plan = BettingPlan(ALPHA, 100, 1)
    assert plan.log_threshold == pytest.approx(np.log(20))
    test = BettingTest(plan, "gap", 0, [Fraction(0)], np.zeros((0, 2)))
    assert test.wealth(0) == (1.0, 1.0)
    test.bet_on(np.array([[1.0, 0.0]]))
    stake = float(stake_table(ALPHA).at(0.0, np.zeros(1))[0]) / 10
    assert test.wealth(0) == pytest.approx((1 + stake, 1 + stake))
    test.bet_on(np.array([[0.0, 1.0]]))
    peak, now = test.wealth(0)
    assert peak == pytest.approx(1 + stake)
    assert now < peak


def test_the_randomizer_lowers_what_is_needed_at_the_end_and_the_peak_counts_without_it() -> None:
    plan = BettingPlan(ALPHA, 100, 1)
    test = BettingTest(plan, "gap", 0, [Fraction(0)], np.zeros((0, 2)))
    test.bet_on(np.tile([1.0, 0.0], (2, 1)))
    _, wealth = test.wealth(0)
    assert 1 < wealth < 20
    assert test.rejected_levels(1.0) == 0
    assert test.rejected_levels(0.99 * wealth * ALPHA) == 1
    assert test.rejected_levels(1.01 * wealth * ALPHA) == 0
    test.bet_on(np.tile([1.0, 0.0], (6, 1)))
    test.bet_on(np.tile([0.0, 1.0], (40, 1)))
    peak, wealth = test.wealth(0)
    assert wealth < 20 <= peak
    assert test.rejected_levels(1.0) == 1


def test_levels_are_rejected_from_the_lowest_up_only() -> None:
    """The second of three rivals ties: whatever the others say, no level is exceeded."""
    rounds = np.tile([2.0, 0.0, 2.0, 0.0], (80, 1))
    test = BettingTest(BettingPlan(ALPHA, 320, 4), "gap", 0, [Fraction(0), Fraction(1, 4)], rounds[:5])
    test.bet_on(rounds)
    assert test.rejected_levels(0.5) == 0
    alone_ahead = np.tile([2.0, 1.0, 1.0, 0.0], (80, 1))
    test = BettingTest(BettingPlan(ALPHA, 320, 4), "gap", 0, [Fraction(0), Fraction(1, 4)], alone_ahead[:5])
    test.bet_on(alone_ahead)
    assert test.rejected_levels(0.5) == 1


def test_betting_stops_when_no_level_is_left_no_round_is_left_or_none_could_help() -> None:
    plan = BettingPlan(ALPHA, 400, 4)

    def after(rounds: int, votes: tuple[float, float], target: int | None = None) -> bool:
        test = BettingTest(plan, "gap", 0, [Fraction(0)], np.zeros((0, 2)))
        test.bet_on(np.tile(votes, (rounds, 1)))
        return test.finished(target, least_power=0.001)

    assert not after(2, (4.0, 0.0))
    assert after(40, (4.0, 0.0))  # the only level is exceeded
    assert after(100, (2.0, 2.0))  # all 100 rounds are played
    assert after(60, (0.0, 4.0))  # behind, and hardly any luck turns that
    assert not after(2, (4.0, 0.0), target=0)


@pytest.mark.parametrize(("alpha", "most", "copies"), [(0.0, 10, 1), (1.0, 10, 1), (0.05, 0, 1), (0.05, 10, 0)])
def test_plans_that_make_no_sense_are_refused(alpha: float, most: int, copies: int) -> None:
    with pytest.raises(OptionError):
        BettingPlan(alpha, most, copies)


def test_a_wealth_is_written_in_few_digits_however_large_it_is() -> None:
    huge = _multiples((float("inf"), 1e40))
    assert huge == "more than 1,000,000 times what it began with, more than 1,000,000 at its peak"
    assert _multiples((24.02, 1.0)) == "1.00 times what it began with, 24.02 at its peak"
