"""Every number of the study, from its plan and its parts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from stockade.studies.masking.measures import LEGACY, certificate_numbers, check_numbers, risk_numbers
from stockade.studies.masking.orders import check_orders
from stockade.studies.masking.parts import Parts
from stockade.studies.masking.plan import NAME, Plan
from stockade.studies.masking.victims import Victim
from stockade.studies.orders import as_rows

SCHEMA = 1
SHARP = 0.5
"""From this share of texts on which all copies vote alike, a search that follows scores mostly sees nothing."""
_FEW = 30
_SHOWN = (
    "n",
    "errors",
    "attacked",
    "succeeded",
    "clean_accuracy",
    "robust_accuracy",
    "success_rate",
    "mean_queries",
    "mean_perturbed_percent",
)


def analyse(folder: Path, plan: Plan, parts: Sequence[Parts], published: bool) -> dict[str, Any]:
    settings = plan.settings
    rates = [_rate(one) for one in parts]
    attacks = list(dict.fromkeys(name for one in parts for run in one.attacks.values() for name in run.attacks))
    return {
        "schema": SCHEMA,
        "study": NAME,
        "run": folder.name,
        "data": plan.data,
        "created": plan.created,
        "seed": settings.seed,
        "limit": settings.limit,
        "budget": settings.budget,
        "copies": settings.copies,
        "texts": plan.texts,
        "total": plan.total,
        "attacks": attacks,
        "complete": all(run.summary["complete"] for one in parts for run in one.attacks.values()),
        "published": published,
        "warnings": _warnings(plan, parts, rates),
        "rates": rates,
        "orders": as_rows(check_orders(rates, attacks)),
    }


def _rate(parts: Parts) -> dict[str, Any]:
    victim = parts.victim
    run = parts.certificates
    return {
        "rate": victim.rate,
        "model": victim.name,
        "reference": victim.reference,
        "certificates": None if run is None else certificate_numbers(run),
        "check": None if parts.looks is None else check_numbers(parts.looks),
        "risk": None
        if run is None
        else risk_numbers([one.words for one in run.iterate(LEGACY)], victim.rate, victim.kept),
        "attacks": {
            ensemble: {
                attack: {name: numbers[name] for name in _SHOWN} for attack, numbers in run.summary["attacks"].items()
            }
            for ensemble, run in parts.attacks.items()
        },
    }


def _warnings(plan: Plan, parts: Sequence[Parts], rates: Sequence[dict[str, Any]]) -> list[str]:
    warnings = []
    for one, numbers in zip(parts, rates, strict=True):
        warnings += _of_certificates(one.victim, numbers["certificates"], bool(plan.settings.attacks))
        for ensemble, run in one.attacks.items():
            for attack, found in run.summary["attacks"].items():
                if found["errors"]:
                    warnings.append(
                        f"{one.victim.name}, {ensemble}: {attack} ended in an error on {found['errors']:,} of "
                        f"{plan.texts:,} texts, which are left out."
                    )
    if plan.texts < _FEW:
        counted = "1 text was" if plan.texts == 1 else f"{plan.texts} texts were"
        warnings.append(f"Only {counted} studied: read the intervals, orders and medians may be chance.")
    if plan.settings.attacks and plan.settings.budget is not None:
        warnings.append(
            f"At most {plan.settings.budget:,} queries per text: an attack that runs out of them leaves a text robust "
            "that it might have changed."
        )
    if sum(victim.masks for victim in plan.victims) == 1:
        warnings.append("One mask rate alone shows no curve: give models of several rates before the data.")
    return warnings


def _of_certificates(victim: Victim, found: Any, attacked: bool) -> list[str]:
    if found is None:
        return []
    warnings = []
    if found["errors"]:
        warnings.append(f"{victim.name}: {found['errors']:,} texts ended in an error and have no certificate.")
    unanimous = found["votes"]["unanimous"]
    if attacked and unanimous is not None and unanimous >= SHARP:
        warnings.append(
            f"{victim.name}: all copies vote alike on {unanimous:.0%} of the texts. Such votes starve a search that "
            "follows scores: robust accuracy by vote is no evidence of robustness, read logit and probability."
        )
    return warnings
