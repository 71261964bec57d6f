"""What a run of certificates says, in a few sentences: what is proved, against whom, and how sure that is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stockade.certificates.run import CertificateRun

NOT_PROVED = "not a certificate"
_CLAIMED = "claimed: "


def headline(run: CertificateRun) -> list[str]:
    """Against whom, once for all methods that share it; then one line for each method."""
    methods, by_threat = run.summary["methods"], threats(run)
    several = len(by_threat) > 1
    against = [
        f"A radius of d{f' of {_listed(keys)}' if several else ''} is about {threat}."
        for threat, keys in by_threat.items()
    ]
    whole_set = run.summary["whole_set"]
    unknown = [] if run.labelled else ["The data have no labels: a class is certified as the model gives it."]
    return [
        *against,
        *unknown,
        *(_line(key, numbers, run.methods[key], whole_set) for key, numbers in methods.items()),
    ]


def threats(run: CertificateRun) -> dict[str, list[str]]:
    """Each attacker that the methods of a run speak of, with their names."""
    found: dict[str, list[str]] = {}
    for key, numbers in run.summary["methods"].items():
        found.setdefault(numbers["threat"].rpartition(_CLAIMED)[2], []).append(key)
    return found


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names)


def _share(value: float) -> str:
    return f"{100 * value:.1f} %"


def _line(key: str, numbers: Mapping[str, Any], method: Mapping[str, Any], whole_set: bool) -> str:
    if not numbers["n"]:
        return f"{key}: no text has an answer yet."
    if not numbers["sound"]:
        return f"{key} is {NOT_PROVED.upper()}: it claims more than it proves, namely {_found(numbers)}."
    given = " The true class was given to it (choose=label)." if method["options"].get("choose") == "label" else ""
    return f"{key} proves {_found(numbers)}. {_chance(numbers, whole_set)}{given}"


def _found(numbers: Mapping[str, Any]) -> str:
    curve = numbers["curve"]
    whose = "a class" if numbers["accuracy"] is None else "the true class"
    right = f"{whose} of {_share(curve[0]['share'])} of the texts (n = {numbers['n']:,})"
    if len(curve) == 1:
        return f"{right}, and for none that it stays when something is changed"
    largest = "" if len(curve) == 2 else f", up to radius {len(curve) - 1} for {_share(curve[-1]['share'])}"
    return f"{right}, and for {_share(curve[1]['share'])} that it stays at radius 1{largest}; {_median(numbers)}"


def _median(numbers: Mapping[str, Any]) -> str:
    median = numbers["median_radius"]
    return "less than half have a radius" if median is None else f"at least half have a radius of {median} or more"


def _chance(numbers: Mapping[str, Any], whole_set: bool) -> str:
    alpha = numbers["alpha"]
    if alpha is None:
        return "Nothing is left to chance."
    if whole_set:
        return f"With a chance of at least {1 - alpha:g} not one of its certificates is wrong (α = {alpha:g} for all)."
    return (
        f"Each is wrong with a chance of at most {alpha:g} over the draws of copies (α for each text): in the mean at "
        f"most {alpha * numbers['n']:.3g} of {numbers['n']:,}."
    )
