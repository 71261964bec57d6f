"""Draw copies of a text until its radius is known: first some that choose the class, then fresh ones that are counted,
with a look at each of the numbers that were fixed beforehand.
"""

from __future__ import annotations

import math
from collections.abc import Coroutine
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from stockade.certificates.evidence import SampledEvidence, SmoothingDistribution
from stockade.certificates.method import CertificationInput, MethodResult
from stockade.certificates.sequential import Means, Plan, Tally, decide

if TYPE_CHECKING:
    from stockade.certificates.sampled_method import SampledMethod

Votes = NDArray[np.int64]
"""For each copy the class it votes for, or -1."""
Rows = NDArray[np.float64]
"""For each copy its class probabilities."""
Stream = Literal["selection", "estimation"]
"""Which copies: those that choose the class, or those that are counted. No copy is in both."""
_CLEAR_LEAD = 2.0
"""In standard deviations of an even race."""


class Copies(Protocol):
    """The random copies of one text.

    Copies are drawn chunk by chunk: those of a chunk are a function of the seed, the stream and the chunk's start
    alone, so a method that asks for the same chunks gets the same copies, whatever happens in between. Other chunks of
    the same numbers may hold other copies.
    """

    @property
    def distribution(self) -> SmoothingDistribution:
        """How they are drawn."""
        ...

    @property
    def population(self) -> int | None:
        """How many there are to draw from without replacement; None if they are drawn independently."""
        ...

    def independent(self) -> Self:
        """The same copies drawn independently, where there is anything to draw."""
        ...

    def score(self, stream: Stream, start: int, stop: int) -> Coroutine[Any, Any, Rows]:
        """Class probabilities of the copies in a chunk of a stream; rows of zeros where a copy says nothing."""
        ...


@dataclass(frozen=True, slots=True)
class RunningTotals:
    """The sums over the copies so far."""

    classes: int
    copies: int = 0
    counts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    totals: Rows = field(default_factory=lambda: np.zeros(0))
    squares: Rows = field(default_factory=lambda: np.zeros(0))

    def with_rows(self, rows: Rows) -> RunningTotals:
        """The sums with more copies."""
        votes = votes_of(rows)
        counts = np.bincount(votes[votes >= 0], minlength=self.classes)
        sums = (counts, rows.sum(0), np.square(rows).sum(0))
        if self.copies:
            sums = (self.counts + sums[0], self.totals + sums[1], self.squares + sums[2])
        return RunningTotals(self.classes, self.copies + len(rows), *sums)

    def clear(self) -> bool:
        """Whether the first class leads the second by more than two standard deviations of an even race."""
        *_, second, first = sorted(self.counts.tolist())
        return bool(first - second > _CLEAR_LEAD * math.sqrt(first + second))

    @property
    def tally(self) -> Tally:
        """The votes."""
        return Tally(tuple(self.counts.tolist()), self.copies)

    @property
    def means(self) -> Means:
        """The probabilities."""
        return Means(tuple(self.totals.tolist()), tuple(self.squares.tolist()), self.copies)


def votes_of(rows: Rows) -> Votes:
    """The class that each copy votes for; a row of zeros votes for none."""
    votes: Votes = np.where(rows.any(1), rows.argmax(1), -1).astype(np.int64)
    return votes


async def sample(method: SampledMethod, copies: Copies, inputs: CertificationInput, classes: int) -> MethodResult:
    """What random copies of a text prove, looked at as the method plans.

    Parameters
    ----------
    method : SampledMethod
        The options.
    copies : Copies
        The copies of the text.
    inputs : CertificationInput
        The text.
    classes : int
        How many classes the model has.
    """
    plan = method.plan(copies.population)
    if copies.population is not None and method.asks_all(copies.population):  # nothing is left to chance
        totals = RunningTotals(classes).with_rows(await copies.score("estimation", 0, copies.population))
        return MethodResult(_evidence(method, copies, plan, method.best(totals), totals))
    chosen, selection, drawn = inputs.label, None, 0
    if method.choose == "votes":
        totals = await _choose(method, copies, classes)
        chosen, selection, drawn = method.best(totals), totals.tally.counts, totals.copies
    if chosen is None:
        return MethodResult(None, reason="choose=label needs data with labels")
    totals, losses = RunningTotals(classes), copies.distribution.losses()
    for start, stop in pairwise((0, *plan.looks)):
        totals = totals.with_rows(await copies.score("estimation", start, stop))
        if decide(_counted(method, totals), chosen, plan, method.rule, losses, method.target).done:
            break
    return MethodResult(_evidence(method, copies, plan, chosen, totals), selection, drawn)


async def _choose(method: SampledMethod, copies: Copies, classes: int) -> RunningTotals:
    """Copies until one class is clearly ahead. They are not counted again, so any rule may end this."""
    most = method.selection if copies.population is None else min(method.selection, copies.population)
    totals = RunningTotals(classes)
    for start, stop in pairwise((0, *method.selection_looks(most))):
        totals = totals.with_rows(await copies.score("selection", start, stop))
        if totals.clear():
            break
    return totals


def _evidence(method: SampledMethod, copies: Copies, plan: Plan, chosen: int, totals: RunningTotals) -> SampledEvidence:
    return SampledEvidence(
        distribution=copies.distribution, rule=method.rule, plan=plan, chosen=chosen, tally=_counted(method, totals)
    )


def _counted(method: SampledMethod, totals: RunningTotals) -> Tally | Means:
    return totals.tally if method.ensemble == "vote" else totals.means
