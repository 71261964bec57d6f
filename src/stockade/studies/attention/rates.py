"""How often each attack fools each model (the paper's main table).

RANDOM is the share of draws that fool the model, as in the paper; all others the share of texts. A* is the best of the
four attention attacks, as in the paper, and beside it the share of texts that any of the four fools.
"""

from __future__ import annotations

from typing import Any

from stockade.core.statistics import wilson
from stockade.runs.run import Run
from stockade.studies.attention.victims import BY_ATTENTION, RANDOM
from stockade.studies.results import Results, bootstrap_mean, succeeded, successes, was_attacked


def success_rates(run: Run, results: Results) -> dict[str, Any]:
    """For each attack of the run the numbers of the summary, and `rate`, which the table shows."""
    rates: dict[str, Any] = {}
    for attack, found in run.summary["attacks"].items():
        rates[attack] = {**found, "rate": found["success_rate"]}
    shares = [record.flip_share for record in results[RANDOM].values() if was_attacked(record)]
    known = [share for share in shares if share is not None]
    rates[RANDOM]["rate"] = dict(bootstrap_mean(known))
    return rates


def best_by_attention(rates: dict[str, Any], results: Results) -> dict[str, Any] | None:
    """A*; None for a model without attention."""
    there = [attack for attack in BY_ATTENTION if attack in rates]
    if not there:
        return None
    best = max(there, key=lambda attack: rates[attack]["rate"]["value"] or 0.0)  # the first of several alike
    texts = {text for attack in there for text, record in results[attack].items() if was_attacked(record)}
    fooled = {record.id for attack in there for record in successes(results[attack])}
    return {
        "attack": best,
        "rate": rates[best]["rate"],
        "union": {"fooled": len(fooled), "attacked": len(texts), "rate": wilson(len(fooled), len(texts))},
    }


def fooled_texts(results: Results, attack: str) -> set[str]:
    return {text for text, record in results.get(attack, {}).items() if succeeded(record)}
