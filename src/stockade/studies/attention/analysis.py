"""Every number of the study, from its plan, its runs and what was seen inside the models."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stockade.core.statistics import wilson
from stockade.runs.run import Run
from stockade.studies.attention.orders import check_orders, compare_models, pairs
from stockade.studies.attention.plan import Plan
from stockade.studies.attention.rates import best_by_attention, success_rates
from stockade.studies.attention.ratings import score_ratings
from stockade.studies.attention.shifts import (
    attention_shift,
    embedding_change,
    relative_embedding_change,
    telling_looks,
)
from stockade.studies.attention.victims import ATTACKS, RANDOM, Victim
from stockade.studies.orders import as_rows
from stockade.studies.results import Results, read_results

SCHEMA = 1
EXAMPLES = 3
_FEW = 30


def analyse(
    folder: Path, plan: Plan, runs: Mapping[str, Run], inside: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    results = {name: read_results(run, run.attacks) for name, run in runs.items()}
    examples = telling_looks(inside, EXAMPLES)
    models = {
        victim.name: _model(plan, victim, runs[victim.name], results[victim.name], inside[victim.name])
        for victim in plan.victims
    }
    for name, looks in examples.items():
        models[name]["examples"] = looks
    settings = plan.settings
    return {
        "schema": SCHEMA,
        "study": "attention",
        "run": folder.name,
        "data": plan.data,
        "created": plan.created,
        "seed": settings.seed,
        "limit": settings.limit,
        "budget": settings.budget,
        "draws": settings.draws,
        "complete": all(run.summary["complete"] for run in runs.values()),
        "texts": {
            "chosen": len(plan.choice.ids),
            "looked_at": plan.choice.looked_at,
            "total": plan.choice.total,
        },
        "warnings": _warnings(plan, runs),
        "models": models,
        "pairs": _pairs(models, results),
        "orders": as_rows(check_orders(models, results)),
        "ratings": score_ratings(folder),
    }


def _model(plan: Plan, victim: Victim, run: Run, results: Results, inside: Mapping[str, Any]) -> dict[str, Any]:
    rates = success_rates(run, results)
    looks = inside["looks"]
    return {
        "reference": victim.reference,
        "kind": victim.kind,
        "accuracy": wilson(plan.choice.correct[victim.name], plan.choice.looked_at),
        "missing": dict(victim.missing),
        "attacks": rates,
        "a_star": best_by_attention(rates, results),
        "attention": None if inside["without_attention"] else attention_shift(looks),
        "without_attention": inside["without_attention"],
        "embedding_change": embedding_change(looks),
        "without_layers": inside["without_layers"],
        "relative_embedding_change": relative_embedding_change(looks),
        "theorem": inside["theorem"],
        "without_theorem": inside["without_theorem"],
    }


def _pairs(models: Mapping[str, Any], results: Mapping[str, Results]) -> list[dict[str, Any]]:
    """The self-attentive models against the recurrent ones, text by text."""
    found = []
    for one, other in pairs(models):
        compared = {
            attack: compare_models(results[one], results[other], attack) for attack in ATTACKS if attack != RANDOM
        }
        found.append({"models": [one, other], "attacks": compared})
    return found


def _warnings(plan: Plan, runs: Mapping[str, Run]) -> list[str]:
    warnings = [f"{name}: {warning}" for name, run in runs.items() for warning in run.summary["warnings"]]
    chosen, limit = len(plan.choice.ids), plan.settings.limit
    if limit is not None and chosen < limit:
        warnings.append(f"Only {chosen} of the {limit} texts asked for are right with all models.")
    if chosen < _FEW:
        counted = "1 text was" if chosen == 1 else f"{chosen} texts were"
        warnings.append(f"Only {counted} attacked: read the intervals, the orders may be chance.")
    if plan.settings.budget is not None:
        warnings.append(
            f"At most {plan.settings.budget:,} queries per text do not reach the whole vocabulary: success rates may "
            "be lower than without a limit, and the word of gs-ec need not be the nearest."
        )
    if len(plan.victims) == 1:
        warnings.append("One model alone is compared with nothing: give several before the data.")
    return warnings
