"""What the BAE paper claims about its attacks, held against a run: reported, never enforced.

The paper had other victims, data, masked LM and sentence encoder, and says "almost always" itself: a claim that does
not hold here is a finding, not a fault.
"""

from __future__ import annotations

from stockade.report.numbers import count, number
from stockade.studies.bae.analysis import (
    BASELINE,
    BOTH,
    EITHER,
    INSERT,
    MODES,
    REPLACE,
    BaeNumbers,
    PairedSimilarity,
    Splits,
)
from stockade.studies.claims import Claim, at_least_as_strong
from stockade.studies.records import Results


def check_claims(results: Results, numbers: BaeNumbers) -> tuple[Claim, ...]:
    """Every claim of the paper about the order of its numbers."""
    similarities = {mode: numbers.attacks[mode].mean_similarity for mode in MODES}
    return (
        at_least_as_strong(results, BOTH, EITHER),
        at_least_as_strong(results, EITHER, REPLACE),
        at_least_as_strong(results, EITHER, INSERT),
        _inserting_is_most_similar(similarities),
        _more_similar(similarities, BOTH, REPLACE),
        *(_more_similar_than_baseline(mode, numbers.paired_similarity[mode]) for mode in MODES),
        _insertions_matter_more(numbers.splits),
    )


def _inserting_is_most_similar(similarities: dict[str, float | None]) -> Claim:
    claim = f"{INSERT} has the highest mean similarity of the four modes"
    measured = {mode: value for mode, value in similarities.items() if value is not None}
    numbers = ", ".join(f"{mode} {number(value, 3)}" for mode, value in similarities.items())
    if INSERT not in measured or len(measured) < 2:
        return Claim(claim, None, numbers)
    return Claim(claim, measured[INSERT] == max(measured.values()), numbers)


def _more_similar(similarities: dict[str, float | None], mode: str, other: str) -> Claim:
    first, second = similarities[mode], similarities[other]
    holds = None if first is None or second is None else first > second
    numbers = f"{mode} {number(first, 3)}, {other} {number(second, 3)}"
    return Claim(f"{mode} has a higher mean similarity than {other}", holds, numbers)


def _more_similar_than_baseline(mode: str, paired: PairedSimilarity) -> Claim:
    claim = f"{mode} has a higher mean similarity than {BASELINE} on the texts both fool"
    first, second, difference = paired.mean_similarity, paired.baseline_mean_similarity, paired.difference
    if first is None or second is None:
        return Claim(claim, None, "no text is fooled by both")
    numbers = f"{first:.3f} against {second:.3f} on {count(paired.texts, 'text')}"
    if difference["low"] is not None:
        numbers += f"; difference {difference['value']:+.3f} ({difference['low']:+.3f} to {difference['high']:+.3f})"
    return Claim(claim, first > second, numbers)


def _insertions_matter_more(splits: Splits) -> Claim:
    claim = "split A is larger than split B: inserting adds more to replacing than the other way round"
    if not splits.attacked:
        return Claim(claim, None, "no text was attacked")
    a, b = splits.splits["A"].count, splits.splits["B"].count
    return Claim(claim, a > b, f"A {a}, B {b} of {count(splits.attacked, 'text')}")
