"""What the BAE paper says about the order of its attacks, held against a run: reported, never enforced.

The paper had other victims, data, masked LM and sentence encoder, and says "almost always" itself: an order that does
not hold here is a finding, not a fault.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stockade.core.records import Record
from stockade.studies.results import Results, attacked_by_all, bootstrap_mean, mean, succeeded, successes

MODES = ("bae-r", "bae-i", "bae-r/i", "bae-r+i")
BASELINE = "textfooler"


@dataclass(frozen=True, slots=True)
class Order:
    """One statement of the paper with what the run says to it; None when the run cannot tell."""

    claim: str
    holds: bool | None
    numbers: str

    @property
    def verdict(self) -> str:
        return "n/a" if self.holds is None else "holds" if self.holds else "does not hold"


def check_orders(
    results: Results, splits: Mapping[str, Any], paired: Mapping[str, Mapping[str, Any]]
) -> tuple[Order, ...]:
    """Every order the paper states; `paired` is what `pair_similarities` found for each mode."""
    return (
        _at_least_as_strong(results, "bae-r+i", "bae-r/i"),
        _at_least_as_strong(results, "bae-r/i", "bae-r"),
        _at_least_as_strong(results, "bae-r/i", "bae-i"),
        _inserting_is_most_similar(results),
        _more_similar(results, "bae-r+i", "bae-r"),
        *(_more_similar_than_baseline(mode, paired[mode]) for mode in MODES),
        _insertions_matter_more(splits),
    )


def pair_similarities(results: Results, mode: str) -> dict[str, Any]:
    """Mean similarities of a mode and the baseline on the texts that both fool, and of their differences."""
    pairs = [
        (one.similarity, other.similarity)
        for one, other in ((results[mode][text], results[BASELINE].get(text)) for text in results[mode])
        if succeeded(one) and other is not None and succeeded(other)
    ]
    known = [(one, other) for one, other in pairs if one is not None and other is not None]
    return {
        "texts": len(known),
        "mean_similarity": mean([one for one, _ in known]),
        "baseline_mean_similarity": mean([other for _, other in known]),
        "difference": dict(bootstrap_mean([one - other for one, other in known])),
    }


def _at_least_as_strong(results: Results, strong: str, weak: str) -> Order:
    claim = f"{strong} succeeds at least as often as {weak}"
    texts = attacked_by_all(results, (strong, weak))
    if not texts:
        return Order(claim, None, "no text was attacked by both")
    outcomes = [(succeeded(results[strong][text]), succeeded(results[weak][text])) for text in texts]
    ahead, behind = sum(one for one, _ in outcomes), sum(other for _, other in outcomes)
    only, missed = sum(one > other for one, other in outcomes), sum(one < other for one, other in outcomes)
    numbers = f"{ahead} against {behind} of {len(texts)} texts; {only} fooled only by {strong}, {missed} only by {weak}"
    return Order(claim, ahead >= behind, numbers)


def _inserting_is_most_similar(results: Results) -> Order:
    claim = "bae-i has the highest mean similarity of the four modes"
    means = {mode: _mean_similarity(successes(results[mode])) for mode in MODES}
    known = {mode: value for mode, value in means.items() if value is not None}
    numbers = ", ".join(f"{mode} {_shown(value)}" for mode, value in means.items())
    if "bae-i" not in known or len(known) < 2:
        return Order(claim, None, numbers)
    return Order(claim, known["bae-i"] == max(known.values()), numbers)


def _more_similar(results: Results, one: str, other: str) -> Order:
    first, second = _mean_similarity(successes(results[one])), _mean_similarity(successes(results[other]))
    holds = None if first is None or second is None else first > second
    numbers = f"{one} {_shown(first)}, {other} {_shown(second)}"
    return Order(f"{one} has a higher mean similarity than {other}", holds, numbers)


def _more_similar_than_baseline(mode: str, paired: Mapping[str, Any]) -> Order:
    claim = f"{mode} has a higher mean similarity than {BASELINE} on the texts both fool"
    if not paired["texts"]:
        return Order(claim, None, "no text is fooled by both")
    own, others, difference = paired["mean_similarity"], paired["baseline_mean_similarity"], paired["difference"]
    numbers = f"{own:.3f} against {others:.3f} on {_texts(paired['texts'])}"
    if difference["low"] is not None:
        numbers += f"; difference {difference['value']:+.3f} ({difference['low']:+.3f} to {difference['high']:+.3f})"
    return Order(claim, own > others, numbers)


def _insertions_matter_more(splits: Mapping[str, Any]) -> Order:
    claim = "split A is larger than split B: inserting adds more to replacing than the other way round"
    if not splits["attacked"]:
        return Order(claim, None, "no text was attacked")
    a, b = splits["splits"]["A"]["count"], splits["splits"]["B"]["count"]
    return Order(claim, a > b, f"A {a}, B {b} of {_texts(splits['attacked'])}")


def _mean_similarity(records: Sequence[Record]) -> float | None:
    return mean([record.similarity for record in records if record.similarity is not None])


def _shown(value: float | None) -> str:
    return "n/a" if value is None else f"{value:.3f}"


def _texts(count: int) -> str:
    return f"{count} text" if count == 1 else f"{count} texts"
