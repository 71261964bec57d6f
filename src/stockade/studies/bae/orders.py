"""What the BAE paper says about the order of its attacks, held against a run: reported, never enforced.

The paper had other victims, data, masked LM and sentence encoder, and says "almost always" itself: an order that does
not hold here is a finding, not a fault.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stockade.core.records import Record
from stockade.studies.orders import Order, at_least_as_strong, count_texts
from stockade.studies.results import Results, bootstrap_mean, mean, succeeded, successes

MODES = ("bae-r", "bae-i", "bae-r/i", "bae-r+i")
BASELINE = "textfooler"


def check_orders(
    results: Results, splits: Mapping[str, Any], paired: Mapping[str, Mapping[str, Any]]
) -> tuple[Order, ...]:
    """Every order the paper states; `paired` is what `pair_similarities` found for each mode."""
    return (
        at_least_as_strong(results, "bae-r+i", "bae-r/i"),
        at_least_as_strong(results, "bae-r/i", "bae-r"),
        at_least_as_strong(results, "bae-r/i", "bae-i"),
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
    numbers = f"{own:.3f} against {others:.3f} on {count_texts(paired['texts'])}"
    if difference["low"] is not None:
        numbers += f"; difference {difference['value']:+.3f} ({difference['low']:+.3f} to {difference['high']:+.3f})"
    return Order(claim, own > others, numbers)


def _insertions_matter_more(splits: Mapping[str, Any]) -> Order:
    claim = "split A is larger than split B: inserting adds more to replacing than the other way round"
    if not splits["attacked"]:
        return Order(claim, None, "no text was attacked")
    a, b = splits["splits"]["A"]["count"], splits["splits"]["B"]["count"]
    return Order(claim, a > b, f"A {a}, B {b} of {count_texts(splits['attacked'])}")


def _mean_similarity(records: Sequence[Record]) -> float | None:
    return mean([record.similarity for record in records if record.similarity is not None])


def _shown(value: float | None) -> str:
    return "n/a" if value is None else f"{value:.3f}"
