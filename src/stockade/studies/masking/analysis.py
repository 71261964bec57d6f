"""The numbers of the study of RanMASK (Zeng et al. 2021), from its results alone.

    certificates   Tables 2 and 3: accuracy of the vote, what is proved, what the published procedure prints
    check          Figure 2: the Jensen–Shannon check as published, and beside it what one chosen word does to β
    risk           equation 10: how likely a copy shows a whole attack
    attacks        Figure 3: accuracy under attack, for each ensemble of the copies

Differences to the paper: the sound certificate, the chosen word and the entropy of votes are not in it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from statistics import fmean, median
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from stockade.certificates.bounds import divergence_check
from stockade.certificates.certificate import Certificate
from stockade.certificates.medians import median_bound, median_rate
from stockade.core.statistics import wilson
from stockade.defenses.ranmask import ENOUGH, lowest_rate, risk
from stockade.report.numbers import Interval
from stockade.studies.masking.beta import SIZES, TextEstimate
from stockade.studies.masking.victims import LEGACY, SOUND, Victim
from stockade.studies.records import AttackNumbers, bootstrap_mean, mean
from stockade.workflows.certify.result import CertifyResult

if TYPE_CHECKING:
    from stockade.studies.masking.runs import ChosenRate, RateRuns

GAMMA = 0.1
"""The share of words that an attack changes, in the risk of a rate."""
FATAL = 0.05
"""Added to every β, this voids most claims; the divergence hardly sees it."""
_RESAMPLES = 1_000
EnsembleNumbers = Mapping[str, Mapping[str, AttackNumbers]]
"""What each attack does to each ensemble."""


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """The share of texts certified at a radius or more, with a band that holds at all radii at once."""

    radius: int
    share: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Medians:
    """MCB and MCR; None if fewer than half of the texts are certified at all."""

    median_radius: int | None
    median_rate: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodNumbers:
    """What one method says, as the summary of its certificates holds it; see docs/certificates.md."""

    n: int
    errors: int
    abstained: int
    accuracy: Interval
    wrong: int
    curve: tuple[CurvePoint, ...]
    median_radius: int | None
    median_rate: float | None
    mean_radius: float | None
    mean_copies: float | None

    @classmethod
    def of(cls, summary: Mapping[str, Any]) -> Self:
        """The numbers in the summary of one method."""
        values = {field.name: summary[field.name] for field in fields(cls)}
        return cls(**{**values, "curve": tuple(CurvePoint(**point) for point in summary["curve"])})


@dataclass(frozen=True, slots=True)
class VoteNumbers:
    """How much votes tell a search: their mean entropy (nats), and the share of texts on which all copies agree."""

    entropy: float | None
    unanimous: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateNumbers:
    """Tables 2 and 3 at one rate: of all texts, those that ended in an error among the not certified."""

    texts: int
    errors: int
    accuracy: Interval
    """Of the class that most copies vote for."""
    sound: MethodNumbers
    """What is proved."""
    claimed: MethodNumbers
    """What the published procedure prints."""
    corrected: Medians
    """The same, one less: what its test says."""
    claimed_more: int
    """The texts for which the corrected claim is more than is proved."""
    votes: VoteNumbers


@dataclass(frozen=True, slots=True)
class LargestExcess:
    """The text and word for which β is farthest above p."""

    id: str
    word: str | None
    excess: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckNumbers:
    """Figure 2 at one rate, and what one chosen word does.

    Parameters
    ----------
    texts, left_out, complete
        Texts with an estimate, without one, and with one from all copies there are.
    divergence, divergence_if_fatal
        Jensen–Shannon between the mean β over random sets and p, by the size of the sets; and if β were p + `FATAL`.
    largest_sets
        The divergence for the largest sets, with a 95 % interval by resampled texts.
    excess, excesses, largest, random_excess, random_excesses
        β above p: the mean, and for each text; for the word that an attacker chooses, and for a random word.
    claims, broken_claims
        Texts of which the published test says that one word may change, and those that fail with the chosen word's β.
    """

    texts: int
    left_out: int
    complete: int
    divergence: Mapping[str, float | None]
    divergence_if_fatal: float | None
    largest_sets: Interval
    random_excess: Interval
    excess: Interval
    excesses: tuple[float, ...]
    random_excesses: tuple[float, ...]
    largest: LargestExcess | None
    claims: int
    broken_claims: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RiskNumbers:
    """Equation 10 over the lengths of the texts."""

    texts: int
    too_short: int
    """So short that no word would be attacked."""
    mean: float | None
    safe: Interval
    """The share of texts with a risk that protects."""
    median_words: int | None
    at_median: float | None
    """The risk of a text of median length."""
    lowest_rate: float | None
    """The lowest rate, in steps of 5 %, that protects such a text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RateNumbers:
    """Every number of the model of one mask rate."""

    rate: float
    model: str
    reference: str
    certificates: CertificateNumbers
    check: CheckNumbers
    risk: RiskNumbers
    attacks: EnsembleNumbers
    run: str = ""
    """Which of several models of this rate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UndefendedNumbers:
    """The model that masks nothing: it is only attacked."""

    model: str
    reference: str
    attacks: Mapping[str, AttackNumbers]


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskingNumbers:
    """Every number of the study.

    Parameters
    ----------
    rates
        Of every model, by rising mask rate.
    undefended
        Of the undefended model if there is one.
    runs
        Mean and spread over the models of each rate; empty where no rate has several.
    chosen
        The rate of the largest MCB; None if there is none.
    """

    rates: tuple[RateNumbers, ...]
    undefended: UndefendedNumbers | None
    runs: tuple[RateRuns, ...] = ()
    chosen: ChosenRate | None = None


def analyse_rate(
    victim: Victim, certificates: CertifyResult, estimates: Sequence[TextEstimate], attacks: EnsembleNumbers
) -> RateNumbers:
    """Every number of the model of one mask rate.

    Parameters
    ----------
    victim
        A model that masks words.
    certificates
        By both methods.
    estimates
        Of β, for each text.
    attacks
        What each attack does to each ensemble.
    """
    masking = victim.masking
    assert masking is not None, "a model without masking has no rate"
    lengths = [certificate.words for certificate in certificates.records(LEGACY)]
    return RateNumbers(
        rate=victim.rate,
        model=victim.name,
        reference=victim.reference,
        certificates=measure_certificates(certificates),
        check=check_betas(estimates),
        risk=measure_risk(lengths, masking.rate, masking.kept, masking.most_kept),
        attacks=attacks,
    )


def measure_certificates(run: CertifyResult) -> CertificateNumbers:
    """Accuracy of the vote, what is proved, and what the published procedure says."""
    summaries = run.summary["methods"]
    claims = list(run.records(LEGACY))
    right = sum(claim.predicted == claim.label for claim in claims if claim.status != "error")
    radii = [claim.radius if claim.correct else None for claim in claims]
    corrected = [None if radius is None else radius - 1 for radius in radii]
    words = [max(1, claim.words) for claim in claims]
    proved = {certificate.id: certificate.radius if certificate.correct else None for certificate in run.records(SOUND)}
    return CertificateNumbers(
        texts=len(claims),
        errors=summaries[LEGACY]["errors"],
        accuracy=wilson(right, len(claims)),
        sound=MethodNumbers.of(summaries[SOUND]),
        claimed=MethodNumbers.of(summaries[LEGACY]),
        corrected=Medians(
            median_bound(corrected) if corrected else None, median_rate(corrected, words) if corrected else None
        ),
        claimed_more=sum(
            radius is not None and radius > _at_least(proved[claim.id])
            for claim, radius in zip(claims, corrected, strict=True)
            if claim.id in proved
        ),
        votes=measure_votes(claims),
    )


def _at_least(radius: int | None) -> int:
    """A radius as a number; what is not certified is below 0."""
    return -1 if radius is None else radius


def measure_votes(certificates: Sequence[Certificate]) -> VoteNumbers:
    """How much the votes of the copies that chose the class tell a search."""
    counts = [certificate.selection for certificate in certificates if certificate.selection is not None]
    return VoteNumbers(
        entropy=mean([entropy(votes) for votes in counts]),
        unanimous=mean([float(max(votes) == sum(votes)) for votes in counts]),
    )


def entropy(votes: Sequence[int]) -> float:
    """The entropy of votes by class, in nats."""
    total = sum(votes)
    return sum(count / total * math.log(total / count) for count in votes if count)


def check_betas(texts: Sequence[TextEstimate]) -> CheckNumbers:
    """The Jensen–Shannon check as published, and beside it what one chosen word does."""
    measured = [(text, text.estimate) for text in texts if text.estimate is not None]
    estimates = [estimate for _, estimate in measured]
    shares = [estimate.share for estimate in estimates]
    excesses = [estimate.excess for estimate in estimates]
    random_excesses = [estimate.random_excess for estimate in estimates if estimate.random_excess is not None]
    passing = [estimate for estimate in estimates if estimate.passes(estimate.share_beside)]
    worst = max(measured, key=lambda pair: pair[1].excess, default=None)
    return CheckNumbers(
        texts=len(estimates),
        left_out=len(texts) - len(estimates),
        complete=sum(text.complete for text, _ in measured),
        divergence={
            str(size): _divergence([estimate.mean_betas[index] for estimate in estimates], shares)
            for index, size in enumerate(SIZES)
        },
        divergence_if_fatal=_divergence([share + FATAL for share in shares], shares),
        largest_sets=_resampled_divergence([estimate.mean_betas[-1] for estimate in estimates], shares),
        random_excess=bootstrap_mean(random_excesses),
        excess=bootstrap_mean(excesses),
        excesses=tuple(round(value, 6) for value in excesses),
        random_excesses=tuple(round(value, 6) for value in random_excesses),
        largest=None if worst is None else LargestExcess(worst[0].id, worst[0].word, worst[1].excess),
        claims=len(passing),
        broken_claims=sum(not estimate.passes(estimate.beta) for estimate in passing),
    )


def _divergence(betas: Sequence[float | None], shares: Sequence[float]) -> float | None:
    """None where there is nothing to compare. A β of 0 is left out: the divergence needs positive numbers."""
    pairs = [(beta, share) for beta, share in zip(betas, shares, strict=True) if beta and share > 0]
    if not pairs:
        return None
    return max(0.0, divergence_check([beta for beta, _ in pairs], [share for _, share in pairs]))


def _resampled_divergence(betas: Sequence[float | None], shares: Sequence[float], seed: int = 0) -> Interval:
    """The divergence with a 95 % interval: what other texts like these would have given."""
    value = _divergence(betas, shares)
    if value is None or len(shares) < 2:
        return {"value": value, "low": None, "high": None}
    rng = np.random.default_rng(seed)
    drawn = []
    for texts in rng.integers(len(shares), size=(_RESAMPLES, len(shares))).tolist():
        divergence = _divergence([betas[text] for text in texts], [shares[text] for text in texts])
        if divergence is not None:
            drawn.append(divergence)
    low, high = np.percentile(drawn, [2.5, 97.5]).tolist()
    return {"value": value, "low": low, "high": high}


def measure_risk(lengths: Sequence[int], rate: float, kept: int, most_kept: int | None = None) -> RiskNumbers:
    """Equation 10 over the lengths of the texts.

    Parameters
    ----------
    lengths
        In words.
    rate, kept, most_kept
        The mask rate, and the fewest and the most words that stay.
    """
    risks = [risk(words, rate, GAMMA, kept, most_kept) for words in lengths if words and round(GAMMA * words)]
    middle = round(median(lengths)) if lengths else None
    at_middle = risk(middle, rate, GAMMA, kept, most_kept) if middle else None
    attacked = at_middle if at_middle is not None and at_middle.attacked else None
    return RiskNumbers(
        texts=len(risks),
        too_short=len(lengths) - len(risks),
        mean=round(fmean(entry.probability for entry in risks), 6) if risks else None,
        safe=wilson(sum(entry.probability < ENOUGH for entry in risks), len(risks)),
        median_words=middle,
        at_median=None if attacked is None else attacked.probability,
        lowest_rate=None if attacked is None else lowest_rate(attacked.words, GAMMA, kept=kept),
    )
