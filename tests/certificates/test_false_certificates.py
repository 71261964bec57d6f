"""By simulation: how often the sequential schemes are wrong, and what they cost."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from stockade.certificates import sequential
from stockade.certificates.bounds import Rule, largest_radius
from stockade.certificates.confidence import (
    clopper_pearson_high,
    clopper_pearson_low,
)
from stockade.certificates.sequential import (
    SCHEMES,
    Means,
    Plan,
    Scheme,
    Tally,
    decide,
    look_schedule,
    margin_limits,
)

ALPHA, TEXTS = 0.05, 4000
LOOKS = look_schedule(1000)


@pytest.fixture(autouse=True, scope="module")
def _limits_once() -> Iterator[None]:
    """Thousands of texts meet the same counts: each limit is computed once."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("anytime", "hypergeometric", "clopper_pearson", "chernoff", "bernstein"):
            for side in ("low", "high"):
                patch.setattr(sequential, f"{name}_{side}", cache(getattr(sequential, f"{name}_{side}")))
        yield


def plan_of(scheme: Scheme, population: int | None = None) -> Plan:
    looks = {"curtailed": LOOKS, "spending": LOOKS, "anytime": tuple(range(100, 1001, 100)), "fixed": (1000,)}[scheme]
    return Plan(scheme, ALPHA, looks, population)


def draws(rng: np.random.Generator, shares: tuple[float, ...], plan: Plan, texts: int = TEXTS) -> NDArray[np.int64]:
    """Votes by text, look and class: independent, or without replacement from a population with just these shares."""
    if plan.population is None:
        steps = np.diff([0, *plan.looks])
        return np.cumsum(rng.multinomial(np.tile(steps, (texts, 1)), shares), axis=1)
    sizes = [round(share * plan.population) for share in shares]
    assert sum(sizes) == plan.population
    population = np.repeat(np.arange(len(shares), dtype=np.int8), sizes)
    votes = rng.permuted(np.tile(population, (texts, 1)), axis=1)[:, : plan.looks[-1]]
    starts = [0, *plan.looks[:-1]]
    new = [np.add.reduceat(votes == label, starts, axis=1, dtype=np.int64) for label in range(len(shares))]
    return np.cumsum(np.stack(new, axis=2), axis=1)


def claims(tallies: NDArray[np.int64], plan: Plan, rule: Rule, losses: tuple[Fraction, ...]) -> NDArray[np.bool_]:
    """Whether a text is said to stand one change at any of its looks: stricter than what `decide` would end with."""

    @cache
    def claimed(own: int, rival: int, copies: int) -> bool:
        # The classes behind the second one change nothing; see test_only_the_strongest_rival_counts.
        rest = copies - own - rival
        tally = Tally((own, rival, rest) if tallies.shape[2] > 2 else (own, rival), copies)
        return largest_radius(margin_limits(tally, 0, plan, rule).low, losses, rule) == 1

    leader, rivals = tallies[:, :, 0], tallies[:, :, 1:].max(axis=2)
    rows = zip(leader.tolist(), rivals.tolist(), strict=True)
    return np.array([any(map(claimed, votes, rival_votes, plan.looks)) for votes, rival_votes in rows])


def exceeds(wrong: int, runs: int, alpha: float) -> bool:
    """Whether the rate is above alpha, beyond chance (99.9 %)."""
    return clopper_pearson_low(wrong, runs, 0.001) > alpha


CASES: list[tuple[Rule, tuple[float, ...], Fraction]] = [
    ("majority", (0.9, 0.1), Fraction(4, 10)),
    ("majority", (0.6, 0.3, 0.1), Fraction(1, 10)),
    ("gap", (0.8, 0.2), Fraction(3, 10)),
    ("gap", (0.7, 0.2, 0.1), Fraction(1, 4)),
    ("gap", (0.6, 0.2, 0.2), Fraction(1, 5)),
    ("gap", (0.5, 0.1, 0.1, 0.1, 0.1, 0.1), Fraction(1, 5)),
]


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("population", [None, 1500])
@pytest.mark.parametrize(
    ("texts", "rule", "shares", "loss"),
    [
        *[(500, *case) for case in (CASES[0], CASES[3])],
        *[pytest.param(TEXTS, *case, marks=pytest.mark.slow) for case in CASES],
    ],
)
def test_false_certificates_are_as_rare_as_promised(
    scheme: Scheme, population: int | None, texts: int, rule: Rule, shares: tuple[float, ...], loss: Fraction
) -> None:
    """The probabilities sit exactly on the threshold, so that every claim of one safe change is false."""
    plan = plan_of(scheme, population)
    tallies = draws(np.random.default_rng(7), shares, plan, texts)
    wrong = int(claims(tallies, plan, rule, (Fraction(0), loss)).sum())
    assert not exceeds(wrong, texts, ALPHA)
    if scheme != "anytime" and texts == TEXTS and shares in {(0.9, 0.1), (0.8, 0.2)}:
        assert wrong > texts * ALPHA / 10, "limits that are never wrong cost more copies than they should"


def test_looking_again_and_again_at_the_full_alpha_is_wrong_too_often() -> None:
    """What the schemes are for; and a proof that the test above can fail."""
    tallies = draws(np.random.default_rng(7), (0.9, 0.1), plan_of("spending"))
    low = cache(lambda own, copies: clopper_pearson_low(own, copies, ALPHA) > 0.9)
    rows = tallies[:, :, 0].tolist()
    wrong = sum(any(map(low, row, LOOKS)) for row in rows)
    assert exceeds(wrong, TEXTS, ALPHA)


