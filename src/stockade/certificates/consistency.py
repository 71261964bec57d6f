"""What the evidence of a certificate must be like if the method of its run made it, on copies of the run's defense.

All of this follows from the manifest and the text, without the model: how copies are made, when they are looked at,
where deals end, how many groups vote, the seed. The votes themselves follow from the model alone: whoever invents them
in keeping with all the rest is found out by asking it (`resample`), and by nothing here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import comb
from typing import Any

from stockade.certificates.betting_evidence import BettingEvidence
from stockade.certificates.betting_sampler import (
    all_agree,
    betting_plans,
    draw_randomizer,
    stopped_as_planned,
    worth_betting,
)
from stockade.certificates.certificate import Certificate
from stockade.certificates.distributions import (
    DeletionDistribution,
    MaskingDistribution,
    SmoothingDistribution,
    SynonymDistribution,
)
from stockade.certificates.evidence import (
    EnumeratedEvidence,
    Evidence,
    LegacyEvidence,
    PartitionEvidence,
    SampledEvidence,
)
from stockade.certificates.job import seed_of_text, used_methods
from stockade.certificates.masked_copies import FINITE
from stockade.certificates.methods.partition import HashPartition, PositionPartition
from stockade.certificates.methods.ranmask import RanMaskExact, RanMaskLegacy
from stockade.certificates.registry import NamedMethod
from stockade.certificates.sampling import SampledMethod
from stockade.certificates.sequential import choose_class
from stockade.certificates.synonyms import synonym_distribution
from stockade.core.masks import kept_words
from stockade.core.text import Text
from stockade.defenses.deletion import Deletion
from stockade.defenses.partition import Partition
from stockade.defenses.ranmask import RanMask
from stockade.defenses.registry import make_defense
from stockade.defenses.safer import Safer

_KINDS: Mapping[type, type[Evidence] | tuple[type, ...]] = {
    RanMaskExact: EnumeratedEvidence,
    RanMaskLegacy: LegacyEvidence,
    PositionPartition: PartitionEvidence,
    HashPartition: PartitionEvidence,
}


@dataclass(frozen=True, slots=True)
class ConsistencyCheck:
    """What a run says of one of its methods."""

    named: NamedMethod
    defense: Any
    labels: tuple[str, ...]
    seed: int

    def deviations(self, certificate: Certificate, evidence: Evidence) -> Iterator[str]:
        """Where the evidence of a certificate is not what it should be."""
        if certificate.seed != seed_of_text(self.seed, self.named.name, certificate.id):
            yield "the seed is not the one that the run gives this text"
        if not isinstance(evidence, _KINDS.get(type(self.named.method), (SampledEvidence, BettingEvidence))):
            yield f"the evidence is not of the kind that {self.named.name} makes"
        elif evidence.classes != len(self.labels) or not 0 <= evidence.chosen < evidence.classes:
            yield f"the evidence is of class {evidence.chosen} of {evidence.classes}, the model has {len(self.labels)}"
        elif isinstance(evidence, PartitionEvidence):
            yield from self._of_groups(certificate, evidence)
        else:
            yield from self._of_copies(certificate, evidence)

    def _of_groups(self, certificate: Certificate, evidence: PartitionEvidence) -> Iterator[str]:
        groups = _groups(self.defense, certificate.text.split())
        if evidence.copies != groups:
            yield f"the evidence is of {evidence.copies} groups, the text has {groups}"

    def _of_copies(self, certificate: Certificate, evidence: Evidence) -> Iterator[str]:
        distribution, found = _law(self.defense, certificate), _law_of(evidence)
        if found != distribution:
            yield _other_law(found, distribution)
        elif isinstance(evidence, LegacyEvidence):
            if (evidence.alpha, evidence.copies) != (self.named.method.alpha, self.named.method.most):
                yield f"the evidence is of {evidence.copies} copies read with alpha {evidence.alpha}, not the run's"
        elif isinstance(evidence, SampledEvidence | BettingEvidence):
            yield from _sampling(certificate, evidence, self.named.method)


def consistency_checks(manifest: Mapping[str, Any]) -> dict[str, ConsistencyCheck]:
    """What a run says of its methods, by key."""
    told = manifest["model"]["defenses"][0]
    defense = make_defense(told["name"], **told["options"]).defense
    labels, seed = tuple(manifest["model"]["labels"]), manifest["config"]["seed"]
    return {key: ConsistencyCheck(named, defense, labels, seed) for key, named in used_methods(manifest).items()}


def _groups(defense: Partition, words: list[str]) -> int:
    """How many groups of a text vote."""
    return len(defense.positions(len(words))) if defense.by == "position" else sum(map(bool, defense.hashed(words)))


def _law(defense: Any, certificate: Certificate) -> SmoothingDistribution:
    """How the defense makes copies of the text."""
    words = len(certificate.text.split())
    if isinstance(defense, RanMask):
        return MaskingDistribution(words, kept_words(words, defense.rate, defense.kept))
    if isinstance(defense, Deletion):
        return DeletionDistribution(words, defense.kept_chance)
    assert isinstance(defense, Safer)
    text = Text.parse(certificate.text, certificate.premise)
    return synonym_distribution(text, defense.word_sets(text))


def _law_of(evidence: Evidence) -> SmoothingDistribution:
    if isinstance(evidence, EnumeratedEvidence):
        return MaskingDistribution(evidence.table.words, evidence.table.kept)
    assert isinstance(evidence, SampledEvidence | BettingEvidence | LegacyEvidence)
    return evidence.distribution


def _other_law(found: SmoothingDistribution, distribution: SmoothingDistribution) -> str:
    if (
        isinstance(found, MaskingDistribution | DeletionDistribution)
        and isinstance(distribution, type(found))
        and found.words != distribution.words
    ):
        return f"the evidence is of a text of {found.words} words, this one has {distribution.words}"
    if isinstance(found, MaskingDistribution) and isinstance(distribution, MaskingDistribution):
        return f"the evidence is of copies with {found.kept} words, the defense shows {distribution.kept}"
    if isinstance(found, DeletionDistribution) and isinstance(distribution, DeletionDistribution):
        return f"the evidence is of another chance to stay ({found.kept_chance}), not {distribution.kept_chance}"
    return "the evidence is of other copies than the defense makes of this text"


def _sampling(
    certificate: Certificate, evidence: SampledEvidence | BettingEvidence, method: SampledMethod
) -> Iterator[str]:
    """Looks that were not fixed beforehand prove nothing: all must be as the run's options say."""
    if evidence.plan.alpha > method.alpha:
        yield f"the evidence is read with alpha {evidence.plan.alpha}, the run allows {method.alpha}"
    if evidence.rule != method.rule:
        yield f"the evidence is read by the rule {evidence.rule}, the method has {method.rule}"
    votes, selection = method.ensemble == "vote", certificate.selection
    if votes and selection is not None and choose_class(selection) != evidence.chosen:
        yield "another class was chosen than the one that the evidence is about"
    if isinstance(evidence, BettingEvidence):
        yield from _dealing(certificate, evidence, method)
        return
    population = _population(evidence.distribution, method)
    if evidence.plan.population not in (None, population):
        yield f"the evidence is of {evidence.plan.population} different copies, the text has {population}"
    dealt = isinstance(evidence.distribution, MaskingDistribution | DeletionDistribution) and worth_betting(
        method, evidence.distribution
    )
    if dealt or evidence.plan != method.plan(population):
        yield "the evidence was looked at by another plan than the run's"


