"""Looks, limits and decisions, by hand."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from stockade.certificates.bounds import Rule
from stockade.certificates.confidence import (
    anytime_low,
    chernoff_low,
    clopper_pearson_high,
    clopper_pearson_low,
    hypergeometric_low,
)
from stockade.certificates.sequential import (
    SCHEMES,
    Decision,
    Means,
    Plan,
    Scheme,
    Tally,
    choose_class,
    decide,
    look_schedule,
    margin_limits,
)
from stockade.core.errors import OptionError

ALPHA, TEXTS = 0.05, 4000
LOOKS = look_schedule(1000)


def test_the_schedule() -> None:
    assert look_schedule(5000) == (50, 75, 112, 168, 253, 379, 569, 854, 1281, 1922, 2883, 4324, 5000)
    assert look_schedule(50) == (50,)
    assert look_schedule(10) == (10,)
    assert look_schedule(75) == (50, 75)
    assert look_schedule(5, first=1, growth=1.01) == (1, 2, 3, 4, 5)


def test_limits_of_a_majority_share_alpha_among_the_looks() -> None:
    spending = Plan("spending", 0.05, (50, 100))
    limits = margin_limits(Tally((80, 15, 5), 100), 0, spending, "majority")
    assert limits.low == clopper_pearson_low(80, 100, 0.025)
    assert limits.high == clopper_pearson_high(80, 100, 0.025)
    anytime = Plan("anytime", 0.05, (50, 100))
    assert margin_limits(Tally((80, 15, 5), 99 + 1), 0, anytime, "majority").low == anytime_low(80, 100, 0.05)
    distinct = Plan("fixed", 0.05, (100,), 300)
    assert margin_limits(Tally((80, 20), 100), 0, distinct, "majority").low == hypergeometric_low(80, 100, 300, 0.05)


def test_limits_of_a_gap_share_alpha_between_the_class_and_its_rivals() -> None:
    fixed = Plan("fixed", 0.05, (100,))
    limits = margin_limits(Tally((15, 60, 25), 100), 1, fixed, "gap")
    low, high = clopper_pearson_low(60, 100, 0.025), clopper_pearson_high(25, 100, 0.025)
    assert limits.low == low - high
    assert limits.high == clopper_pearson_high(60, 100, 0.025) - clopper_pearson_low(25, 100, 0.025)


def test_a_rival_has_no_more_than_the_class_leaves() -> None:
    # The class has always 1/2. Its rival has the rest but for 5 of 10,000 copies, and so varies more.
    means = Means((5000.0, 4997.5, 2.5), (2500.0, 2498.75, 1.25), 10_000)
    own = margin_limits(means, 0, Plan("fixed", 0.025, (10_000,)), "majority").low
    rival = margin_limits(means, 1, Plan("fixed", 0.025, (10_000,)), "majority").high
    assert 1 - own < rival
    assert margin_limits(means, 0, Plan("fixed", 0.05, (10_000,)), "gap").low == own - (1 - own)


def test_two_classes_need_one_limit() -> None:
    fixed = Plan("fixed", 0.05, (100,))
    limits = margin_limits(Tally((80, 20), 100), 0, fixed, "gap")
    assert limits.low == 2 * clopper_pearson_low(80, 100, 0.05) - 1
    assert limits.high == pytest.approx(2 * clopper_pearson_high(80, 100, 0.05) - 1)
    silent = margin_limits(Tally((80, 10), 100), 0, fixed, "gap")
    assert silent.low == limits.low
    assert silent.high > limits.high, "ten copies say nothing: the gap may be wider than 2p - 1"


def test_only_the_strongest_rival_counts() -> None:
    fixed = Plan("fixed", 0.05, (100,))
    three = margin_limits(Tally((60, 25, 15), 100), 0, fixed, "gap")
    assert margin_limits(Tally((60, 5, 25, 4, 6), 100), 0, fixed, "gap") == three
    scores = [Means((60.0, 25.0, *rest), (60.0, 25.0, *rest), 100) for rest in [(15.0,), (9.0, 6.0)]]
    assert margin_limits(scores[0], 0, fixed, "gap") == margin_limits(scores[1], 0, fixed, "gap")


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("rule", ["majority", "gap"])
def test_all_copies_drawn_leaves_no_chance(scheme: Scheme, rule: Rule) -> None:
    plan = Plan(scheme, 0.05, (210,), 210)
    expected = Fraction(184, 210) if rule == "majority" else Fraction(184 - 20, 210)
    limits = margin_limits(Tally((184, 20, 6), 210), 0, plan, rule)
    assert limits.low == limits.high == expected
    assert decide(Tally((184, 20, 6), 210), 0, plan, rule, (0, Fraction(4, 10))) == Decision(0, True)
    means = margin_limits(Means((184.0, 20.0, 6.0), (180.0, 15.0, 5.0), 210), 0, plan, rule)
    assert float(means.low) < expected < float(means.high)
    assert float(means.high - means.low) < 1e-8


def test_scores_use_the_better_of_two_limits_at_half_of_alpha_each() -> None:
    fixed = Plan("fixed", 0.05, (1000,))
    near_votes = margin_limits(Means((950.0, 50.0), (948.0, 48.0), 1000), 0, fixed, "majority")
    assert near_votes.low == chernoff_low(950.0, 1000, 0.025)
    steady = margin_limits(Means((600.0, 400.0), (360.5, 160.5), 1000), 0, fixed, "majority")
    assert steady.low > chernoff_low(600.0, 1000, 0.025)
    distinct = Plan("fixed", 0.05, (1000,), 5000)
    assert margin_limits(Means((600.0, 400.0), (360.5, 160.5), 1000), 0, distinct, "majority").low == chernoff_low(
        600.0, 1000, 0.05
    )


def test_decisions_by_hand() -> None:
    plan, losses = Plan("spending", 0.05, (50, 100, 200)), (0, Fraction(1, 10), Fraction(3, 10))
    # 50 of 50: low .92, high 1: beyond the last threshold .8, nothing more to know.
    assert decide(Tally((50, 0), 50), 0, plan, "majority", losses) == Decision(2, True)
    # 30 of 50: low .43, high .75: nothing yet, up to one change possible.
    assert decide(Tally((30, 20), 50), 0, plan, "majority", losses) == Decision(None, False)
    # ... but if two changes are asked for, there is no hope.
    assert decide(Tally((30, 20), 50), 0, plan, "majority", losses, target=2) == Decision(None, True)
    # 5 of 50: no hope for anything.
    assert decide(Tally((5, 45), 50), 0, plan, "majority", losses) == Decision(None, True)
    # 75 of 100: low .64, high .84: one change is safe, two are possible; one was enough.
    assert decide(Tally((75, 25), 100), 0, plan, "majority", losses) == Decision(1, False)
    assert decide(Tally((75, 25), 100), 0, plan, "majority", losses, target=1) == Decision(1, True)
    # The last look ends it.
    assert decide(Tally((120, 80), 200), 0, plan, "majority", losses) == Decision(0, True)


@pytest.mark.parametrize("looks", [(10,), (10, 20), LOOKS])
@pytest.mark.parametrize("scheme", ["curtailed", "spending"])
def test_the_looks_together_cost_alpha(scheme: Scheme, looks: tuple[int, ...]) -> None:
    assert sum(Plan(scheme, 0.05, looks).alpha_at(copies) for copies in looks) == pytest.approx(0.05)


def test_curtailed_stops_where_the_last_look_would_say_no_more() -> None:
    losses, tally = (0, Fraction(3, 25)), Tally((116, 84), 200)
    curtailed, spending = Plan("curtailed", 0.05, (200, 1000)), Plan("spending", 0.05, (200, 1000))
    # The upper limit is .649: one change, which needs .62, is possible.
    assert margin_limits(tally, 0, curtailed, "majority") == margin_limits(tally, 0, spending, "majority")
    assert decide(tally, 0, spending, "majority", losses) == Decision(0, False)
    # But copies two deviations better than .58 would only make it 642 of 1000, which proves .611.
    assert round(clopper_pearson_low(642, 1000, 0.025), 3) == 0.611
    assert decide(tally, 0, curtailed, "majority", losses) == Decision(0, True)
    # 120 of 200 may still get there: 662 of 1000 prove .632.
    assert decide(Tally((120, 80), 200), 0, curtailed, "majority", losses) == Decision(0, False)


def test_ties_go_to_the_smaller_index() -> None:
    assert choose_class((3, 5, 5)) == 1
    assert choose_class((0.5, 0.25, 0.25)) == 0


@pytest.mark.parametrize(
    "call",
    [
        lambda: look_schedule(0),
        lambda: look_schedule(10, first=0),
        lambda: look_schedule(10, growth=1.0),
        lambda: Plan("spending", 0.0, (10,)),
        lambda: Plan("spending", 0.05, ()),
        lambda: Plan("spending", 0.05, (10, 10)),
        lambda: Plan("spending", 0.05, (0, 10)),
        lambda: Plan("fixed", 0.05, (10, 20)),
        lambda: Plan("often", 0.05, (10,)),  # type: ignore[arg-type]
        lambda: Plan("fixed", 0.05, (10,), 9),
        lambda: Tally((5, 6), 10),
        lambda: Tally((-1, 6), 10),
        lambda: Means((5.0, 6.0), (5.0, 6.0), 10),
        lambda: Means((5.0, 5.0), (5.0,), 10),
        lambda: margin_limits(Tally((5, 5), 10), 2, Plan("fixed", 0.05, (10,)), "majority"),
        lambda: margin_limits(Tally((5, 5), 10), -1, Plan("fixed", 0.05, (10,)), "gap"),
        lambda: margin_limits(Tally((10,), 10), 0, Plan("fixed", 0.05, (10,)), "gap"),
        lambda: margin_limits(Means((5.0, 5.0), (5.0, 5.0), 10), 0, Plan("anytime", 0.05, (10,), 20), "gap"),
        lambda: decide(Tally((8, 1), 9), 0, Plan("anytime", 0.05, (5,), 8), "gap", (0,)),
        lambda: choose_class(()),
    ],
)
def test_nonsense_is_refused(call: Callable[[], Any]) -> None:
    with pytest.raises(OptionError, match=r"\.$"):
        call()


@pytest.mark.parametrize("scheme", ["curtailed", "spending", "fixed"])
def test_a_look_that_was_not_planned_is_refused(scheme: Scheme) -> None:
    with pytest.raises(OptionError, match="as planned"):
        decide(Tally((8, 1), 9), 0, Plan(scheme, 0.05, (10,)), "majority", (0,))
    assert decide(Tally((9, 0), 9), 0, Plan("anytime", 0.05, (10,)), "majority", (0,)).radius == 0
