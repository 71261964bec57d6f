"""What changes inside a model over all successes: attention of the other words, vectors by layer and distance, R_e."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stockade.studies.results import bootstrap_mean, mean

REACH = 10
"""Words this far from the replaced one are told apart."""


def attention_shift(looks: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Means over successes, with 95 % bootstrap intervals.

    `others` is the mean absolute change of a word that was not replaced, `relative` the same in parts of the mean
    attention of those words, `replaced` the change at the replaced word, `moved` half the sum of all changes.
    """
    parts: dict[str, list[float]] = {"others": [], "relative": [], "replaced": [], "moved": []}
    for look in looks:
        if look["attention"] is None:
            continue
        before, after = look["attention"]["before"], look["attention"]["after"]
        changes = [abs(new - old) for old, new in zip(before, after, strict=True)]
        others = [change for at, change in enumerate(changes) if at != look["index"]]
        parts["replaced"].append(changes[look["index"]])
        parts["moved"].append(sum(changes) / 2)
        if others:
            parts["others"].append(sum(others) / len(others))
            attended = sum(old for at, old in enumerate(before) if at != look["index"])
            if attended > 0:
                parts["relative"].append(sum(others) / attended)
    return {"texts": len(parts["moved"]), **{name: dict(bootstrap_mean(values)) for name, values in parts.items()}}


def embedding_change(looks: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """The mean change of a word's vector by layer and by distance from the replaced word; None if none was seen."""
    seen = [look for look in looks if look["layers"]]
    if not seen:
        return None
    distances = range(-REACH, REACH + 1)
    values = [[_changes_at(seen, layer, distance) for distance in distances] for layer in range(len(seen[0]["layers"]))]
    return {
        "texts": len(seen),
        "distances": list(distances),
        "counts": [len(column) for column in values[0]],
        "layers": [[mean(column) for column in row] for row in values],
    }


def _changes_at(looks: Sequence[Mapping[str, Any]], layer: int, distance: int) -> list[float]:
    found = []
    for look in looks:
        at = look["index"] + distance
        if 0 <= at < len(look["words"]) and look["layers"][layer][at] is not None:
            found.append(look["layers"][layer][at])
    return found


def relative_embedding_change(looks: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """R_e: the mean over successes with its 95 % bootstrap interval."""
    values = [look["relative_change"] for look in looks if look["relative_change"] is not None]
    return {"texts": len(values), "mean": dict(bootstrap_mean(values))}


def telling_looks(
    inside: Mapping[str, Mapping[str, Any]], most: int, shortest: int = 4, longest: int = 30
) -> dict[str, list[Mapping[str, Any]]]:
    """For each model a few successes to look at: texts that fool most models first, neither tiny nor long if there are
    others, in the order of the data among equals.
    """
    fooled: dict[str, int] = {}
    for found in inside.values():
        for look in found["looks"]:
            fooled[look["id"]] = fooled.get(look["id"], 0) + 1

    def rank(look: Mapping[str, Any]) -> tuple[bool, int]:
        return not shortest <= len(look["words"]) <= longest, -fooled[look["id"]]

    return {name: sorted(found["looks"], key=rank)[:most] for name, found in inside.items()}
