"""The study in a few sentences, for readers who read nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stockade.studies.masking.tables import masked, rate, words
from stockade.studies.orders import orders_in_short
from stockade.studies.tables import plain_share

Numbers = Mapping[str, Any]


def headline(numbers: Numbers) -> list[str]:
    """What stands above the tables; every sentence follows from the numbers below it."""
    return [*_certificates(numbers), *_attacks(numbers), *_choice(numbers), *_risk(numbers), orders_in_short(numbers)]


def _certificates(numbers: Numbers) -> list[str]:
    found = [(one, one["certificates"]) for one in masked(numbers)]
    proved = [(one, told) for one, told in found if told["sound"]["median_radius"] is not None]
    if not proved:
        return ["At no rate is the class of half of the texts certified."]
    one, told = max(proved, key=lambda pair: (pair[1]["sound"]["median_radius"], -pair[0]["rate"]))
    if not told["sound"]["median_radius"]:
        return [
            "At no rate are half of the texts certified against a change of one word. The published procedure prints "
            f"an MCB of {words(told['claimed']['median_radius'])} at a mask rate of {rate(one)}, which is not a "
            "certificate."
        ]
    return [
        f"Most is certified at a mask rate of {rate(one)}: half of the texts keep their class whatever becomes of "
        f"{words(told['sound']['median_radius'])} of their words, with an accuracy of "
        f"{plain_share(told['accuracy'])}. The published procedure prints "
        f"{words(told['claimed']['median_radius'])} there, which is not a certificate."
    ]


def _attacks(numbers: Numbers) -> list[str]:
    sentences = []
    for attack in numbers["attacks"]:
        best = {}
        for ensemble in ("logit", "vote"):
            known = [
                (one["attacks"][ensemble][attack]["robust_accuracy"]["value"], one)
                for one in masked(numbers)
                if one["attacks"].get(ensemble, {}).get(attack, {}).get("robust_accuracy", {}).get("value") is not None
            ]
            if known:
                best[ensemble] = max(known, key=lambda pair: pair[0])
        told = [f"{100 * value:.1f} % at {rate(one)} by {ensemble}" for ensemble, (value, one) in best.items()]
        if told:
            sentences.append(f"{attack} leaves at most {' and '.join(told)}.")
    return sentences


def _choice(numbers: Numbers) -> list[str]:
    known = [one for one in masked(numbers) if one["check"]["excess"]["value"] is not None]
    if not known:
        return []
    told = ", ".join(f"{one['check']['excess']['value']:+.3f} at {rate(one)}" for one in known)
    claims, broken = (sum(one["check"][name] for one in known) for name in ("claims", "broken_claims"))
    failing = f" Of {claims:,} claims that one word may change, {broken:,} fail with it." if claims else ""
    return [
        f"β of the word that an attacker chooses is above p by {told} in the mean; the published check sees nothing of "
        f"it.{failing}"
    ]


def _risk(numbers: Numbers) -> list[str]:
    known = [one for one in masked(numbers) if one["risk"]["mean"] is not None]
    if not known:
        return []
    told = ", ".join(f"{one['risk']['mean']:.2f} at {rate(one)}" for one in known)
    return [
        f"If a tenth of the words is attacked, a copy shows them all with a mean chance of {told}; it must be below "
        "one half."
    ]