def _population(distribution: SmoothingDistribution, method: SampledMethod) -> int | None:
    """How many copies there are to draw from without replacement."""
    if isinstance(distribution, SynonymDistribution):
        return None if distribution.overlaps else 1
    if not isinstance(distribution, MaskingDistribution) or (method.ensemble, method.scheme) == (
        "probability",
        "anytime",
    ):
        return None
    number = comb(distribution.words, distribution.kept)
    return number if number <= FINITE else None


def _dealing(certificate: Certificate, evidence: BettingEvidence, method: SampledMethod) -> Iterator[str]:
    plan, selection = betting_plans(method, evidence.distribution)[0], certificate.selection
    drawn = certificate.copies - evidence.copies
    if selection is not None and all_agree(selection, drawn):
        plan = betting_plans(method, evidence.distribution)[1]
    if evidence.plan != plan or not worth_betting(method, evidence.distribution):
        yield "the evidence was looked at by another plan than the run's"
    elif (evidence.counted == "votes") != (method.ensemble == "vote"):
        yield f"the evidence is of {evidence.counted}, which the method does not count"
    elif len(evidence.pilot) * plan.copies_per_round != drawn or (
        evidence.counted == "votes" and tuple(evidence.pilot.sum(0)) != (selection or (0,) * evidence.classes)
    ):
        yield "the stakes rest on other copies than those that chose the class"
    elif not stopped_as_planned(evidence, method):
        yield "the rounds do not end where the plan ends them"
    if evidence.randomizer != draw_randomizer(certificate.seed, evidence.rounds):
        yield f"the randomizer {evidence.randomizer} is not the one that the seed and the rounds give"
