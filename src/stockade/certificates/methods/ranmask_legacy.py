"""What RanMASK publishes as its certificate, for comparison with published numbers. It is none.

The published procedure is off by one and rests on an estimate that is no bound (`bounds.legacy_claim`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Self

from stockade.certificates.bounds import legacy_claim
from stockade.certificates.certificate import Certificate
from stockade.certificates.evidence import EVIDENCE, Evidence, SampledEvidence, exact_refutation, votes_by_class
from stockade.certificates.method import NO_WORDS, WRONG_KIND, CertificationInput, MethodResult
from stockade.certificates.methods.ranmask import THREAT, Masking, MaskingDistribution
from stockade.certificates.sampled_method import SampledMethod
from stockade.certificates.sampling import sample
from stockade.certificates.sequential import Tally
from stockade.core.protocols import Classifier
from stockade.core.registry import published
from stockade.defenses.ranmask import RanMask

_MASKING = Masking()


@EVIDENCE.register("legacy")
@dataclass(frozen=True, slots=True)
class LegacyEvidence:
    """Votes as the published procedure of RanMASK reads them. Its radius proves nothing."""

    distribution: MaskingDistribution
    alpha: float
    chosen: int
    counts: tuple[int, ...]

    @property
    def classes(self) -> int:
        return len(self.counts)

    @property
    def copies(self) -> int:
        return sum(self.counts)

    def radius(self) -> int | None:
        votes, drawn = self.counts[self.chosen], self.distribution
        return legacy_claim(votes, self.copies, drawn.words, drawn.kept, self.alpha).radius

    def insertions(self) -> None:
        return None

    def explain(self, labels: Sequence[str]) -> list[str]:
        return [votes_by_class(labels, self.counts, self.copies)]

    def refutation(self, *, chosen: int, radius: int, insertions: int | None) -> str | None:
        return exact_refutation(self, chosen, radius)

    def described(self) -> dict[str, Any]:
        return {"kind": "legacy", **asdict(self), "counts": list(self.counts)}

    @classmethod
    def from_description(cls, description: Mapping[str, Any]) -> Self:
        distribution, counts = MaskingDistribution(**description["distribution"]), tuple(description["counts"])
        return cls(distribution, description["alpha"], description["chosen"], counts)


@published("ranmask-legacy", paper="Zeng et al. 2021, RanMASK, algorithm 2", presets={"default": {}})
@dataclass(frozen=True, slots=True)
class RanMaskLegacy:
    """The published procedure, for comparison with published numbers: NOT a certificate.

    It returns the first radius that fails, and takes the share of votes for a bound on what d words can change.

    Parameters
    ----------
    alpha : float
        The confidence level of the published interval is 1 - alpha.
    selection : int
        How many copies choose the class.
    most : int
        How many copies are counted.
    """

    sound: ClassVar[bool] = False
    default: ClassVar[bool] = False
    certifies: ClassVar[type] = RanMask
    threat: ClassVar[str] = f"not a certificate; what is claimed: {THREAT}"
    alpha: float = 0.05
    selection: int = 1000
    most: int = 5000

    def __post_init__(self) -> None:
        self._sampling()

    def check(self, classifier: Classifier) -> None:
        _MASKING.defense_of(classifier)

    async def certify(self, inputs: CertificationInput, classifier: Classifier) -> MethodResult:
        copies = _MASKING.copies(_MASKING.defense_of(classifier), inputs, len(classifier.labels))
        if copies is None:
            return NO_WORDS
        sampled = await sample(self._sampling(), copies.independent(), inputs, len(classifier.labels))
        assert isinstance(sampled.evidence, SampledEvidence)
        assert isinstance(sampled.evidence.tally, Tally)
        counts, chosen = sampled.evidence.tally.counts, sampled.evidence.chosen
        evidence = LegacyEvidence(copies.distribution, self.alpha, chosen, counts)
        return MethodResult(evidence, sampled.selection, sampled.drawn)

    def deviations(self, certificate: Certificate, evidence: Evidence, defense: RanMask) -> Iterator[str]:
        if not isinstance(evidence, LegacyEvidence):
            yield WRONG_KIND
            return
        expected = _MASKING.distribution(defense, len(certificate.text.split()))
        if evidence.distribution != expected:
            yield expected.difference(evidence.distribution)
        elif (evidence.alpha, evidence.copies) != (self.alpha, self.most):
            yield f"the evidence is of {evidence.copies} copies read with alpha {evidence.alpha}, not the run's"

    def _sampling(self) -> SampledMethod:
        return SampledMethod(alpha=self.alpha, selection=self.selection, most=self.most, scheme="fixed")
