"""The ground of a certificate that rests on deals of masked copies: the deals in their order, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from stockade.certificates.betting import BettingPlan, BettingTest, Rounds
from stockade.certificates.bounds import Number, Rule, insertion_leads, threshold
from stockade.certificates.distributions import (
    INSERTIONS,
    AntitheticDistribution,
    DeletionDistribution,
    MaskingDistribution,
)
from stockade.certificates.packing import packed, unpacked
from stockade.core.errors import OptionError

_DISTRIBUTIONS: Mapping[str, type[AntitheticDistribution]] = {
    kind.__name__: kind for kind in (MaskingDistribution, DeletionDistribution)
}
Counted = Literal["votes", "probabilities"]
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class BettingEvidence:
    """Votes (or sums of probabilities) by deal and class. The deals that chose the class come first, and only tell how
    much to bet on the others.
    """

    distribution: AntitheticDistribution
    rule: Rule
    plan: BettingPlan
    chosen: int
    randomizer: float
    """U of `betting`, which the seed of the certificate and the rounds give: see `betting_sampler.draw_randomizer`."""
    counted: Counted
    pilot: Rounds
    rounds: Rounds

    def __post_init__(self) -> None:
        if not 0 < self.randomizer <= 1:
            raise OptionError(f"The randomizer lies between 0 and 1 (found: {self.randomizer}).")
        copies_per_round = self.plan.copies_per_round
        if copies_per_round not in (1, self.distribution.copies_per_round):
            raise OptionError(f"Words are not dealt to {copies_per_round} copies by {self.distribution}.")
        if self.pilot.shape[1] != self.rounds.shape[1] or not 0 <= self.chosen < self.rounds.shape[1]:
            raise OptionError(f"The deals are not of the same classes, or class {self.chosen} is none of them.")
        for deals in (self.pilot, self.rounds):
            if np.any(deals < 0) or np.any(deals.sum(1) > copies_per_round + _ROUNDING):
                raise OptionError(f"{copies_per_round} copies cannot say what one of the deals says.")

    @property
    def classes(self) -> int:
        return int(self.rounds.shape[1])

    @property
    def copies(self) -> int:
        return len(self.rounds) * self.plan.copies_per_round

    @property
    def totals(self) -> tuple[float, ...]:
        """By class, over all deals that were bet on."""
        return tuple(self.rounds.sum(0).tolist())

    @property
    def levels(self) -> tuple[Number, ...]:
        """All that the lead may have to exceed for what is said of a text, from the lowest up: of several statements in
        one order, each of which needs those before it, alpha is paid once.
        """
        return tuple(sorted({*radius_levels(self.distribution, self.rule), *self._insertion_levels}))

    @property
    def bets(self) -> BettingTest:
        """All bets, played to the end."""
        bets = BettingTest(self.plan, self.rule, self.chosen, self.levels, self.pilot)
        bets.bet_on(self.rounds)
        return bets

    def wealth(self, radius: int) -> tuple[float, float] | None:
        """How the least lucky bet against a radius stands (see `BettingTest.wealth`); None if it cannot be reached."""
        levels = radius_levels(self.distribution, self.rule)
        return self.bets.wealth(self.levels.index(levels[radius])) if radius < len(levels) else None

    def radius(self) -> int | None:
        return self._last_exceeded(radius_levels(self.distribution, self.rule))

    def insertions(self) -> int | None:
        """How many words may be inserted, if nothing else is changed; known where copies lose words."""
        return self._last_exceeded(self._insertion_levels)

    @property
    def _insertion_levels(self) -> tuple[Number, ...]:
        if isinstance(self.distribution, DeletionDistribution) and self.rule == "gap":
            return insertion_leads(self.distribution.kept_chance, INSERTIONS)
        return ()

    def _last_exceeded(self, levels: Sequence[Number]) -> int | None:
        won = set(self.levels[: self.bets.rejected_levels(self.randomizer)])
        exceeded = sum(level in won for level in levels)
        return exceeded - 1 if exceeded else None

    def described(self) -> dict[str, Any]:
        return {
            "kind": "betting",
            "distribution": {"kind": type(self.distribution).__name__, **asdict(self.distribution)},
            "rule": self.rule,
            "plan": asdict(self.plan),
            "chosen": self.chosen,
            "randomizer": self.randomizer,
            "classes": self.classes,
            "counted": self.counted,
            "pilot": packed(self.pilot.astype(_type(self.counted)).tobytes()),
            "rounds": packed(self.rounds.astype(_type(self.counted)).tobytes()),
        }


def radius_levels(distribution: AntitheticDistribution, rule: Rule) -> tuple[Number, ...]:
    """What the lead (the share) must exceed for radius 0, 1, …, as long as it can."""
    return tuple(level for level in (threshold(loss, rule) for loss in distribution.losses()) if level < 1)


def read_betting(told: Mapping[str, Any]) -> BettingEvidence:
    pilot, deals = (
        np.frombuffer(unpacked(told[name]), dtype=_type(told["counted"]))
        .reshape(-1, told["classes"])
        .astype(np.float64)
        for name in ("pilot", "rounds")
    )
    distribution = dict(told["distribution"])
    kind, plan = _DISTRIBUTIONS[distribution.pop("kind")], BettingPlan(**told["plan"])
    return BettingEvidence(
        kind(**distribution), told["rule"], plan, told["chosen"], told["randomizer"], told["counted"], pilot, deals
    )


def _type(counted: Counted) -> str:
    """As kept in a file: the same bytes on every machine."""
    return {"votes": "<u2", "probabilities": "<f8"}[counted]
