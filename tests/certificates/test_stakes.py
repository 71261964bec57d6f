"""Stakes: what they should be where that can be computed, and what bets with them are worth."""

from __future__ import annotations

import importlib.util
import sys
from argparse import Namespace
from fractions import Fraction
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from scipy.stats import norm

from stockade.certificates.betting import Bets, BettingPlan
from stockade.certificates.confidence import clopper_pearson_low
from stockade.certificates.stakes import stake_table

ALPHA = 0.05


@pytest.fixture(scope="module")
def simulation() -> ModuleType:
    """`benchmarks/betting.py`, which is no part of a package."""
    spec = importlib.util.spec_from_file_location(
        "simulated_bets", Path(__file__).parents[2] / "benchmarks" / "betting.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def options(texts: int) -> Namespace:
    return Namespace(texts=texts, group=3, most=5000, alpha=ALPHA, seed=1)


def test_before_the_last_look_stakes_are_those_of_a_single_look() -> None:
    """Browne's: the density over the chance, at the quantile of the wealth as a share of the goal."""
    table = stake_table(ALPHA)
    left = 1 - table.times[-1]
    for wealth in (0.1, 1.0, 5.0, 15.0):
        share = wealth * ALPHA / 1.1
        expected = norm.pdf(norm.ppf(share)) / (share * np.sqrt(left))
        assert table.at(table.times[-1], np.log([wealth]))[0] == pytest.approx(expected, rel=0.02)


def test_stakes_fall_as_the_goal_comes_near_when_there_is_nothing_to_gain_by_ending_early() -> None:
    table, wealths = stake_table(ALPHA), np.log([0.01, 0.1, 1.0, 5.0, 19.0])
    assert np.all(np.diff([table.at(time, wealths) for time in (0.3, 0.6, 0.9, 1.0)]) < 0)
    assert np.all([table.at(time, wealths) > 0 for time in (0.0, 0.001, 0.01, 0.1)])


@pytest.mark.parametrize("alpha", [0.5, 0.05, 5e-5, 1e-9])
def test_there_are_stakes_for_every_alpha(alpha: float) -> None:
    table = stake_table(alpha)
    assert np.all(np.isfinite(table.stakes))
    assert table.stakes.min() >= 0


def test_bets_do_not_depend_on_how_the_rounds_arrive() -> None:
    leads = np.random.default_rng(2).choice([-1.0, 0.0, 1.0], size=(300, 2), p=[0.1, 0.2, 0.7])
    levels, plan = [Fraction(0), Fraction(1, 2)], BettingPlan(ALPHA, 300, 1)
    whole, pieces = (Bets(plan, "gap", levels, leads[:20]) for _ in range(2))
    whole.play(leads)
    for start in range(0, 300, 7):
        pieces.play(leads[start : start + 7])
    assert np.array_equal(whole.log_wealth, pieces.log_wealth)
    assert np.array_equal(whole.peak, pieces.peak)


def test_at_high_shares_stakes_do_not_overbet() -> None:
    """49 of 50 votes where 9 of 10 are needed. The variance of such votes, 0.02, would make the stake four times too
    large; it is taken at the level instead, where it is 0.09.
    """
    pilot = np.concatenate([np.ones((49, 1)), np.zeros((1, 1))])
    bets = Bets(BettingPlan(ALPHA, 5000, 1), "majority", [Fraction(9, 10)], pilot)
    bets.play(np.ones((1, 1)))
    first_stake = np.expm1(bets.log_wealth[0, 0]) / 0.1
    error = np.sqrt(0.98 * 0.02 / 50)
    assert first_stake == pytest.approx((0.98 - 2 * error - 0.9) / 0.09, rel=0.05), "two standard errors below the best"
    assert first_stake < 0.889, "the best stake if the share is 0.98, (0.98 - 0.9) / (0.9 * 0.1)"
    assert first_stake > stake_table(ALPHA).at(0.0, np.zeros(1))[0] / np.sqrt(0.09 * 5000)


@pytest.mark.parametrize("texts", [60, pytest.param(2000, marks=pytest.mark.slow)])
def test_passes_and_power_on_the_grid(simulation: ModuleType, texts: int) -> None:
    """No more than 1.5 times the passes of the cheapest other scheme; power within two points of one look at all
    copies, up to what is chance with so many texts (99.9 %).
    """
    for name, point in simulation.power_table(options(texts)).items():
        betting, fixed = point["betting"], point["fixed"]
        cheapest = min(point[scheme].passes for scheme in simulation.SCHEMES)
        assert betting.passes <= (1.5 + 4 / np.sqrt(texts)) * cheapest, name
        chance = 3.1 * np.sqrt((fixed.certified * (1 - fixed.certified) + 0.01) * 2 / texts)
        assert betting.certified >= fixed.certified - 0.02 - chance, name


@pytest.mark.parametrize("texts", [40, pytest.param(1000, marks=pytest.mark.slow)])
def test_the_pilot_chooses_groups_or_single_copies_well(simulation: ModuleType, texts: int) -> None:
    results = simulation.groups_table(options(texts))
    for name, bets in results.items():
        best = min(bets["groups"].passes, bets["single"].passes)
        assert bets["chosen"].passes <= (1.3 + 3 / np.sqrt(texts)) * best, name
    alike, even = (results[f"{kind}, tau 0.6, p 0.68"] for kind in ("alike", "even"))
    assert alike["groups"].passes > 1.8 * alike["chosen"].passes
    assert even["single"].passes > 1.8 * even["chosen"].passes


@pytest.mark.parametrize("texts", [60, pytest.param(4000, marks=pytest.mark.slow)])
def test_certificates_on_the_threshold_are_as_rare_as_promised(simulation: ModuleType, texts: int) -> None:
    """Two, three and four classes; groups that have something in common; the pilot, the choice and the end."""
    for name, measured in simulation.false_table(options(texts)).items():
        wrong = round(measured.certified * measured.texts)
        assert clopper_pearson_low(wrong, measured.texts, 0.001) <= ALPHA, name
