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

from stockade.certificates.certificate import Certificate
from stockade.certificates.dealing import all_agree, deal_plans, ended_as_planned, toss, worth_dealing
from stockade.certificates.dealt import Dealt
from stockade.certificates.evidence import Claimed, Enumerated, Evidence, Grouped, Sampled
from stockade.certificates.job import seed_of_text, used_methods
from stockade.certificates.laws import DeletionLaw, Law, MaskingLaw, SynonymLaw
from stockade.certificates.masked_copies import FINITE
from stockade.certificates.methods.partition import HashPartition, PositionPartition
from stockade.certificates.methods.ranmask import RanMaskExact, RanMaskLegacy
from stockade.certificates.registry import NamedMethod
from stockade.certificates.sampling import SampledMethod
from stockade.certificates.sequential import choose_class
from stockade.certificates.synonyms import synonym_law
from stockade.core.masks import kept_words
from stockade.core.text import Text
from stockade.defenses.deletion import Deletion
from stockade.defenses.partition import Partition
from stockade.defenses.ranmask import RanMask
from stockade.defenses.registry import make_defense
from stockade.defenses.safer import Safer

_KINDS: Mapping[type, type[Evidence] | tuple[type, ...]] = {
    RanMaskExact: Enumerated,
    RanMaskLegacy: Claimed,
    PositionPartition: Grouped,
    HashPartition: Grouped,
}


@dataclass(frozen=True, slots=True)
class Promise:
    """What a run says of one of its methods."""

    named: NamedMethod
    defense: Any
    labels: tuple[str, ...]
    seed: int

    def deviations(self, certificate: Certificate, evidence: Evidence) -> Iterator[str]:
        """Where the evidence of a certificate is not what it should be."""
        if certificate.seed != seed_of_text(self.seed, self.named.name, certificate.id):
            yield "the seed is not the one that the run gives this text"
        if not isinstance(evidence, _KINDS.get(type(self.named.method), (Sampled, Dealt))):
            yield f"the evidence is not of the kind that {self.named.name} makes"
        elif evidence.classes != len(self.labels) or not 0 <= evidence.chosen < evidence.classes:
            yield f"the evidence is of class {evidence.chosen} of {evidence.classes}, the model has {len(self.labels)}"
        elif isinstance(evidence, Grouped):
            yield from self._of_groups(certificate, evidence)
        else:
            yield from self._of_copies(certificate, evidence)

    def _of_groups(self, certificate: Certificate, evidence: Grouped) -> Iterator[str]:
        groups = _groups(self.defense, certificate.text.split())
        if evidence.copies != groups:
            yield f"the evidence is of {evidence.copies} groups, the text has {groups}"

    def _of_copies(self, certificate: Certificate, evidence: Evidence) -> Iterator[str]:
        law, found = _law(self.defense, certificate), _law_of(evidence)
        if found != law:
            yield _other_law(found, law)
        elif isinstance(evidence, Claimed):
            if (evidence.alpha, evidence.copies) != (self.named.method.alpha, self.named.method.most):
                yield f"the evidence is of {evidence.copies} copies read with alpha {evidence.alpha}, not the run's"
        elif isinstance(evidence, Sampled | Dealt):
            yield from _sampling(certificate, evidence, self.named.method)


def promises(manifest: Mapping[str, Any]) -> dict[str, Promise]:
    """What a run says of its methods, by key."""
    told = manifest["model"]["defenses"][0]
    defense = make_defense(told["name"], **told["options"]).defense
    labels, seed = tuple(manifest["model"]["labels"]), manifest["config"]["seed"]
    return {key: Promise(named, defense, labels, seed) for key, named in used_methods(manifest).items()}


def _groups(defense: Partition, words: list[str]) -> int:
    """How many groups of a text vote."""
    return len(defense.positions(len(words))) if defense.by == "position" else sum(map(bool, defense.hashed(words)))


