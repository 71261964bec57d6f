"""Certificates for texts split into groups that vote: a handful of forward passes, and nothing left to chance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

from stockade.certificates.bounds import partition_radius
from stockade.certificates.certificate import Certificate
from stockade.certificates.evidence import EVIDENCE, Evidence, exact_refutation, votes_by_class
from stockade.certificates.method import (
    NO_WORDS,
    WRONG_KIND,
    AnotherDefense,
    CertificationInput,
    MethodResult,
    certified_defense,
)
from stockade.core.protocols import Classifier
from stockade.core.registry import published
from stockade.defenses.partition import Partition


@EVIDENCE.register("partition")
@dataclass(frozen=True, slots=True)
class PartitionEvidence:
    """The votes of the groups that a text is split into."""

    counts: tuple[int, ...]
    chosen: int

    @property
    def classes(self) -> int:
        return len(self.counts)

    @property
    def copies(self) -> int:
        return sum(self.counts)

    @property
    def alpha(self) -> None:
        return None

    def radius(self) -> int | None:
        return partition_radius(self.counts, self.chosen)

    def insertions(self) -> None:
        return None

    def explain(self, labels: Sequence[str]) -> list[str]:
        return [votes_by_class(labels, self.counts, self.copies, f"{self.copies:,} groups")]

    def refutation(self, *, chosen: int, radius: int, insertions: int | None) -> str | None:
        return exact_refutation(self, chosen, radius)

    def described(self) -> dict[str, Any]:
        return {"kind": "partition", "counts": list(self.counts), "chosen": self.chosen}

    @classmethod
    def from_description(cls, description: Mapping[str, Any]) -> Self:
        return cls(tuple(description["counts"]), description["chosen"])


@published(
    "position-partition",
    paper="Levine and Feizi 2020, (De)Randomized Smoothing for Certifiable Defense against Patch Attacks",
    presets={"default": {}},
)
@dataclass(frozen=True, slots=True)
class PositionPartition:
    """A changed word is in one group: the lead in votes must be more than twice the number of changed words."""

    sound: ClassVar[bool] = True
    default: ClassVar[bool] = True
    certifies: ClassVar[type] = Partition
    threat: ClassVar[str] = (
        "any change of up to d words, the number of words unchanged (words are what blanks separate)"
    )

    def check(self, classifier: Classifier) -> None:
        _defense(classifier, "position")

    async def certify(self, inputs: CertificationInput, classifier: Classifier) -> MethodResult:
        return await _voted(inputs, _defense(classifier, "position"))

    def deviations(self, certificate: Certificate, evidence: Evidence, defense: Partition) -> Iterator[str]:
        return _deviations(evidence, len(defense.positions(len(certificate.text.split()))))


@published("hash-partition", paper="Pei et al. 2024, TextGuard", presets={"default": {}})
@dataclass(frozen=True, slots=True)
class HashPartition:
    """An inserted or deleted word alters one group, a replaced one two: the lead in votes must be more than twice that.

    A radius of d allows edits that cost d together: 1 for each inserted or deleted word, 2 for each replaced one.
    """

    sound: ClassVar[bool] = True
    default: ClassVar[bool] = True
    certifies: ClassVar[type] = Partition
    threat: ClassVar[str] = (
        "any edits that cost up to d together: an inserted or deleted word costs 1, a replaced one 2 (words are what "
        "blanks separate)"
    )

    def check(self, classifier: Classifier) -> None:
        _defense(classifier, "hash")

    async def certify(self, inputs: CertificationInput, classifier: Classifier) -> MethodResult:
        return await _voted(inputs, _defense(classifier, "hash"))

    def deviations(self, certificate: Certificate, evidence: Evidence, defense: Partition) -> Iterator[str]:
        return _deviations(evidence, sum(map(bool, defense.hashed(certificate.text.split()))))

    def allowed_changes(self, certificate: Certificate) -> str:
        """What the radius of a certificate allows, in short."""
        return f"edits that cost {certificate.radius} together, in {certificate.words} words"


async def _voted(inputs: CertificationInput, defense: Partition) -> MethodResult:
    if not str(inputs.text).split():
        return NO_WORDS
    votes = await defense.votes(inputs.text)
    return MethodResult(PartitionEvidence(votes.counts, votes.label))


def _deviations(evidence: Evidence, groups: int) -> Iterator[str]:
    if not isinstance(evidence, PartitionEvidence):
        yield WRONG_KIND
    elif evidence.copies != groups:
        yield f"the evidence is of {evidence.copies} groups, the text has {groups}"


def _defense(classifier: Classifier, by: Literal["position", "hash"]) -> Partition:
    defense = certified_defense(classifier, Partition, "partition", f"partition:by={by}")
    if defense.by != by:
        raise AnotherDefense(
            f"{by}-partition certifies groups by {by}, and this model has groups by {defense.by}: use the method "
            f"{defense.by}-partition, or --defense partition:by={by}."
        )
    return defense
