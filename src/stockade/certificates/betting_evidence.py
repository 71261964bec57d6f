"""Evidence of the betting bound: what every round of copies said, in their order, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Literal, Protocol, Self, runtime_checkable

import numpy as np

from stockade.certificates.betting import BettingPlan, BettingTest, Rounds
from stockade.certificates.bounds import Number, Rule, threshold
from stockade.certificates.evidence import (
    EVIDENCE,
    SmoothingDistribution,
    describe_distribution,
    exact_refutation,
    means_by_class,
    out_of_reach,
    packed,
    read_distribution,
    rounded_down,
    rounded_up,
    unpacked,
    votes_by_class,
)
from stockade.core.errors import OptionError

Counted = Literal["votes", "probabilities"]
_ROUNDING = 1e-9
_MANY = 1_000_000
_STORED: Mapping[Counted, str] = {"votes": "<u2", "probabilities": "<f8"}
"""The numbers of a round in a file: the same bytes on every machine."""


@runtime_checkable
class AntitheticDistribution(SmoothingDistribution, Protocol):
    """A distribution of copies that show a part of the words, so that a random partition of the words gives several."""

    @property
    def group_size(self) -> int:
        """How many copies an antithetic group has."""
        ...

    @property
    def distinct_copies(self) -> int | None:
        """How many different copies there are; None where they are too many to be drawn twice."""
        ...


@EVIDENCE.register("betting-2")
@dataclass(frozen=True, eq=False, kw_only=True)
class BettingEvidence:
    """Votes (or sums of probabilities) by round and class.

    Parameters
    ----------
    distribution : AntitheticDistribution
        How the copies were drawn.
    rule : Rule
        Whether the lead ("gap") or the share ("majority") of the class is bet on.
    plan : BettingPlan
        What was fixed before the first round.
    chosen : int
        The class.
    randomizer : float
        U of `betting`, which the seed of the certificate and the rounds give: see `betting_sampler.draw_randomizer`.
    counted : Counted
        Whether copies vote or their probabilities are averaged.
    pilot : Rounds
        The copies that chose the class and what to bet on, one by one, group after group; they also set the first
        stakes.
    rounds : Rounds
        The rounds that were bet on.
    """

    distribution: AntitheticDistribution
    rule: Rule
    plan: BettingPlan
    chosen: int
    randomizer: float
    counted: Counted
    pilot: Rounds
    rounds: Rounds

    def __post_init__(self) -> None:
        if not 0 < self.randomizer <= 1:
            raise OptionError(f"The randomizer lies between 0 and 1 (found: {self.randomizer}).")
        if not isinstance(self.distribution, AntitheticDistribution):
            raise OptionError(f"Copies of {self.distribution} do not come in antithetic groups.")
        size = self.plan.copies_per_round
        if size not in (1, self.distribution.group_size):
            raise OptionError(f"A round of {size} copies is no antithetic group of {self.distribution}.")
        if self.pilot.shape[1] != self.rounds.shape[1] or not 0 <= self.chosen < self.rounds.shape[1]:
            raise OptionError(f"The rounds are not of the same classes, or class {self.chosen} is none of them.")
        if len(self.pilot) % self.distribution.group_size:
            raise OptionError(f"The pilot of {len(self.pilot)} copies is not one of groups of {self.distribution}.")
        for rounds, copies in ((self.pilot, 1), (self.rounds, size)):
            if np.any(rounds < 0) or np.any(rounds.sum(1) > copies + _ROUNDING):
                raise OptionError(f"A round of {copies} copies cannot cast the votes of one of the rounds.")

    @property
    def classes(self) -> int:
        return int(self.rounds.shape[1])

    @property
    def copies(self) -> int:
        return len(self.rounds) * self.plan.copies_per_round

    @property
    def alpha(self) -> float | None:
        return self.plan.alpha

    @cached_property
    def levels(self) -> tuple[Number, ...]:
        """All that the lead may have to exceed for what is said of a text, from the lowest up: of several statements in
        one order, each of which needs those before it, alpha is paid once.
        """
        return tuple(sorted({*radius_levels(self.distribution, self.rule), *self._insertion_levels}))

    @cached_property
    def test(self) -> BettingTest:
        """All bets, at the end."""
        pilot = by_round(self.pilot, self.plan.copies_per_round)
        test = BettingTest(self.plan, self.rule, self.chosen, self.levels, pilot)
        test.bet_on(self.rounds)
        return test

    def wealth(self, radius: int) -> tuple[float, float] | None:
        """The wealth of the worst bet against a radius (see `BettingTest.wealth`); None if no votes could prove it."""
        levels = radius_levels(self.distribution, self.rule)
        return self.test.wealth(self.levels.index(levels[radius])) if radius < len(levels) else None

    def radius(self) -> int | None:
        return self._last_exceeded(radius_levels(self.distribution, self.rule))

    def insertions(self) -> int | None:
        return self._last_exceeded(self._insertion_levels)

    def explain(self, labels: Sequence[str]) -> list[str]:
        """The wealth is rounded down, and what it must reach rounded up."""
        radius = self.radius()
        sentences = [self._counted(labels)]
        reached = None if radius is None else self.wealth(radius)
        if reached is not None:
            needed, at_the_end = rounded_up(1 / self.plan.alpha), rounded_up(self.randomizer / self.plan.alpha)
            proof = f"{needed:,.2f} is proof, or {at_the_end:,.2f} at the end (by the randomizer of this text)"
            sentences.append(f"the bet against radius {radius} holds {_multiples(reached)}; {proof}")
        following = 0 if radius is None else radius + 1
        beyond = self.wealth(following)
        if beyond is None:
            return [*sentences, out_of_reach(following)]
        return [*sentences, f"the bet against radius {following} holds {_multiples(beyond)}"]

    def refutation(self, *, chosen: int, radius: int, insertions: int | None) -> str | None:
        return exact_refutation(self, chosen, radius)

    def described(self) -> dict[str, Any]:
        return {
            "kind": "betting-2",
            "distribution": describe_distribution(self.distribution),
            "rule": self.rule,
            "plan": asdict(self.plan),
            "chosen": self.chosen,
            "randomizer": self.randomizer,
            "classes": self.classes,
            "counted": self.counted,
            "pilot": packed(self.pilot.astype(_STORED[self.counted]).tobytes()),
            "rounds": packed(self.rounds.astype(_STORED[self.counted]).tobytes()),
        }

    @classmethod
    def from_description(cls, description: Mapping[str, Any]) -> Self:
        pilot, rounds = (
            np.frombuffer(unpacked(description[name]), dtype=_STORED[description["counted"]])
            .reshape(-1, description["classes"])
            .astype(np.float64)
            for name in ("pilot", "rounds")
        )
        names = ("rule", "chosen", "randomizer", "counted")
        return cls(
            **{name: description[name] for name in names},
            distribution=read_distribution(description["distribution"]),  # type: ignore[arg-type]  # checked above
            plan=BettingPlan(**description["plan"]),
            pilot=pilot,
            rounds=rounds,
        )

    @property
    def _insertion_levels(self) -> tuple[Number, ...]:
        return self.distribution.insertion_leads() if self.rule == "gap" else ()

    def _last_exceeded(self, levels: Sequence[Number]) -> int | None:
        rejected = set(self.levels[: self.test.rejected_levels(self.randomizer)])
        exceeded = sum(level in rejected for level in levels)
        return exceeded - 1 if exceeded else None

    def _counted(self, labels: Sequence[str]) -> str:
        groups = f" in {len(self.rounds):,} antithetic groups" if self.plan.copies_per_round > 1 else ""
        what, totals = f"{self.copies:,} copies{groups}", self.rounds.sum(0).tolist()
        in_words = votes_by_class if self.counted == "votes" else means_by_class
        return in_words(labels, totals, self.copies, what)


def by_round(copies: Rounds, copies_per_round: int) -> Rounds:
    """The votes, or probabilities, of copies summed up by round."""
    rounds: Rounds = copies.reshape(-1, copies_per_round, copies.shape[1]).sum(1)
    return rounds


def radius_levels(distribution: SmoothingDistribution, rule: Rule) -> tuple[Number, ...]:
    """What the lead (the share) must exceed for radius 0, 1, …, as long as it can."""
    return tuple(level for level in (threshold(loss, rule) for loss in distribution.losses()) if level < 1)


def _in_short(value: float) -> str:
    """A wealth as people read it: beyond a million its digits say nothing."""
    return f"{rounded_down(value):,.2f}" if value < _MANY else f"more than {_MANY:,}"


def _multiples(wealth: tuple[float, float]) -> str:
    peak, last = map(_in_short, wealth)
    return f"{last} times what it began with, {peak} at its peak"
