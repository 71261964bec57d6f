"""What came of each text over several cells: a text is robust only if it survives everything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from stockade.evaluation.grid import Row, Statuses

Fate = Literal["robust", "fooled", "wrong", "unknown"]
_FROM_BEST: tuple[Fate, ...] = ("robust", "unknown", "wrong", "fooled")


def fates(answers: Mapping[str, Any], cells: Sequence[Statuses]) -> dict[str, Fate]:
    """The fate of every text: wrong if the model is wrong on it without any attack, fooled if any cell has fooled it,
    robust if none has.

    A model that is random by itself, not by a defense, may be wrong in one cell and right in another. As with
    successes, half of the draws decide: a text is wrong if it is so in the clean pass, or in at least half of the
    cells. Were one cell enough, robust accuracy would fall with the number of ways alone.

    Unknown, and left out of all shares, is a text that survives some cells and ended in an error in others. One that is
    fooled or wrong anyway is known: an error can hide a success, never undo one.
    """
    clean = answers["clean"]
    found: dict[str, Fate] = {}
    for text, label, predicted in zip(clean["ids"], clean["labels"], clean["predicted"], strict=True):
        seen = [statuses.get(text, "error") for statuses in cells]
        if predicted is not None and predicted != label:
            found[text] = "wrong"
        elif "success" in seen:
            found[text] = "fooled"
        elif 2 * seen.count("skipped") >= len(seen):
            found[text] = "wrong"
        elif "error" in seen or predicted is None:
            found[text] = "unknown"
        else:
            found[text] = "robust"
    return found


def cell_fates(statuses: Statuses) -> dict[str, Fate]:
    """The fates in one cell by itself, as its own run counts them."""
    names: dict[str, Fate] = {"success": "fooled", "failed": "robust", "skipped": "wrong", "error": "unknown"}
    return {text: names[status] for text, status in statuses.items()}


def row_fates(row: Row, seed: int, attacks: Sequence[str]) -> dict[str, Fate] | None:
    """The worst case of a row over some attacks and all ways; None if no cell of theirs has numbers.

    It is the worst of the fates under each attack, not the fate over all their cells at once: a text that one attack
    finds wrong in half of its cells could else be outvoted by the cells of the others, and the worst case be better
    than that attack's own number.
    """
    met = [cells for attack in attacks if (cells := _cells(row, seed, attack))]
    found = [fates(row.answers[seed], cells) for cells in met]
    return {text: max((one[text] for one in found), key=_FROM_BEST.index) for text in found[0]} if found else None


def _cells(row: Row, seed: int, attack: str) -> list[Statuses]:
    return [row.cells[attack, way, seed].statuses for way in row.ways if (attack, way, seed) in row.cells]


def is_complete(row: Row, seeds: Sequence[int], attacks: Sequence[str]) -> bool:
    """Whether none of these cells is missing. If one is, the worst case may be worse than it looks."""
    return bool(row.ways) and all(
        (attack, way, seed) in row.cells for attack in attacks for way in row.ways for seed in seeds
    )


def counts(found: Mapping[str, Fate]) -> dict[str, int]:
    """n, attacked (clean and right), robust and fooled texts."""
    by_fate = Counter(found.values())
    attacked = by_fate["robust"] + by_fate["fooled"]
    return {
        "n": attacked + by_fate["wrong"],
        "attacked": attacked,
        "robust": by_fate["robust"],
        "fooled": by_fate["fooled"],
        "unknown": by_fate["unknown"],
    }
