"""The ground of a certificate in short sentences: votes, what they prove at least, and what more would need."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from stockade.certificates.betting_evidence import BettingEvidence
from stockade.certificates.bounds import threshold
from stockade.certificates.certificate import Certificate
from stockade.certificates.evidence import (
    EnumeratedEvidence,
    Evidence,
    LegacyEvidence,
    PartitionEvidence,
    SampledEvidence,
    read_evidence,
)
from stockade.certificates.sequential import Means

_DIGITS, _SCALE = 4, 10_000


def ground(certificate: Certificate, labels: Sequence[str]) -> list[str]:
    """What was counted for a text and what follows from it; nothing where there is no evidence."""
    if certificate.evidence is None:
        return []
    evidence = read_evidence(certificate.evidence)
    return [_counted(evidence, labels), *_selected(certificate), *_reached(evidence, certificate.radius)]


def _counted(evidence: Evidence, labels: Sequence[str]) -> str:
    if isinstance(evidence, SampledEvidence) and isinstance(evidence.tally, Means):
        means = [f"{total / evidence.copies:.3f}" for total in evidence.tally.totals]
        return f"mean probabilities of {evidence.copies:,} copies: {_by_class(labels, means)}"
    if isinstance(evidence, BettingEvidence) and evidence.counted == "probabilities":
        means = [f"{total / evidence.copies:.3f}" for total in evidence.totals]
        return f"mean probabilities of {_dealt_copies(evidence)}: {_by_class(labels, means)}"
    counts = _counts(evidence, len(labels))
    voted = _by_class(labels, [f"{count:,}" for count in counts])
    silent = evidence.copies - sum(counts)
    of = {EnumeratedEvidence: "all {:,} copies there are", PartitionEvidence: "{:,} groups"}.get(
        type(evidence), "{:,} copies"
    )
    if isinstance(evidence, SampledEvidence) and evidence.plan.population == evidence.copies:
        of = "all {:,} copies there are"
    if isinstance(evidence, BettingEvidence):
        of = _dealt_copies(evidence)
    return f"votes of {of.format(evidence.copies)}: {voted}" + (f", none {silent:,}" if silent else "")


def _dealt_copies(evidence: BettingEvidence) -> str:
    """How many there were, and in how many deals if several make one."""
    deals = f" in {len(evidence.rounds):,} deals" if evidence.plan.copies_per_round > 1 else ""
    return f"{evidence.copies:,} copies{deals}"


def _counts(evidence: Evidence, classes: int) -> Sequence[int]:
    if isinstance(evidence, EnumeratedEvidence):
        return [evidence.table.votes.count(label) for label in range(classes)]
    if isinstance(evidence, SampledEvidence) and not isinstance(evidence.tally, Means):
        return evidence.tally.counts
    if isinstance(evidence, BettingEvidence):
        return [round(total) for total in evidence.totals]
    assert isinstance(evidence, PartitionEvidence | LegacyEvidence)
    return evidence.counts


def _selected(certificate: Certificate) -> Iterator[str]:
    if certificate.selection:
        yield f"{sum(certificate.selection):,} votes of other copies chose the class"


def _reached(evidence: Evidence, radius: int | None) -> Iterator[str]:
    """Limits are rounded so that they never say more than is proved."""
    if isinstance(evidence, BettingEvidence):
        yield from _won(evidence, radius)
    if not isinstance(evidence, SampledEvidence):
        return
    limits, losses = evidence.limits, evidence.distribution.losses()
    what = "lead" if evidence.rule == "gap" else "share"
    low, high = _down(float(limits.low)), _up(float(limits.high))
    yield (
        f"{what} exactly {float(limits.low):.{_DIGITS}f}"
        if limits.low == limits.high
        else (f"{what} at least {low:.{_DIGITS}f}, at most {high:.{_DIGITS}f}")
    )
    following = 0 if radius is None else radius + 1
    needed = threshold(losses[following], evidence.rule) if following < len(losses) else None
    if needed is None or needed >= 1:
        yield f"radius {following} is out of reach, whatever the votes"
    else:
        yield f"radius {following} needs more than " + (f"{_up(float(needed)):.{_DIGITS}f}" if needed else "0")


def _won(evidence: BettingEvidence, radius: int | None) -> Iterator[str]:
    """How far bets against a radius have come: told rounded down, and what they need rounded up."""
    reached = None if radius is None else evidence.wealth(radius)
    if reached is not None:
        needed, randomizer = _up(1 / evidence.plan.alpha), _up(evidence.randomizer / evidence.plan.alpha)
        proof = f"{needed:,.2f} is proof, or {randomizer:,.2f} in the end (the randomizer of this text)"
        yield f"a bet against radius {radius} holds {_held(reached)}; {proof}"
    following = 0 if radius is None else radius + 1
    beyond = evidence.wealth(following)
    if beyond is None:
        yield f"radius {following} is out of reach, whatever the votes"
    else:
        yield f"a bet against radius {following} holds {_held(beyond)}"


def _held(grown: tuple[float, float]) -> str:
    best, last = (f"{_down(value):,.2f}" for value in grown)
    return f"{last} times what it began with, {best} at best"


def _by_class(labels: Sequence[str], values: Sequence[str]) -> str:
    return ", ".join(f"{label} {value}" for label, value in zip(labels, values, strict=True))


def _down(value: float) -> float:
    return math.floor(value * _SCALE) / _SCALE


def _up(value: float) -> float:
    return math.ceil(value * _SCALE) / _SCALE
