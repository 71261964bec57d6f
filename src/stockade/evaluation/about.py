"""The few sentences that say what was evaluated and what came out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stockade.evaluation.tables import bounded

Numbers = Mapping[str, Any]


def about(numbers: Numbers) -> str:
    """What was evaluated."""
    models, texts, seeds = numbers["models"], numbers["data"]["size"], numbers["seeds"]
    limits = []
    if numbers["budget"]:
        limits.append(f"at most {numbers['budget']:,} queries per text")
    if numbers["max_changed"] is not None:
        limits.append(f"at most {numbers['max_changed']:.0%} of the words changed")
    if numbers["constraint"]:
        limits.append(f"candidates keep {numbers['constraint']}")
    named = f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {seeds[0]} to {seeds[-1]}"
    return (
        f"{_count(len(models), 'model')} in {_count(len(numbers['defenses']) - 1, 'defense')} and bare, under "
        f"{_count(len(numbers['attacks']), 'attack')}, on the same {_count(texts, 'text')} of "
        f"{numbers['data']['reference']}, {named}{''.join(f', {limit}' for limit in limits)}."
    )


def headline(numbers: Numbers) -> list[str]:
    """The worst case of each model, in its best defense and bare."""
    told = []
    for name in numbers["models"]:
        rows = [
            row
            for row in numbers["rows"]
            if row["model"] == name and row["made"] and row["worst"]["robust_accuracy"]["value"] is not None
        ]
        if not rows:
            told.append(f"{name}: nothing could be measured.")
            continue
        in_full = [row for row in rows if row["worst"]["complete"]]
        best = max(in_full or rows, key=lambda row: row["worst"]["robust_accuracy"]["value"])
        bare = next((row for row in rows if row["defense"] == "none"), None)
        sentence = f"{name}: {_worst(best)} of the texts survive every attack in its best row, {best['defense']}"
        if bare is not None and bare is not best:
            sentence += f"; {_worst(bare)} without a defense"
        told.append(f"{sentence}.")
    return told


def remarks(numbers: Numbers) -> list[str]:
    """What there is to know of the defenses of single rows."""
    return [f"{row['model']}, {row['defense']}: {told}" for row in numbers["rows"] for told in row["remarks"]]


def _worst(row: Numbers) -> str:
    return bounded(row["worst"], "robust_accuracy", "≤ ")


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
