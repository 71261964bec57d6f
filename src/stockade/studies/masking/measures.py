"""The numbers of one model: what its certificates say, what its copies say of β, and how risky its rate is."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean, median
from typing import Any

from stockade.certificates.bounds import divergence_check
from stockade.certificates.certificate import Certificate
from stockade.certificates.medians import median_bound, median_rate
from stockade.certificates.run import CertificateRun
from stockade.core.statistics import wilson
from stockade.defenses.ranmask import ENOUGH, lowest_rate, risk
from stockade.studies.masking.changed_sets import SIZES, Look
from stockade.studies.masking.looking import Seen
from stockade.studies.results import bootstrap_mean, mean

SOUND, LEGACY = "ranmask-gap", "ranmask-legacy"
GAMMA = 0.1
"""The share of words that an attack changes, in the risk of a rate."""
FATAL = 0.05
"""Added to every β, this voids most claims; the divergence hardly sees it."""
_KEPT = (
    "n",
    "errors",
    "abstained",
    "accuracy",
    "wrong",
    "curve",
    "median_radius",
    "median_rate",
    "mean_radius",
    "mean_copies",
)


def certificate_numbers(run: CertificateRun) -> dict[str, Any]:
    """Accuracy of the vote, what is proved, and what the published procedure says."""
    sound, claims = list(run.iterate(SOUND)), list(run.iterate(LEGACY))
    known = [one for one in claims if one.status != "error"]
    right = sum(one.predicted == one.label for one in known)
    radii = [one.radius if one.correct else None for one in known]
    lasts = [None if radius is None else radius - 1 for radius in radii]
    words = [max(1, one.words) for one in known]
    proved = {one.id: one.radius if one.correct else None for one in sound if one.status != "error"}
    told = run.summary["methods"]
    return {
        "texts": len(known),
        "errors": told[LEGACY]["errors"],
        "accuracy": wilson(right, len(known)),
        "sound": {name: told[SOUND][name] for name in _KEPT},
        "claimed": {name: told[LEGACY][name] for name in _KEPT},
        "corrected": {
            "median_radius": median_bound(lasts) if lasts else None,
            "median_rate": median_rate(lasts, words) if lasts else None,
        },
        "claimed_more": sum(
            last is not None and last > _or_none_less(proved[one.id])
            for one, last in zip(known, lasts, strict=True)
            if one.id in proved
        ),
        "votes": vote_numbers(known),
    }


def _or_none_less(radius: int | None) -> int:
    return -1 if radius is None else radius


def vote_numbers(certificates: Sequence[Certificate]) -> dict[str, float | None]:
    """How much votes tell a search: their mean entropy (natural logarithm), and on how many texts all copies agree."""
    counts: list[Sequence[int]] = [one.selection for one in certificates if one.selection is not None]
    return {
        "entropy": mean([entropy(votes) for votes in counts]),
        "unanimous": mean([float(max(votes) == sum(votes)) for votes in counts]),
    }


def entropy(votes: Sequence[int]) -> float:
    total = sum(votes)
    return sum(count / total * math.log(total / count) for count in votes if count)


def check_numbers(seen: Sequence[Seen]) -> dict[str, Any]:
    """The Jensen–Shannon check as published, and beside it what one chosen word does."""
    known = [one for one in seen if "reason" not in one]
    looks = [_look(one) for one in known]
    shares = [one.share for one in looks]
    above = [one.beta - one.beside for one in looks]
    by_chance = [one.betas[0] - one.share for one in looks if one.betas[0] is not None]
    passing = [one for one in looks if one.passes(one.beside)]
    worst = max(range(len(looks)), key=lambda at: above[at]) if looks else None
    return {
        "texts": len(looks),
        "left_out": len(seen) - len(looks),
        "complete": sum(one["complete"] for one in known),
        "divergence": {
            str(size): _divergence([one.betas[at] for one in looks], shares) for at, size in enumerate(SIZES)
        },
        "divergence_if_fatal": _divergence([share + FATAL for share in shares], shares),
        "random_excess": bootstrap_mean(by_chance),
        "excess": bootstrap_mean(above),
        "excesses": [round(value, 6) for value in above],
        "random_excesses": [round(value, 6) for value in by_chance],
        "largest": None
        if worst is None
        else {"id": known[worst]["id"], "word": known[worst]["written"], "excess": above[worst]},
        "claims": len(passing),
        "broken_claims": sum(not one.passes(one.beta) for one in passing),
    }


def _look(seen: Mapping[str, Any]) -> Look:
    return Look(seen["share"], tuple(seen["betas"]), seen["word"], seen["beta"], seen["beside"], seen["touched"])


def _divergence(betas: Sequence[float | None], shares: Sequence[float]) -> float | None:
    """None where there is nothing to compare. A β of 0 is left out: the divergence needs positive numbers."""
    pairs = [(beta, share) for beta, share in zip(betas, shares, strict=True) if beta and share > 0]
    if not pairs:
        return None
    return max(0.0, divergence_check([beta for beta, _ in pairs], [share for _, share in pairs]))


def risk_numbers(lengths: Sequence[int], rate: float, kept: int) -> dict[str, Any]:
    """Equation 10 over the lengths of the texts. One so short that no word of it is attacked has no risk."""
    found = [risk(words, rate, GAMMA, kept) for words in lengths if words and round(GAMMA * words)]
    middle = round(median(lengths)) if lengths else None
    at_middle = None if not middle else risk(middle, rate, GAMMA, kept)
    return {
        "texts": len(found),
        "too_short": len(lengths) - len(found),
        "mean": round(fmean(one.probability for one in found), 6) if found else None,
        "safe": wilson(sum(one.probability < ENOUGH for one in found), len(found)),
        "median_words": middle,
        "at_median": None if at_middle is None or not at_middle.attacked else at_middle.probability,
        "lowest_rate": None
        if at_middle is None or not at_middle.attacked
        else lowest_rate(at_middle.words, GAMMA, kept=kept),
    }
