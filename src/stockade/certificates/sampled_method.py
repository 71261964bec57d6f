"""Methods that draw random copies of a text: their options, how they certify, and what their evidence must be like."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Protocol, Self, TypeVar

import numpy as np

from stockade.certificates.betting_evidence import BettingEvidence
from stockade.certificates.betting_sampler import (
    ANOTHER_PLAN,
    AntitheticCopies,
    betting_deviations,
    sample_by_betting,
    worth_betting,
)
from stockade.certificates.bounds import Rule
from stockade.certificates.certificate import Certificate
from stockade.certificates.evidence import Evidence, SampledEvidence
from stockade.certificates.method import NO_WORDS, WRONG_KIND, CertificationInput, MethodResult
from stockade.certificates.sampling import Copies, RunningTotals, sample
from stockade.certificates.sequential import Plan, Scheme, choose_class, look_schedule
from stockade.core.errors import OptionError
from stockade.core.protocols import Classifier
from stockade.core.text import Text

_FEW = 3
"""All copies are asked if they are no more than so many first looks."""
Defense = TypeVar("Defense")


class Smoothing(Protocol[Defense]):
    """How one defense makes random copies of a text: what all methods that sample them share."""

    def defense_of(self, classifier: Classifier) -> Defense:
        """The defense around a model; a model that is not certifiable is refused, with the reason."""
        ...

    def copies(self, defense: Defense, inputs: CertificationInput, classes: int) -> Copies | None:
        """The copies that a defense makes of a text; None if the text has no words."""
        ...


@dataclass(frozen=True, slots=True)
class SampledMethod:
    """Options of every method that draws copies at random.

    Parameters
    ----------
    alpha : float
        The probability that a certificate may be wrong, per text.
    most : int
        The largest number of copies that are counted.
    selection : int
        The largest number of copies that choose the class before, fewer when one class is clearly ahead. They are not
        counted.
    scheme : Scheme
        How alpha is shared among the looks at the copies, and when to stop: see `sequential`.
    first : int
        The number of copies at the first look.
    growth : float
        Each look is at so many times the copies of the one before.
    choose : "votes" or "label"
        With "label" the class is the true one instead, which only an evaluation knows.
    ensemble : "vote" or "probability"
        Whether copies vote or their probabilities are averaged.
    target : int, optional
        Stop when it is known whether the radius is at least this.
    least_power : float
        Stop when the estimated chance of a larger radius is less than this, with the scheme "betting".
    """

    sound: ClassVar[bool] = True
    default: ClassVar[bool] = False
    rule: ClassVar[Rule] = "gap"
    antithetic: ClassVar[bool] = False
    """Whether copies come in antithetic groups, too: those that show a part of the words can."""
    smoothing: ClassVar[Smoothing[Any]]
    alpha: float = 0.05
    most: int = 5000
    selection: int = 1000
    scheme: Scheme = "curtailed"
    first: int = 50
    growth: float = 1.5
    choose: Literal["votes", "label"] = "votes"
    ensemble: Literal["vote", "probability"] = "vote"
    target: int | None = None
    least_power: float = 0.0003

    def __post_init__(self) -> None:
        if not 0 < self.alpha < 1:
            raise OptionError(f"alpha is {self.alpha}, expected a probability between 0 and 1, such as 0.05.")
        if min(self.most, self.first, self.selection) < 1 or self.growth <= 1:
            raise OptionError(
                f"most is {self.most}, first {self.first}, selection {self.selection} and growth {self.growth}; "
                "expected at least one copy each, and a growth above 1."
            )
        if self.scheme == "betting" and not self.antithetic:
            raise OptionError(
                "scheme=betting needs copies that show a part of the words, and these show all: use another scheme, "
                "such as curtailed."
            )
        if self.target is not None and self.target < 0:
            raise OptionError(f"target is {self.target}, expected a radius from 0 up.")
        if not 0 <= self.least_power < 1:
            raise OptionError(f"least_power is {self.least_power}, expected a chance from 0 up, such as 0.001.")

    def check(self, classifier: Classifier) -> None:
        """Refuse a model that the method cannot certify, with the reason."""
        self.smoothing.defense_of(classifier)

    async def certify(self, inputs: CertificationInput, classifier: Classifier) -> MethodResult:
        """Draw copies of a text until its radius is known."""
        classes = len(classifier.labels)
        copies = self._copies(self.smoothing.defense_of(classifier), inputs, classes)
        if copies is None:
            return NO_WORDS
        antithetic = self._bet_on(copies)
        if antithetic is not None:
            return await sample_by_betting(self, antithetic, inputs, classes)
        return await sample(self, copies, inputs, classes)

    def deviations(self, certificate: Certificate, evidence: Evidence, defense: Any) -> Iterator[str]:
        """Where evidence is not what this method makes: looks that were not fixed beforehand prove nothing."""
        if not isinstance(evidence, SampledEvidence | BettingEvidence):
            yield WRONG_KIND
            return
        text = Text.parse(certificate.text, certificate.premise)
        copies = self._copies(defense, CertificationInput(text, None, certificate.seed), evidence.classes)
        if copies is None:
            yield "the text has no words to draw copies of"
            return
        if evidence.distribution != copies.distribution:
            yield copies.distribution.difference(evidence.distribution)
            return
        if evidence.plan.alpha > self.alpha:
            yield f"the evidence is read with alpha {evidence.plan.alpha}, the run allows {self.alpha}"
        if evidence.rule != self.rule:
            yield f"the evidence is read by the rule {evidence.rule}, the method has {self.rule}"
        selection = certificate.selection
        if self.ensemble == "vote" and selection is not None and choose_class(selection) != evidence.chosen:
            yield "another class was chosen than the one that the evidence is about"
        if isinstance(evidence, BettingEvidence):
            yield from betting_deviations(certificate, evidence, self)
        else:
            yield from self._looked_at_otherwise(evidence, copies)

    def for_resampling(self, alpha: float) -> Self:
        """The method with one look at fresh copies, at this alpha, about the class it is told."""
        return replace(self, scheme="fixed", choose="label", alpha=alpha, target=None)

    def plan(self, population: int | None) -> Plan:
        """When to look at the copies of a text; fixed before the first is drawn."""
        if population is not None and self.asks_all(population):
            return Plan("fixed", self.alpha, (population,), population)
        most = self.most if population is None else min(self.most, population)
        scheme = "curtailed" if self.scheme == "betting" else self.scheme
        return Plan(scheme, self.alpha, self._looks(most), population)

    def asks_all(self, population: int) -> bool:
        """Whether there are so few copies that all of them are asked."""
        return population <= _FEW * self.first

    def selection_looks(self, most: int | None = None) -> tuple[int, ...]:
        """After how many copies to look whether the class is clear."""
        return self._looks(self.selection if most is None else most)

    def best(self, totals: RunningTotals) -> int:
        """The class that the copies choose."""
        return choose_class(totals.tally.counts) if self.ensemble == "vote" else int(np.argmax(totals.totals))

    def _looks(self, most: int) -> tuple[int, ...]:
        return (most,) if self.scheme == "fixed" else look_schedule(most, min(self.first, most), self.growth)

    def _copies(self, defense: Any, inputs: CertificationInput, classes: int) -> Copies | None:
        copies = self.smoothing.copies(defense, inputs, classes)
        if copies is None:
            return None
        # Bets, and limits of mean probabilities at any time, hold for independent copies only.
        anytime_means = (self.ensemble, self.scheme) == ("probability", "anytime")
        return copies.independent() if anytime_means or self._bet_on(copies) else copies

    def _bet_on(self, copies: Copies) -> AntitheticCopies | None:
        """The copies, if the betting bound is the one for their text."""
        if isinstance(copies, AntitheticCopies) and worth_betting(self, copies.distribution):
            return copies
        return None

    def _looked_at_otherwise(self, evidence: SampledEvidence, copies: Copies) -> Iterator[str]:
        population = copies.population
        if evidence.plan.population not in (None, population):
            yield f"the evidence is of {evidence.plan.population} different copies, the text has {population}"
        if self._bet_on(copies) or evidence.plan != self.plan(population):
            yield ANOTHER_PLAN
