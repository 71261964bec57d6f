"""The numbers of an evaluation, from what the grid found."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from stockade.evaluation.cells import Failure
from stockade.evaluation.chains import NONE
from stockade.evaluation.grid import Row
from stockade.evaluation.measures import macro_f1, measure, paired, share_over_seeds
from stockade.evaluation.outcomes import cell_fates, counts, is_complete, row_fates
from stockade.evaluation.plan import Plan
from stockade.evaluation.warnings import row_warnings
from stockade.evaluation.ways import DIRECT

SCHEMA = 1
WORST = "worst case"
Numbers = dict[str, Any]


def analyse(name: str, plan: Plan, rows: Sequence[Row], failures: Sequence[Failure]) -> Numbers:
    """What `evaluation.json` holds."""
    attacks, request = list(plan.attacks), plan.request
    seeds = list(range(request["seed"], request["seed"] + request["seeds"]))
    bare = {row.model: row for row in rows if row.defense == NONE}
    told, warnings = [], []
    for row in rows:
        numbers = _row(row, bare[row.model], attacks, seeds)
        if row.answers:
            numbers["warnings"] = row_warnings(numbers, plan.data["size"], plan.models[row.model]["labels"])
        warnings += numbers["warnings"]
        told.append(numbers)
    return {
        "schema": SCHEMA,
        "evaluation": name,
        "created": plan.created,
        "models": dict(plan.models),
        "data": {key: value for key, value in plan.data.items() if key != "ids"},
        "defenses": list(plan.defenses),
        "attacks": attacks,
        "premade": dict(plan.premade),
        "seeds": seeds,
        "expectation": request["expectation"],
        "budget": request["budget"],
        "max_changed": request["max_changed"],
        "constraint": request["constraint"],
        "rows": told,
        "failures": [dataclasses.asdict(failure) for failure in failures],
        "warnings": warnings,
    }


def _row(row: Row, bare: Row, attacks: Sequence[str], seeds: Sequence[int]) -> Numbers:
    if not row.answers:
        return {"model": row.model, "defense": row.defense, "made": False, "remarks": [], "warnings": []}
    first = row.answers[seeds[0]]
    numbers: Numbers = {
        "model": row.model,
        "defense": row.defense,
        "made": True,
        "deterministic": first["deterministic"],
        "ways": list(row.ways),
        "clean": {
            "accuracy": share_over_seeds({seed: _right(row.answers[seed]["clean"]) for seed in seeds}),
            "macro_f1": measure({seed: _f1(row.answers[seed]["clean"]) for seed in seeds}),
        },
        "premade": {
            name: share_over_seeds({seed: _right(row.answers[seed]["premade"][name]) for seed in seeds})
            for name in first["premade"]
        },
        "votes": _votes([row.answers[seed]["votes"] for seed in seeds]),
        "attacks": {attack: _attack(row, attack, seeds) for attack in attacks},
        "worst": _worst(row, attacks, seeds),
        "mcnemar": None,
        "remarks": first.get("remarks", []),
        "warnings": [],
    }
    if row is not bare and bare.answers:
        numbers["mcnemar"] = {attack: _test(row, bare, [attack], seeds) for attack in attacks}
        numbers["mcnemar"][WORST] = _test(row, bare, attacks, seeds)
    return numbers


def _attack(row: Row, attack: str, seeds: Sequence[int]) -> Numbers:
    """The worst of all ways of an attack by text, and each way by itself."""
    return {
        **_worst(row, [attack], seeds),
        "undecided": max((_undecided(row, attack, seed) for seed in seeds), default=0),
        "ways": {way: _way(row, attack, way, seeds) for way in row.ways},
    }


def _undecided(row: Row, attack: str, seed: int) -> int:
    """How many texts are robust under an attack although something that it found fools the model now and then."""
    found = row_fates(row, seed, [attack]) or {}
    cells = [row.cells[attack, way, seed] for way in row.ways if (attack, way, seed) in row.cells]
    return sum(fate == "robust" and any(text in cell.undecided for cell in cells) for text, fate in found.items())


def _way(row: Row, attack: str, way: str, seeds: Sequence[int]) -> Numbers:
    cells = {seed: row.cells[attack, way, seed] for seed in seeds if (attack, way, seed) in row.cells}
    queries = [cell.mean_queries for cell in cells.values() if cell.mean_queries is not None]
    return {
        **_shares({seed: counts(cell_fates(cell.statuses)) for seed, cell in cells.items()}),
        "mean_queries": round(fmean(queries), 6) if queries else None,
        "against_direct": _against_direct(row, attack, way, seeds),
        "complete": len(cells) == len(seeds),
    }


def _against_direct(row: Row, attack: str, way: str, seeds: Sequence[int]) -> Numbers | None:
    """Whether a way fools other texts than the direct one: gained are those that only the direct way fools."""
    if way == DIRECT:
        return None
    found = [
        (cell_fates(row.cells[attack, way, seed].statuses), cell_fates(direct.statuses))
        for seed in seeds
        if (attack, way, seed) in row.cells and (direct := row.cells.get((attack, DIRECT, seed))) is not None
    ]
    return paired(found) if found else None


def _worst(row: Row, attacks: Sequence[str], seeds: Sequence[int]) -> Numbers:
    by_seed = {seed: row_fates(row, seed, attacks) for seed in seeds}
    counted = {seed: counts(found) for seed, found in by_seed.items() if found is not None}
    return {**_shares(counted), "complete": is_complete(row, seeds, attacks)}


def _shares(counted: Mapping[int, Mapping[str, int]]) -> Numbers:
    clean = share_over_seeds({seed: (one["attacked"], one["n"]) for seed, one in counted.items()})
    robust = share_over_seeds({seed: (one["robust"], one["n"]) for seed, one in counted.items()})
    success = share_over_seeds({seed: (one["fooled"], one["attacked"]) for seed, one in counted.items()})
    return {
        "clean_accuracy": clean,
        "robust_accuracy": robust,
        "success_rate": {**success, "value": _success_of_all(counted)},
        "n": {str(seed): one["n"] for seed, one in counted.items()},
        "unknown": max((one["unknown"] for one in counted.values()), default=0),
    }


def _success_of_all(counted: Mapping[int, Mapping[str, int]]) -> float | None:
    """Over the texts of all seeds, not the mean of the seeds' shares: a reader must find 1 - robust / clean."""
    attacked = sum(one["attacked"] for one in counted.values())
    return sum(one["fooled"] for one in counted.values()) / attacked if attacked else None


