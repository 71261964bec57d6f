"""Draw copies of a text until its radius is known: first some that choose the class, then fresh ones that are counted,
with a look at each of the numbers that were fixed beforehand.
"""

from __future__ import annotations

import math
from collections.abc import Coroutine
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from stockade.certificates.bounds import Rule
from stockade.certificates.distributions import SmoothingDistribution
from stockade.certificates.evidence import SampledEvidence
from stockade.certificates.registry import CertificationInput, MethodResult
from stockade.certificates.sequential import Means, Plan, Scheme, Tally, choose_class, decide, look_schedule
from stockade.core.errors import OptionError

Votes = NDArray[np.int64]
"""For each copy the class it votes for, or -1."""
Rows = NDArray[np.float64]
"""For each copy its class probabilities."""
FEW, CLEAR = 3, 2.0
"""All copies are asked if they are no more than so many first looks; a lead of so many deviations is clear."""
Stream = Literal["selection", "estimation"]


class Copies(Protocol):
    """The random copies of one text: `population` is how many there are to draw from without replacement; None if they
    are drawn independently.
    """

    @property
    def distribution(self) -> SmoothingDistribution: ...

    @property
    def population(self) -> int | None: ...

    def score(self, stream: Stream, start: int, stop: int) -> Coroutine[Any, Any, Rows]:
        """Class probabilities of the copies with these numbers in a stream; rows of zeros where a copy says nothing."""
        ...


