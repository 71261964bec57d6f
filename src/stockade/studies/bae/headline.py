"""The study in a few sentences, for readers who read nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stockade.studies.orders import orders_in_short
from stockade.studies.tables import plain_share


def headline(numbers: Mapping[str, Any]) -> list[str]:
    """What stands above the tables; every sentence follows from the numbers below it."""
    attacks = numbers["attacks"]
    if not any(found["attacked"] for found in attacks.values()):
        return [
            "Nothing was attacked: the model is wrong on every text that could be read, so there is nothing to fool."
        ]
    if not any(found["succeeded"] for found in attacks.values()):
        return ["No attack fooled the model on any text."]
    return [_strongest(attacks), _most_similar(numbers), *_fluency(numbers), orders_in_short(numbers)]


def _strongest(attacks: Mapping[str, Any]) -> str:
    rates = {name: found["success_rate"]["value"] or 0.0 for name, found in attacks.items()}
    names = [name for name, rate in rates.items() if rate == max(rates.values())]
    found = attacks[names[0]]
    who = (
        f"{names[0]} is the strongest: it fools"
        if len(names) == 1
        else f"{_listed(names)} are the strongest: they fool"
    )
    return (
        f"{who} the model on {found['succeeded']:,} of {found['attacked']:,} texts, and accuracy falls from "
        f"{plain_share(found['clean_accuracy'])} to {plain_share(found['robust_accuracy'])}."
    )


def _listed(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}"


def _most_similar(numbers: Mapping[str, Any]) -> str:
    means = {
        name: found["mean_similarity"]
        for name, found in numbers["attacks"].items()
        if found["mean_similarity"] is not None
    }
    if not means:
        return "Similarity was not measured."
    best, worst = max(means, key=lambda name: means[name]), min(means, key=lambda name: means[name])
    if best == worst:
        return f"The mean similarity of {best} to the original is {means[best]:.3f}."
    return (
        f"The texts of {best} stay most similar to the original ({means[best]:.3f}), "
        f"those of {worst} least ({means[worst]:.3f})."
    )


def _fluency(numbers: Mapping[str, Any]) -> list[str]:
    if numbers["fluency"] is None:
        return []
    ratios = {
        name: found["median_ratio"]
        for name, found in numbers["fluency"]["attacks"].items()
        if found["median_ratio"] is not None
    }
    if len(set(ratios.values())) < 2:
        return []
    best, worst = min(ratios, key=lambda name: ratios[name]), max(ratios, key=lambda name: ratios[name])
    return [
        f"By pseudo-perplexity {best} costs least fluency (median ratio {ratios[best]:.2f}) and {worst} most "
        f"({ratios[worst]:.2f})."
    ]
