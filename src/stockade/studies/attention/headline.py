"""The study in a few sentences, for readers who read nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stockade.studies.orders import orders_in_short
from stockade.studies.tables import plain_share

Numbers = Mapping[str, Any]


def headline(numbers: Numbers) -> list[str]:
    """What stands above the tables; every sentence follows from the numbers below it."""
    models = numbers["models"]
    return [*_greedy(models), *_changes(models), *_theorem(models), orders_in_short(numbers)]


def _greedy(models: Numbers) -> list[str]:
    rates = {
        name: model["attacks"]["gs-ec"]["rate"]
        for name, model in models.items()
        if "gs-ec" in model["attacks"] and model["attacks"]["gs-ec"]["rate"]["value"] is not None
    }
    if not rates:
        return ["No model was attacked by gs-ec."]
    told = ", ".join(f"{name} on {plain_share(rate)}" for name, rate in rates.items())
    return [f"One word, chosen by gs-ec, fools {told} of the texts."]


def _changes(models: Numbers) -> list[str]:
    """Who keeps its attention and its sentence vector best, where two models can be compared."""
    sentences = []
    moved = {name: model["attention"]["relative"]["value"] for name, model in models.items() if model["attention"]}
    known = {name: found for name, found in moved.items() if found is not None}
    if len(known) > 1:
        told = ", ".join(f"{name} {100 * found:.1f} %" for name, found in known.items())
        sentences.append(f"The attention of a word that was not replaced changes by: {told}.")
    changed = {name: model["relative_embedding_change"]["mean"]["value"] for name, model in models.items()}
    seen = {name: found for name, found in changed.items() if found is not None}
    if seen:
        told = ", ".join(f"{name} {found:.2f}" for name, found in seen.items())
        sentences.append(f"The sentence vector moves by this part of its length (R_e): {told}.")
    return sentences


def _theorem(models: Numbers) -> list[str]:
    sentences = []
    for name, model in models.items():
        if model["theorem"] is None:
            continue
        heads = model["theorem"]["heads"]
        held = sum((head["uniform"]["worst"]["ratio"] or 0.0) <= 1 for head in heads)
        above = sum((head["real"]["worst"]["ratio"] or 0.0) > 1 for head in heads if head["real"])
        sentences.append(
            f"{name}: the bound of Theorem 1 holds for {held} of {len(heads)} heads with uniform vectors, as it must; "
            f"with the model's own vectors and the worst perturbation {above} heads exceed it."
        )
    return sentences