@dataclass(frozen=True, slots=True)
class SampledMethod:
    """Options of every method that draws copies at random.

    `alpha` is the chance that a certificate may be wrong, per text. At most `most` copies are counted, with looks at
    `first`, then always `growth` times as many: `scheme` says how alpha is shared among the looks and when to stop
    (see `sequential`); `fixed` looks once. At most `selection` copies, fewer when one class is clearly ahead, choose
    the class before, and are not counted; with `choose=label` it is the true class instead, which only an evaluation
    knows. With `target` sampling ends when it is known whether the radius is at least that. `ensemble` says whether
    copies vote or their probabilities are averaged.
    """

    sound: ClassVar[bool] = True
    rule: ClassVar[Rule] = "gap"
    antithetic: ClassVar[bool] = False
    """Whether copies can be dealt: those that show a part of the words can."""
    alpha: float = 0.05
    most: int = 5000
    selection: int = 1000
    scheme: Scheme = "curtailed"
    first: int = 50
    growth: float = 1.5
    choose: Literal["votes", "label"] = "votes"
    ensemble: Literal["vote", "probability"] = "vote"
    target: int | None = None

    def __post_init__(self) -> None:
        if not 0 < self.alpha < 1:
            raise OptionError(f"alpha is {self.alpha}, expected a chance between 0 and 1, such as 0.05.")
        if min(self.most, self.first, self.selection) < 1 or self.growth <= 1:
            raise OptionError(
                f"most is {self.most}, first {self.first}, selection {self.selection} and growth {self.growth}; "
                "expected at least one copy each, and a growth above 1."
            )
        if self.scheme == "betting" and not self.antithetic:
            raise OptionError(
                "scheme=betting hands out the words of a text to copies that show a part of them; here all are shown."
            )
        if self.target is not None and self.target < 0:
            raise OptionError(f"target is {self.target}, expected a radius from 0 up.")

    async def sampled(self, copies: Copies, inputs: CertificationInput, classes: int) -> MethodResult:
        """What the copies of a text prove."""
        if copies.population is not None and self._are_few(copies.population):
            return await self._counted_all(copies, copies.population, classes)
        chosen, selection, drawn = inputs.label, None, 0
        if self.choose == "votes":
            seen = await self._selected(copies, classes)
            chosen, selection, drawn = self.best(seen), seen.tally.counts, seen.copies
        if chosen is None:
            return MethodResult(None, reason="choose=label needs data with labels")
        plan, seen, losses = self.plan(copies.population), RunningTotals(classes), copies.distribution.losses()
        for start, stop in pairwise((0, *plan.looks)):
            seen = seen.with_rows(await copies.score("estimation", start, stop))
            if decide(self._counted(seen), chosen, plan, self.rule, losses, self.target).done:
                break
        return MethodResult(
            SampledEvidence(copies.distribution, self.rule, plan, chosen, self._counted(seen)), selection, drawn
        )

    async def _selected(self, copies: Copies, classes: int) -> RunningTotals:
        """Copies until one class is clearly ahead. They are not counted again, so any rule may end this."""
        most = self.selection if copies.population is None else min(self.selection, copies.population)
        seen = RunningTotals(classes)
        for start, stop in pairwise((0, *self.selection_looks(most))):
            seen = seen.with_rows(await copies.score("selection", start, stop))
            if seen.clear():
                break
        return seen

    def selection_looks(self, most: int | None = None) -> tuple[int, ...]:
        """After how many copies to look whether the class is clear."""
        return self._looks(self.selection if most is None else most)

    def _looks(self, most: int) -> tuple[int, ...]:
        return (most,) if self.scheme == "fixed" else look_schedule(most, min(self.first, most), self.growth)

    def plan(self, population: int | None) -> Plan:
        """When to look at the copies of a text; fixed before the first is drawn."""
        if population is not None and self._are_few(population):
            return Plan("fixed", self.alpha, (population,), population)
        most = self.most if population is None else min(self.most, population)
        scheme = "curtailed" if self.scheme == "betting" else self.scheme
        return Plan(scheme, self.alpha, self._looks(most), population)

    def _are_few(self, population: int) -> bool:
        """Whether all copies there are should be asked at once."""
        return population <= FEW * self.first

    async def _counted_all(self, copies: Copies, population: int, classes: int) -> MethodResult:
        """There are so few copies that all of them are asked: then nothing is left to chance."""
        seen = RunningTotals(classes).with_rows(await copies.score("estimation", 0, population))
        plan = self.plan(population)
        return MethodResult(SampledEvidence(copies.distribution, self.rule, plan, self.best(seen), self._counted(seen)))

    def _counted(self, seen: RunningTotals) -> Tally | Means:
        return seen.tally if self.ensemble == "vote" else seen.means

    def best(self, seen: RunningTotals) -> int:
        """The class that the copies choose."""
        return choose_class(seen.tally.counts) if self.ensemble == "vote" else int(np.argmax(seen.totals))


@dataclass(frozen=True, slots=True)
class RunningTotals:
    """The sums over the copies so far."""

    classes: int
    copies: int = 0
    counts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    totals: Rows = field(default_factory=lambda: np.zeros(0))
    squares: Rows = field(default_factory=lambda: np.zeros(0))

    def with_rows(self, rows: Rows) -> RunningTotals:
        votes = votes_of(rows)
        counts = np.bincount(votes[votes >= 0], minlength=self.classes)
        sums = (counts, rows.sum(0), np.square(rows).sum(0))
        if self.copies:
            sums = (self.counts + sums[0], self.totals + sums[1], self.squares + sums[2])
        return RunningTotals(self.classes, self.copies + len(rows), *sums)

    def clear(self) -> bool:
        """Whether the first class leads the second by more than two standard deviations of an even race."""
        *_, second, first = sorted(self.counts.tolist())
        return bool(first - second > CLEAR * math.sqrt(first + second))

    @property
    def tally(self) -> Tally:
        return Tally(tuple(self.counts.tolist()), self.copies)

    @property
    def means(self) -> Means:
        return Means(tuple(self.totals.tolist()), tuple(self.squares.tolist()), self.copies)


def votes_of(rows: Rows) -> Votes:
    """The class that each copy votes for; a row of zeros votes for none."""
    votes: Votes = np.where(rows.any(1), rows.argmax(1), -1).astype(np.int64)
    return votes
