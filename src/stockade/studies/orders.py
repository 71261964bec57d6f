"""What a paper says about the order of its numbers, held against a run: reported, never enforced.

A paper had other victims and data: an order that does not hold here is a finding, not a fault.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from stockade.studies.results import Results, attacked_by_all, succeeded


@dataclass(frozen=True, slots=True)
class Order:
    """One statement of the paper with what the run says to it; None when the run cannot tell."""

    claim: str
    holds: bool | None
    numbers: str

    @property
    def verdict(self) -> str:
        return "n/a" if self.holds is None else "holds" if self.holds else "does not hold"


def as_rows(orders: Iterable[Order]) -> list[dict[str, Any]]:
    """The orders as `study.json` has them."""
    return [{**dataclasses.asdict(order), "verdict": order.verdict} for order in orders]


def at_least_as_strong(results: Results, strong: str, weak: str, claim: str | None = None) -> Order:
    """Whether one attack succeeds at least as often as another, on the texts both have attacked; if neither has fooled
    the model on any, that cannot be told.
    """
    claim = claim or f"{strong} succeeds at least as often as {weak}"
    texts = attacked_by_all(results, (strong, weak))
    if not texts:
        return Order(claim, None, "no text was attacked by both")
    outcomes = [(succeeded(results[strong][text]), succeeded(results[weak][text])) for text in texts]
    ahead, behind = sum(one for one, _ in outcomes), sum(other for _, other in outcomes)
    only, missed = sum(one > other for one, other in outcomes), sum(one < other for one, other in outcomes)
    numbers = f"{ahead} against {behind} of {len(texts)} texts; {only} fooled only by {strong}, {missed} only by {weak}"
    return Order(claim, ahead >= behind if ahead or behind else None, numbers)


def count_texts(count: int) -> str:
    return f"{count} text" if count == 1 else f"{count} texts"


def orders_in_short(numbers: Mapping[str, Any]) -> str:
    verdicts = [order["holds"] for order in numbers["orders"]]
    told = [verdict for verdict in verdicts if verdict is not None]
    unknown = f"; {len(verdicts) - len(told)} cannot be told" if len(told) < len(verdicts) else ""
    return f"Of the {len(verdicts)} orders the paper states, {sum(told)} hold here{unknown}."
