"""Certificates for texts split into groups that vote: a handful of forward passes, and nothing left to chance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

from stockade.certificates.bounds import overlapping_radius, partition_radius
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
from stockade.core.errors import OptionError
from stockade.core.protocols import Classifier
from stockade.core.registry import published
from stockade.defenses.partition import Partition

_NO_VOTE = -1
"""The vote of a group without words."""


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


@EVIDENCE.register("overlapping-partition")
@dataclass(frozen=True, slots=True)
class OverlappingEvidence:
    """The vote of each of the groups that a text is split into, where each word is in several of them.

    Parameters
    ----------
    votes : tuple[int, ...]
        The class that each group votes for; -1 for one without words.
    offsets : tuple[int, ...]
        The cells that the first group is made of; those of group i are the same, i further on.
    classes : int
        How many classes there are.
    chosen : int
        The class of most votes.
    """

    votes: tuple[int, ...]
    offsets: tuple[int, ...]
    classes: int
    chosen: int

    def __post_init__(self) -> None:
        if not all(_NO_VOTE <= vote < self.classes for vote in self.votes) or not self.offsets:
            raise OptionError(f"One of the votes is for none of {self.classes} classes, or groups have no cells.")

    @property
    def copies(self) -> int:
        return sum(vote != _NO_VOTE for vote in self.votes)

    @property
    def alpha(self) -> None:
        return None

    def radius(self) -> int | None:
        return overlapping_radius(self.votes, self.offsets, self.chosen, self.classes)

    def insertions(self) -> None:
        return None

    def explain(self, labels: Sequence[str]) -> list[str]:
        counts = [self.votes.count(label) for label in range(self.classes)]
        what = f"{self.copies:,} groups, {len(self.offsets)} for each word"
        return [votes_by_class(labels, counts, self.copies, what)]

    def refutation(self, *, chosen: int, radius: int, insertions: int | None) -> str | None:
        return exact_refutation(self, chosen, radius)

    def described(self) -> dict[str, Any]:
        values = {"votes": list(self.votes), "offsets": list(self.offsets)}
        return {"kind": "overlapping-partition", **values, "classes": self.classes, "chosen": self.chosen}

    @classmethod
    def from_description(cls, description: Mapping[str, Any]) -> Self:
        votes, offsets = (tuple(description[name]) for name in ("votes", "offsets"))
        return cls(votes, offsets, description["classes"], description["chosen"])


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
        defense, words = _defense(classifier, "position"), len(str(inputs.text).split())
        return await _voted(inputs, defense, [True] * len(defense.positions(words)), defense.position_offsets(words))

    def deviations(self, certificate: Certificate, evidence: Evidence, defense: Partition) -> Iterator[str]:
        words = len(certificate.text.split())
        return _deviations(evidence, [True] * len(defense.positions(words)), defense.position_offsets(words))


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
        defense = _defense(classifier, "hash")
        filled = [*map(bool, defense.hashed(str(inputs.text).split()))]
        return await _voted(inputs, defense, filled, defense.hash_offsets)

    def deviations(self, certificate: Certificate, evidence: Evidence, defense: Partition) -> Iterator[str]:
        return _deviations(evidence, [*map(bool, defense.hashed(certificate.text.split()))], defense.hash_offsets)

    def allowed_changes(self, certificate: Certificate) -> str:
        """What the radius of a certificate allows, in short."""
        return f"edits that cost {certificate.radius} together, in {certificate.words} words"


async def _voted(
    inputs: CertificationInput, defense: Partition, filled: Sequence[bool], offsets: tuple[int, ...]
) -> MethodResult:
    """The votes of all groups; `filled` says which of them have words, `offsets` which cells the first has."""
    if not str(inputs.text).split():
        return NO_WORDS
    if len(offsets) == 1:
        votes = await defense.votes(inputs.text)
        return MethodResult(PartitionEvidence(votes.counts, votes.label))
    rows = await defense.group_rows(inputs.text)
    cast = iter(rows.argmax(1).tolist())
    by_group = tuple(next(cast) if has_words else _NO_VOTE for has_words in filled)
    counts = [by_group.count(label) for label in range(rows.shape[1])]
    return MethodResult(OverlappingEvidence(by_group, offsets, rows.shape[1], counts.index(max(counts))))


def _deviations(evidence: Evidence, filled: Sequence[bool], offsets: tuple[int, ...]) -> Iterator[str]:
    kind = PartitionEvidence if len(offsets) == 1 else OverlappingEvidence
    if not isinstance(evidence, kind):
        yield WRONG_KIND
    elif evidence.copies != sum(filled):
        yield f"the evidence is of {evidence.copies} groups, the text has {sum(filled)}"
    elif isinstance(evidence, OverlappingEvidence) and (
        evidence.offsets != offsets or [vote != _NO_VOTE for vote in evidence.votes] != [*filled]
    ):
        yield "the evidence is of other groups than the defense makes of this text"


def _defense(classifier: Classifier, by: Literal["position", "hash"]) -> Partition:
    defense = certified_defense(classifier, Partition, "partition", f"partition:by={by},groups=8")
    if defense.by != by:
        raise AnotherDefense(
            f"{by}-partition certifies groups by {by}, and this model has groups by {defense.by}: use the method "
            f"{defense.by}-partition, or --defense partition:by={by},groups=8."
        )
    return defense