def _law(defense: Any, certificate: Certificate) -> Law:
    """How the defense makes copies of the text."""
    words = len(certificate.text.split())
    if isinstance(defense, RanMask):
        return MaskingLaw(words, kept_words(words, defense.rate, defense.kept))
    if isinstance(defense, Deletion):
        return DeletionLaw(words, defense.kept_chance)
    assert isinstance(defense, Safer)
    text = Text.parse(certificate.text, certificate.premise)
    return synonym_law(text, defense.word_sets(text))


def _law_of(evidence: Evidence) -> Law:
    if isinstance(evidence, Enumerated):
        return MaskingLaw(evidence.table.words, evidence.table.kept)
    assert isinstance(evidence, Sampled | Dealt | Claimed)
    return evidence.law


def _other_law(found: Law, law: Law) -> str:
    if isinstance(found, MaskingLaw | DeletionLaw) and isinstance(law, type(found)) and found.words != law.words:
        return f"the evidence is of a text of {found.words} words, this one has {law.words}"
    if isinstance(found, MaskingLaw) and isinstance(law, MaskingLaw):
        return f"the evidence is of copies with {found.kept} words, the defense shows {law.kept}"
    if isinstance(found, DeletionLaw) and isinstance(law, DeletionLaw):
        return f"the evidence is of another chance to stay ({found.kept_chance}), not {law.kept_chance}"
    return "the evidence is of other copies than the defense makes of this text"


def _sampling(certificate: Certificate, evidence: Sampled | Dealt, method: SampledMethod) -> Iterator[str]:
    """Looks that were not fixed beforehand prove nothing: all must be as the run's options say."""
    if evidence.plan.alpha > method.alpha:
        yield f"the evidence is read with alpha {evidence.plan.alpha}, the run allows {method.alpha}"
    if evidence.rule != method.rule:
        yield f"the evidence is read by the rule {evidence.rule}, the method has {method.rule}"
    votes, selection = method.ensemble == "vote", certificate.selection
    if votes and selection is not None and choose_class(selection) != evidence.chosen:
        yield "another class was chosen than the one that the evidence is about"
    if isinstance(evidence, Dealt):
        yield from _dealing(certificate, evidence, method)
        return
    population = _population(evidence.law, method)
    if evidence.plan.population not in (None, population):
        yield f"the evidence is of {evidence.plan.population} different copies, the text has {population}"
    dealt = isinstance(evidence.law, MaskingLaw | DeletionLaw) and worth_dealing(method, evidence.law)
    if dealt or evidence.plan != method.plan(population):
        yield "the evidence was looked at by another plan than the run's"


def _population(law: Law, method: SampledMethod) -> int | None:
    """How many copies there are to draw from without replacement."""
    if isinstance(law, SynonymLaw):
        return None if law.overlaps else 1
    if not isinstance(law, MaskingLaw) or (method.ensemble, method.scheme) == ("probability", "anytime"):
        return None
    number = comb(law.words, law.kept)
    return number if number <= FINITE else None


def _dealing(certificate: Certificate, evidence: Dealt, method: SampledMethod) -> Iterator[str]:
    plan, selection = deal_plans(method, evidence.law)[0], certificate.selection
    drawn = certificate.copies - evidence.copies
    if selection is not None and all_agree(selection, drawn):
        plan = deal_plans(method, evidence.law)[1]
    if evidence.plan != plan or not worth_dealing(method, evidence.law):
        yield "the evidence was looked at by another plan than the run's"
    elif (evidence.counted == "votes") != (method.ensemble == "vote"):
        yield f"the evidence is of {evidence.counted}, which the method does not count"
    elif len(evidence.earlier) * plan.per_deal != drawn or (
        evidence.counted == "votes" and tuple(evidence.earlier.sum(0)) != (selection or (0,) * evidence.classes)
    ):
        yield "the stakes rest on other copies than those that chose the class"
    elif not ended_as_planned(evidence, method):
        yield "the deals do not end where the plan ends them"
    if evidence.coin != toss(certificate.seed, evidence.deals):
        yield f"the coin {evidence.coin} is not the one that the seed and the deals give"