def test_naming_the_second_class_from_a_few_copies_is_wrong_too_often() -> None:
    """p = .70 / .19 / .11: 50 copies often take the third class for the second, and its limit then proves nothing."""
    rng, shares, copies = np.random.default_rng(11), (0.70, 0.19, 0.11), 5000
    losses, plan = (Fraction(0), Fraction(51, 200)), Plan("fixed", ALPHA, (copies,))
    few, many = rng.multinomial(50, shares, TEXTS), rng.multinomial(copies, shares, TEXTS)
    named = np.where(few[:, 1] >= few[:, 2], 1, 2)
    own = cache(lambda votes: clopper_pearson_low(votes, copies, ALPHA / 2))
    rival = cache(lambda votes: clopper_pearson_high(votes, copies, ALPHA / 2))
    naive = sum(own(int(row[0])) - rival(int(row[label])) > 0.51 for row, label in zip(many, named, strict=True))
    assert 0.08 < naive / TEXTS < 0.17
    assert exceeds(naive, TEXTS, ALPHA)
    wrong = int(claims(many[:, None, :], plan, "gap", losses).sum())
    assert not exceeds(wrong, TEXTS, ALPHA)


TABLE = [
    # threshold, p, then power and mean number of copies of "anytime" and of "spending" from a separate simulation
    (0.60, 0.62, 0.30, 4281, 0.65, 3623),
    (0.60, 0.64, 0.98, 1781, 1.0, 1329),
    (0.60, 0.68, 0.99, 396, 1.0, 360),
    (0.75, 0.77, 0.40, 4109, 0.78, 3292),
    (0.75, 0.83, 0.99, 289, 1.0, 291),
    (0.90, 0.92, 0.89, 2573, 0.99, 2031),
    (0.90, 0.94, 1.0, 555, 1.0, 482),
    (0.90, 0.98, 1.0, 101, 1.0, 105),
]


@cache
def stopping_votes(scheme: Scheme, tau: float) -> tuple[Plan, NDArray[np.int64], NDArray[np.int64]]:
    """For each look how many votes or more certify one change, and how many or fewer rule it out."""
    looks = look_schedule(5000) if scheme == "spending" else (*range(10, 1000, 10), *range(1000, 5001, 50))
    plan, losses = Plan(scheme, ALPHA, looks), (Fraction(0), Fraction(tau) - Fraction(1, 2))

    def first_at_least(wanted: int, copies: int) -> int:
        def state(votes: int) -> int:
            decision = decide(Tally((votes, copies - votes), copies), 0, plan, "majority", losses, target=1)
            return 2 if decision.radius == 1 else int(not decision.done)

        return bisect_left(range(copies + 1), wanted, key=state)

    enough = [first_at_least(2, copies) for copies in looks]
    hopeless = [first_at_least(1, copies) - 1 for copies in looks]
    return plan, np.array(enough), np.array(hopeless)


def power_and_cost(scheme: Scheme, tau: float, share: float) -> tuple[float, float]:
    plan, enough, hopeless = stopping_votes(scheme, tau)
    steps = np.diff([0, *plan.looks])
    votes = np.cumsum(np.random.default_rng(13).binomial(steps, share, (TEXTS, len(steps))), axis=1)
    ends = (votes >= enough) | (votes <= hopeless)
    ends[:, -1] = True
    stop = ends.argmax(axis=1)
    certified = votes[np.arange(TEXTS), stop] >= enough[stop]
    return float(certified.mean()), float(np.array(plan.looks)[stop].mean())


@pytest.mark.parametrize(("tau", "share", "power_a", "copies_a", "power_b", "copies_b"), TABLE)
def test_power_and_mean_copies(
    tau: float, share: float, power_a: float, copies_a: int, power_b: float, copies_b: int
) -> None:
    power, copies = power_and_cost("anytime", tau, share)
    assert power == pytest.approx(power_a, abs=0.04)
    assert copies == pytest.approx(copies_a, rel=0.15)
    power, copies = power_and_cost("spending", tau, share)
    assert power == pytest.approx(power_b, abs=0.04)
    assert copies == pytest.approx(copies_b, rel=0.15)


def test_means_of_scores_on_the_threshold() -> None:
    """Scores of 1, .5 and 0 with mean exactly .75, independent and distinct, at every look of a schedule."""
    rng, values = np.random.default_rng(17), np.array([1.0, 0.5, 0.0])
    for population, scheme in ((None, "spending"), (None, "anytime"), (1200, "spending")):
        plan = Plan(scheme, ALPHA, look_schedule(400), population)  # type: ignore[arg-type]
        kinds = draws(rng, (0.6, 0.3, 0.1), plan)
        totals, squares = kinds @ values, kinds @ values**2

        @cache
        def claimed(total: float, square: float, copies: int, plan: Plan = plan) -> bool:
            rest = copies - total, copies - 2 * total + square
            tally = Means((total, rest[0]), (square, rest[1]), copies)
            return decide(tally, 0, plan, "majority", (Fraction(0), Fraction(1, 4))).radius == 1

        rows = zip(totals.tolist(), squares.tolist(), strict=True)
        wrong = sum(any(map(claimed, row, square, plan.looks)) for row, square in rows)
        assert not exceeds(wrong, TEXTS, ALPHA)
