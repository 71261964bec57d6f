"""What a reader must know before believing the numbers of a row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stockade.evaluation.measures import told_p
from stockade.evaluation.ways import DIRECT
from stockade.runs.metrics import swapped_labels

SHARP = 0.5
"""From this share of texts on which all copies vote alike, a search that follows scores mostly sees nothing."""
MUCH = 0.1
"""So much more robust accuracy the direct way than another way is called flattering."""
_SMALL = 0.05
_BY_CHANCE = 0.5
"""The p of two texts against none: from here on a difference of two ways says nothing."""
Numbers = Mapping[str, Any]


def row_warnings(row: Numbers, texts: int, labels: Sequence[str]) -> list[str]:
    told = [
        *_below_chance(row, texts, labels),
        *_sharp_votes(row),
        *_flattered(row),
        *_lucky(row, texts),
        *_unknown(row),
    ]
    return [f"{row['model']}, {row['defense']}: {sentence}" for sentence in told]


def _below_chance(row: Numbers, texts: int, labels: Sequence[str]) -> list[str]:
    accuracy = row["clean"]["accuracy"]["value"]
    told = None if accuracy is None else swapped_labels(round(accuracy * texts), texts, labels)
    return [told] if told else []


def _sharp_votes(row: Numbers) -> list[str]:
    votes = row["votes"]
    if votes is None or max(votes["unanimous"] or 0.0, votes["same_answer"] or 0.0) < SHARP:
        return []
    same = votes["same_answer"]
    probes = "" if same is None else f", and {same:.0%} of texts with one word less get the very same one-hot answer"
    return [
        f"all copies vote alike on {votes['unanimous']:.0%} of the clean texts (mean entropy {votes['entropy']:.3f})"
        f"{probes}. A search that follows scores is starved by such votes: failing the direct way is no evidence of "
        "robustness."
    ]


def _flattered(row: Numbers) -> list[str]:
    """Where the direct way leaves much more accuracy than another way."""
    told = []
    for attack, found in row["attacks"].items():
        robust = {
            way: cell["robust_accuracy"]["value"]
            for way, cell in found["ways"].items()
            if cell["robust_accuracy"]["value"] is not None
        }
        if DIRECT not in robust:
            continue
        worst = min(robust, key=lambda way: robust[way])
        test = found["ways"][worst].get("against_direct")
        if robust[DIRECT] - robust[worst] >= MUCH and (test is None or test["p"] < _BY_CHANCE):
            sure = test is not None and test["p"] < _SMALL
            told.append(
                f"{attack} leaves {robust[DIRECT]:.0%} robust the direct way, but {robust[worst]:.0%} by way of {worst}"
                f"{_chance(test)}: the direct number "
                f"{'flatters the defense' if sure else 'may flatter the defense, more texts would tell'}."
            )
    return told


def _lucky(row: Numbers, texts: int) -> list[str]:
    """Where a randomised model is undecided about what was found: a search with more answers may find what holds."""
    return [
        f"{attack}: {found['undecided']} of {texts} texts count as robust although what was found for them fools the "
        "model in some of its draws, only in less than half of them. Search again with more --expectation."
        for attack, found in row["attacks"].items()
        if found["undecided"] >= MUCH * texts
    ]


def _unknown(row: Numbers) -> list[str]:
    told = []
    for attack, found in row["attacks"].items():
        if found["unknown"]:
            count = found["unknown"]
            told.append(
                f"{attack}: {count} {'text' if count == 1 else 'texts'} ended in an error and "
                f"{'is' if count == 1 else 'are'} left out."
            )
    return told


def _chance(test: Numbers | None) -> str:
    return "" if test is None else f" ({told_p(test['p'])})"