def _test(row: Row, bare: Row, attacks: Sequence[str], seeds: Sequence[int]) -> Numbers | None:
    """The defense against none, under those of the attacks that both have met in full; None if there is none."""
    met = [one for one in attacks if is_complete(row, seeds, [one]) and is_complete(bare, seeds, [one])]
    found = []
    for seed in seeds:
        one, other = row_fates(row, seed, met), row_fates(bare, seed, met)
        if one is None or other is None:
            return None
        found.append((one, other))
    return {**paired(found), "attacks": met}


def _right(answers: Mapping[str, Any]) -> tuple[int, int]:
    pairs = [
        (label, answer)
        for label, answer in zip(answers["labels"], answers["predicted"], strict=True)
        if answer is not None
    ]
    return sum(label == answer for label, answer in pairs), len(pairs)


def _f1(answers: Mapping[str, Any]) -> dict[str, float | None]:
    return {"value": macro_f1(answers["labels"], answers["predicted"]), "low": None, "high": None}


def _votes(by_seed: Sequence[Mapping[str, float | None] | None]) -> Numbers | None:
    """Means over seeds; None for a model that does not vote."""
    found = [one for one in by_seed if one is not None]
    if not found:
        return None
    means: Numbers = {}
    for name in found[0]:
        values = [value for one in found if (value := one[name]) is not None]
        means[name] = fmean(values) if values else None
    return means
