"""The ground of a certificate that rests on deals of masked copies: the deals in their order, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from stockade.certificates.bounds import Number, Rule, insertion_leads, threshold
from stockade.certificates.deals import Bets, DealPlan, Deals
from stockade.certificates.laws import INSERTIONS, DealtLaw, DeletionLaw, MaskingLaw
from stockade.certificates.packing import packed, unpacked
from stockade.core.errors import OptionError

_LAWS: Mapping[str, type[DealtLaw]] = {"MaskingLaw": MaskingLaw, "DeletionLaw": DeletionLaw}
Counted = Literal["votes", "probabilities"]
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Dealt:
    """Votes (or sums of probabilities) by deal and class. The deals that chose the class come first, and only tell how
    much to bet on the others.
    """

    law: DealtLaw
    rule: Rule
    plan: DealPlan
    chosen: int
    coin: float
    """U of `deals`, which the seed of the certificate and the deals give: see `stockade.certificates.dealing.toss`."""
    counted: Counted
    earlier: Deals
    deals: Deals

    def __post_init__(self) -> None:
        if not 0 < self.coin <= 1:
            raise OptionError(f"A coin lies between 0 and 1 (found: {self.coin}).")
        per_deal = self.plan.per_deal
        if per_deal not in (1, self.law.per_deal):
            raise OptionError(f"Words are not dealt to {per_deal} copies by {self.law}.")
        if self.earlier.shape[1] != self.deals.shape[1] or not 0 <= self.chosen < self.deals.shape[1]:
            raise OptionError(f"The deals are not of the same classes, or class {self.chosen} is none of them.")
        for deals in (self.earlier, self.deals):
            if np.any(deals < 0) or np.any(deals.sum(1) > per_deal + _ROUNDING):
                raise OptionError(f"{per_deal} copies cannot say what one of the deals says.")

    @property
    def classes(self) -> int:
        return int(self.deals.shape[1])

    @property
    def copies(self) -> int:
        return len(self.deals) * self.plan.per_deal

    @property
    def totals(self) -> tuple[float, ...]:
        """By class, over all deals that were bet on."""
        return tuple(self.deals.sum(0).tolist())

    @property
    def levels(self) -> tuple[Number, ...]:
        """All that the lead may have to exceed for what is said of a text, from the lowest up: of several statements in
        one order, each of which needs those before it, alpha is paid once.
        """
        return tuple(sorted({*radius_levels(self.law, self.rule), *self._insertion_levels}))

    @property
    def bets(self) -> Bets:
        """All bets, played to the end."""
        bets = Bets(self.plan, self.rule, self.chosen, self.levels, self.earlier)
        bets.play(self.deals)
        return bets

    def grown(self, radius: int) -> tuple[float, float] | None:
        """How the least lucky bet against a radius stands (see `Bets.grown`); None if it cannot be reached at all."""
        levels = radius_levels(self.law, self.rule)
        return self.bets.grown(self.levels.index(levels[radius])) if radius < len(levels) else None

    def radius(self) -> int | None:
        return self._last_exceeded(radius_levels(self.law, self.rule))

    def insertions(self) -> int | None:
        """How many words may be inserted, if nothing else is changed; known where copies lose words."""
        return self._last_exceeded(self._insertion_levels)

    @property
    def _insertion_levels(self) -> tuple[Number, ...]:
        if isinstance(self.law, DeletionLaw) and self.rule == "gap":
            return insertion_leads(self.law.kept_chance, INSERTIONS)
        return ()

    def _last_exceeded(self, levels: Sequence[Number]) -> int | None:
        won = set(self.levels[: self.bets.won(self.coin)])
        exceeded = sum(level in won for level in levels)
        return exceeded - 1 if exceeded else None

    def described(self) -> dict[str, Any]:
        return {
            "kind": "dealt",
            "law": {"kind": type(self.law).__name__, **asdict(self.law)},
            "rule": self.rule,
            "plan": asdict(self.plan),
            "chosen": self.chosen,
            "coin": self.coin,
            "classes": self.classes,
            "counted": self.counted,
            "earlier": packed(self.earlier.astype(_type(self.counted)).tobytes()),
            "deals": packed(self.deals.astype(_type(self.counted)).tobytes()),
        }


def radius_levels(law: DealtLaw, rule: Rule) -> tuple[Number, ...]:
    """What the lead (the share) must exceed for radius 0, 1, …, as long as it can."""
    return tuple(level for level in (threshold(loss, rule) for loss in law.losses()) if level < 1)


def read_dealt(told: Mapping[str, Any]) -> Dealt:
    earlier, deals = (
        np.frombuffer(unpacked(told[name]), dtype=_type(told["counted"]))
        .reshape(-1, told["classes"])
        .astype(np.float64)
        for name in ("earlier", "deals")
    )
    law = dict(told["law"])
    kind, plan = _LAWS[law.pop("kind")], DealPlan(**told["plan"])
    return Dealt(kind(**law), told["rule"], plan, told["chosen"], told["coin"], told["counted"], earlier, deals)


def _type(counted: Counted) -> str:
    """As kept in a file: the same bytes on every machine."""
    return {"votes": "<u2", "probabilities": "<f8"}[counted]
