"""What section 4.1 of the transfer paper claims about ensembles, held against what was measured.

A claim is held if the 95 % interval of a difference, by resampled texts, is above 0, and not held if it is below;
otherwise texts are too few to tell, and it is undecided. Not here: that transfer grows more slowly under the
genetic attack than under PWWS, which takes two studies.
"""

from __future__ import annotations

from collections.abc import Mapping

from stockade.report.numbers import count, p_value, plain_percent
from stockade.studies.claims import Claim, by_interval
from stockade.studies.ensemble.analysis import LARGE, SMALL, EnsembleNumbers
from stockade.studies.ensemble.outside import Difference

NEGLIGIBLE = 0.02
"""A gain of fewer points than these is negligible."""
ENOUGH = 6
"""The size after which, the paper says, more members gain little."""
_NOT_MEASURED = "no ensemble was attacked"


def check_claims(numbers: EnsembleNumbers) -> tuple[Claim, ...]:
    """Every claim about ensembles."""
    return (
        _beats(
            "ensembles of the genetic search transfer better than the human's in most cases",
            numbers.human_all,
            numbers.human,
            "no size has an ensemble of both and a model outside of them",
        ),
        _more_for_small(numbers),
        _beats(
            "ensembles transfer better than a single model",
            numbers.single_all,
            numbers.single,
            "no model is outside of an ensemble and the best single source",
            "the best single source",
        ),
        _beyond_base_rate(numbers),
        _little_gain(numbers),
    )


def _beats(
    claim: str, pooled: Difference | None, by_size: Mapping[int, Difference], otherwise: str, other: str = "the human's"
) -> Claim:
    if pooled is None or pooled.difference["value"] is None:
        return Claim(claim, None, otherwise)
    values = [entry.difference["value"] for entry in by_size.values() if entry.difference["value"] is not None]
    better = sum(value > 0 for value in values)
    numbers = f"difference to {other} {_points(pooled)} on average; better in {better} of {count(len(values), 'size')}"
    holds = by_interval(pooled.difference)
    if holds and 2 * better <= len(values):  # carried by few sizes, which were not tested one by one
        holds = None
    return Claim(claim, holds, numbers)


def _more_for_small(numbers: EnsembleNumbers) -> Claim:
    claim = "that advantage over the human is largest for small ensembles"
    entry = numbers.human_small
    if entry is None or entry.difference["value"] is None:
        return Claim(claim, None, f"needs ensembles of both with up to {SMALL} and with {LARGE} members or more")
    return Claim(
        claim,
        by_interval(entry.difference),
        f"with up to {SMALL} members less that with {LARGE} or more: {_points(entry)}",
    )


def _beyond_base_rate(numbers: EnsembleNumbers) -> Claim:
    claim = "some ensembles transfer more often than a model does to another training of itself"
    intervals = {name: entry.transfer for name, entry in numbers.ensembles.items() if len(entry.members) > 1}
    measured = {name: value for name, value in intervals.items() if value["value"] is not None}
    if numbers.base_rate is None:
        return Claim(claim, None, "the matrix has no base rates")
    if not measured:
        return Claim(claim, None, _NOT_MEASURED)
    best = max(measured, key=lambda name: measured[name]["value"] or 0.0)
    verdicts = {name: by_interval(interval, numbers.base_rate) for name, interval in measured.items()}
    above = [name for name, verdict in verdicts.items() if verdict]
    below = all(verdict is False for verdict in verdicts.values())
    text = (
        f"at most {plain_percent(measured[best]['value'])} ({best}) against a mean base rate of "
        f"{plain_percent(numbers.base_rate)}; {len(above)} of {count(len(measured), 'ensemble')} with the whole "
        "interval above it"
    )
    return Claim(claim, True if above else False if below else None, text)


def _little_gain(numbers: EnsembleNumbers) -> Claim:
    claim = f"with more than {ENOUGH} members the gains are negligible"
    entry = numbers.growth.get(ENOUGH + 1)
    if entry is None or entry.difference["value"] is None:
        return Claim(claim, None, f"needs ensembles of {ENOUGH} and {ENOUGH + 1} members")
    text = (
        f"{ENOUGH + 1} members against {ENOUGH}: {_points(entry)}; negligible is less than {100 * NEGLIGIBLE:g} points"
    )
    gains = by_interval(entry.difference, NEGLIGIBLE)
    return Claim(claim, None if gains is None else not gains, text)


def _points(entry: Difference) -> str:
    """A difference of rates in points, with its interval and p."""
    value, low, high = (entry.difference[part] for part in ("value", "low", "high"))
    assert value is not None
    between = "" if low is None or high is None else f" ({100 * low:+.1f} to {100 * high:+.1f})"
    tested = "" if entry.p is None else f", {p_value(entry.p)}"
    return f"{100 * value:+.1f} points{between}{tested}"
