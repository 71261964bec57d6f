"""Certificates for random masking (RanMASK): no change of up to d words changes the class that most masked copies of a
text vote for.

The published procedure is off by one and rests on an estimate that is no bound; `ranmask-legacy` computes it for
comparison. The others hold (see docs/certificates.md).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from stockade.certificates.betting_sampler import sample_by_betting, worth_betting
from stockade.certificates.bounds import Rule
from stockade.certificates.evidence import EnumeratedEvidence, LegacyEvidence
from stockade.certificates.exact import VoteTable
from stockade.certificates.masked_copies import MaskedCopies
from stockade.certificates.registry import NO_WORDS, CertificationInput, MethodResult
from stockade.certificates.sampling import SampledMethod, votes_of
from stockade.certificates.sequential import Scheme, choose_class
from stockade.certificates.smoothed import smoothing
from stockade.core.errors import ModelError, OptionError
from stockade.core.masks import kept_words
from stockade.core.protocols import Classifier
from stockade.core.registry import published
from stockade.defenses.ranmask import RanMask

_THREAT = "any change of up to d words, the number of words unchanged (words are what blanks separate)"
_FIXED = {"scheme": "fixed", "selection": 1000}
_PAPER = "Zeng et al. 2021, RanMASK; Levine and Feizi 2020, (De)Randomized Smoothing"


@published("ranmask-gap", paper=_PAPER, presets={"default": {}, "fixed": _FIXED})
@dataclass(frozen=True, slots=True)
class RanMaskGap(SampledMethod):
    """The lead over the strongest other class must be more than twice the share of copies that d words can touch."""

    antithetic: ClassVar[bool] = True
    threat: ClassVar[str] = _THREAT
    scheme: Scheme = "betting"

    def check(self, classifier: Classifier) -> None:
        _smoothing(classifier)

    async def certify(self, inputs: CertificationInput, classifier: Classifier) -> MethodResult:
        return await _sampled(self, inputs, classifier)


@published("ranmask-lf", paper=_PAPER, presets={"default": {}, "fixed": _FIXED})
@dataclass(frozen=True, slots=True)
class RanMaskMajority(SampledMethod):
    """The share of copies for the class must be more than a half and the share of copies that d words can touch."""

    rule: ClassVar[Rule] = "majority"
    antithetic: ClassVar[bool] = True
    threat: ClassVar[str] = _THREAT
    scheme: Scheme = "betting"

    def check(self, classifier: Classifier) -> None:
        _smoothing(classifier)

    async def certify(self, inputs: CertificationInput, classifier: Classifier) -> MethodResult:
        return await _sampled(self, inputs, classifier)


@published("ranmask-exact", paper=_PAPER, presets={"default": {}})
@dataclass(frozen=True, slots=True)
class RanMaskExact:
    """Ask about every masked copy there is: the largest radius that can be proved, for texts with few copies.

    A text with more than `most` copies has no certificate. Nothing is left to chance, so there is no alpha.
    """

    sound: ClassVar[bool] = True
    threat: ClassVar[str] = _THREAT
    most: int = 20_000

    def __post_init__(self) -> None:
        if self.most < 1:
            raise OptionError(f"most is {self.most}, expected at least 1 copy.")

    def check(self, classifier: Classifier) -> None:
        _smoothing(classifier)
        if len(classifier.labels) > 255:
            raise ModelError(f"ranmask-exact knows up to 255 classes, and this model has {len(classifier.labels)}.")

    async def certify(self, inputs: CertificationInput, classifier: Classifier) -> MethodResult:
        copies = _copies(inputs, _smoothing(classifier))
        if copies is None:
            return NO_WORDS
        if copies.number > self.most:
            return MethodResult(
                None, reason=f"the text has {copies.number:,} masked copies, more than most={self.most}"
            )
        votes = tuple(votes_of(await copies.score_all()).tolist())
        table = VoteTable(len(copies.words), copies.kept, votes, len(classifier.labels))
        counts = [votes.count(label) for label in range(len(classifier.labels))]
        return MethodResult(EnumeratedEvidence(table, choose_class(counts)))


@published("ranmask-legacy", paper="Zeng et al. 2021, RanMASK, algorithm 2", presets={"default": {}})
@dataclass(frozen=True, slots=True)
class RanMaskLegacy:
    """The published procedure, for comparison with published numbers: NOT a certificate.

    It returns the first radius that fails, and takes the share of votes for a bound on what d words can change.
    """

    sound: ClassVar[bool] = False
    threat: ClassVar[str] = f"not a certificate; what is claimed: {_THREAT}"
    alpha: float = 0.05
    selection: int = 1000
    most: int = 5000

    def __post_init__(self) -> None:
        SampledMethod(alpha=self.alpha, selection=self.selection, most=self.most)

    def check(self, classifier: Classifier) -> None:
        _smoothing(classifier)

    async def certify(self, inputs: CertificationInput, classifier: Classifier) -> MethodResult:
        copies = _copies(inputs, _smoothing(classifier))
        if copies is None:
            return NO_WORDS
        fixed = SampledMethod(alpha=self.alpha, selection=self.selection, most=self.most, scheme="fixed")
        found = await fixed.sampled(replace(copies, finite=False), inputs, len(classifier.labels))
        counts, chosen = found.evidence.tally.counts, found.evidence.chosen  # type: ignore[union-attr]
        return MethodResult(
            LegacyEvidence(copies.distribution, self.alpha, chosen, counts), found.selection, found.drawn
        )


async def _sampled(method: SampledMethod, inputs: CertificationInput, classifier: Classifier) -> MethodResult:
    copies = _copies(inputs, _smoothing(classifier))
    if copies is None:
        return NO_WORDS
    independent, classes = replace(copies, finite=False), len(classifier.labels)
    if worth_betting(method, copies.distribution):  # bets hold for independent copies only
        return await sample_by_betting(method, independent, inputs, classes)
    if method.ensemble == "probability" and method.scheme == "anytime":  # and so do these limits
        return await method.sampled(independent, inputs, classes)
    return await method.sampled(copies, inputs, classes)


def _smoothing(classifier: Classifier) -> RanMask:
    defense = smoothing(classifier, RanMask, "ranmask", "ranmask:rate=0.7")
    if defense.sampling != "uniform":
        raise ModelError(
            "ranmask hides words by what a language model expects (sampling=lm): which words are hidden then depends "
            "on the words, and no certificate holds. Use sampling=uniform."
        )
    return defense


def _copies(inputs: CertificationInput, defense: RanMask) -> MaskedCopies | None:
    words = tuple(str(inputs.text).split())
    if not words:
        return None
    kept = kept_words(len(words), defense.rate, defense.kept)
    return MaskedCopies(words, inputs.text.premise, kept, defense.mask, inputs.seed)
