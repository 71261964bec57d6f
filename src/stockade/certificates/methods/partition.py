"""Certificates for texts split into groups that vote: a handful of forward passes, and nothing left to chance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from stockade.certificates.evidence import PartitionEvidence
from stockade.certificates.registry import NO_WORDS, AnotherDefense, CertificationInput, MethodResult
from stockade.certificates.smoothed import smoothing
from stockade.core.protocols import Classifier
from stockade.core.registry import published
from stockade.defenses.partition import Partition


@published(
    "position-partition",
    paper="Levine and Feizi 2020, (De)Randomized Smoothing for Certifiable Defense against Patch Attacks",
    presets={"default": {}},
)
@dataclass(frozen=True, slots=True)
class PositionPartition:
    """A changed word is in one group: the lead in votes must be more than twice the number of changed words."""

    sound: ClassVar[bool] = True
    threat: ClassVar[str] = (
        "any change of up to d words, the number of words unchanged (words are what blanks separate)"
    )

    def check(self, classifier: Classifier) -> None:
        _partition(classifier, "position")

    async def certify(self, inputs: CertificationInput, classifier: Classifier) -> MethodResult:
        return await _voted(inputs, _partition(classifier, "position"))


@published("hash-partition", paper="Pei et al. 2024, TextGuard", presets={"default": {}})
@dataclass(frozen=True, slots=True)
class HashPartition:
    """An inserted or deleted word alters one group, a replaced one two: the lead in votes must be more than twice that.

    A radius of d allows edits that cost d together: 1 for each inserted or deleted word, 2 for each replaced one.
    """

    sound: ClassVar[bool] = True
    threat: ClassVar[str] = (
        "any edits that cost up to d together: an inserted or deleted word costs 1, a replaced one 2 (words are what "
        "blanks separate)"
    )

    def check(self, classifier: Classifier) -> None:
        _partition(classifier, "hash")

    async def certify(self, inputs: CertificationInput, classifier: Classifier) -> MethodResult:
        return await _voted(inputs, _partition(classifier, "hash"))


async def _voted(inputs: CertificationInput, partition: Partition) -> MethodResult:
    if not str(inputs.text).split():
        return NO_WORDS
    votes = await partition.votes(inputs.text)
    return MethodResult(PartitionEvidence(votes.counts, votes.label))


def _partition(classifier: Classifier, by: Literal["position", "hash"]) -> Partition:
    defense = smoothing(classifier, Partition, "partition", f"partition:by={by}")
    if defense.by != by:
        raise AnotherDefense(
            f"{by}-partition is about groups by {by}, and this model has groups by {defense.by}: use the method "
            f"{defense.by}-partition, or --defense partition:by={by}."
        )
    return defense
