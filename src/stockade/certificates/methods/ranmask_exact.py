"""The exact certificate for random masking: ask about every masked copy there is, where they are few."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from stockade.certificates.certificate import Certificate
from stockade.certificates.evidence import EVIDENCE, Evidence, exact_refutation, packed, unpacked, votes_by_class
from stockade.certificates.exact import VoteTable, exact_radius
from stockade.certificates.method import NO_WORDS, WRONG_KIND, CertificationInput, MethodResult
from stockade.certificates.methods.ranmask import PAPER, THREAT, Masking, MaskingDistribution
from stockade.certificates.sampling import votes_of
from stockade.certificates.sequential import choose_class
from stockade.core.errors import ModelError, OptionError
from stockade.core.protocols import Classifier
from stockade.core.registry import published
from stockade.defenses.ranmask import RanMask

_MASKING = Masking()
_MOST_CLASSES = 255


@EVIDENCE.register("enumerated")
@dataclass(frozen=True, slots=True)
class EnumeratedEvidence:
    """The vote of every masked copy there is."""

    table: VoteTable
    chosen: int

    @property
    def classes(self) -> int:
        return self.table.classes

    @property
    def copies(self) -> int:
        return len(self.table.votes)

    @property
    def alpha(self) -> None:
        return None

    def radius(self) -> int | None:
        return exact_radius(self.table, self.chosen)

    def insertions(self) -> None:
        return None

    def explain(self, labels: Sequence[str]) -> list[str]:
        return [votes_by_class(labels, self.table.counts, self.copies, f"all {self.copies:,} copies there are")]

    def refutation(self, *, chosen: int, radius: int, insertions: int | None) -> str | None:
        return exact_refutation(self, chosen, radius)

    def described(self) -> dict[str, Any]:
        votes = packed(bytes(self.table.votes))
        table = {"words": self.table.words, "kept": self.table.kept, "classes": self.table.classes, "votes": votes}
        return {"kind": "enumerated", "chosen": self.chosen, "table": table}

    @classmethod
    def from_description(cls, description: Mapping[str, Any]) -> Self:
        table = description["table"]
        votes = tuple(unpacked(table["votes"]))
        return cls(VoteTable(table["words"], table["kept"], votes, table["classes"]), description["chosen"])


@published("ranmask-exact", paper=PAPER, presets={"default": {}})
@dataclass(frozen=True, slots=True)
class RanMaskExact:
    """Ask about every masked copy there is: the largest radius that can be proved, for texts with few copies.

    Nothing is left to chance, so there is no alpha.

    Parameters
    ----------
    most : int
        A text with more copies has no certificate.
    """

    sound: ClassVar[bool] = True
    default: ClassVar[bool] = False
    certifies: ClassVar[type] = RanMask
    threat: ClassVar[str] = THREAT
    most: int = 20_000

    def __post_init__(self) -> None:
        if self.most < 1:
            raise OptionError(f"most is {self.most}, expected at least 1 copy.")

    def check(self, classifier: Classifier) -> None:
        _MASKING.defense_of(classifier)
        if len(classifier.labels) > _MOST_CLASSES:
            raise ModelError(
                f"ranmask-exact takes up to {_MOST_CLASSES} classes, and this model has {len(classifier.labels)}."
            )

    async def certify(self, inputs: CertificationInput, classifier: Classifier) -> MethodResult:
        copies = _MASKING.copies(_MASKING.defense_of(classifier), inputs, len(classifier.labels))
        if copies is None:
            return NO_WORDS
        number = copies.distribution.distinct_copies
        if number > self.most:
            return MethodResult(None, reason=f"the text has {number:,} masked copies, more than most={self.most}")
        votes = tuple(votes_of(await copies.score_all()).tolist())
        table = VoteTable(len(copies.words), copies.kept, votes, len(classifier.labels))
        return MethodResult(EnumeratedEvidence(table, choose_class(table.counts)))

    def deviations(self, certificate: Certificate, evidence: Evidence, defense: RanMask) -> Iterator[str]:
        if not isinstance(evidence, EnumeratedEvidence):
            yield WRONG_KIND
            return
        expected = _MASKING.distribution(defense, len(certificate.text.split()))
        recorded = MaskingDistribution(evidence.table.words, evidence.table.kept)
        if recorded != expected:
            yield expected.difference(recorded)
