"""Sheets for human raters: adversarial texts side by side, without a word about which model or attack made them.

A comparison names two or more methods, each a model and an attack (`bert:gs-ec` against `lstm:gs-ec`). Every text on
which all of them succeed, and not with the same words, is a group of rows, one per method. The rater marks the most
readable row of each group and gives every row a label. Groups, rows and their ids are in an order that says nothing;
the key says what is what.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from stockade.core.errors import OptionError, RunError, unknown_name
from stockade.core.files import write_json
from stockade.core.records import Record
from stockade.runs.run import Run
from stockade.studies.attention.plan import Plan
from stockade.studies.attention.victims import GREEDY, GREEDY_EC, LIST
from stockade.studies.results import read_results, succeeded

KEY_NAME = "rating-key.json"
COLUMNS = ("group", "id", "text", "preferred", "label")
PREMISE = "premise"
SCHEMA = 1
_LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"
"""Without those that are taken for one another."""


@dataclass(frozen=True, slots=True)
class Method:
    """A model under an attack."""

    model: str
    attack: str

    def __str__(self) -> str:
        return f"{self.model}:{self.attack}"


Comparison = tuple[Method, ...]


def check_sheet(path: Path, plan: Plan, compare: Sequence[str]) -> list[Comparison]:
    """What the sheet will compare; refused before anything is attacked if it cannot be made."""
    for taken in (path, _key_path(path)):
        if taken.exists():
            raise RunError(f"{taken} exists already and may be filled in. Choose another --rating-sheet.")
    comparisons = [parse_comparison(text, plan) for text in compare] or default_comparisons(plan)
    if not comparisons:
        raise RunError("There is nothing to compare: no model of the study allows gs-gr and gs-ec. Use --compare.")
    return comparisons


def write_sheet(
    path: Path, folder: Path, plan: Plan, runs: Mapping[str, Run], comparisons: Sequence[Comparison]
) -> Path:
    """Write the sheet, its key beside it, and a copy of the key into the study's folder; the path of the key."""
    key_path = _key_path(path)
    rng = Random(f"rating sheet {plan.settings.seed} {plan.created}")
    first = next(iter(runs.values()))
    gold = {record.id: record.label for record in first.records(LIST)}  # models may call the same class differently
    groups = [group for one in comparisons for group in _groups(one, runs, gold, rng)]
    if not groups:
        told = "; ".join(" against ".join(map(str, one)) for one in comparisons)
        raise RunError(
            f"No text is fooled in different ways by the methods of a comparison ({told}): there is nothing to rate."
        )
    rng.shuffle(groups)
    key = {
        "schema": SCHEMA,
        "study": folder.name,
        "created": plan.created,
        "labels": list(first.labels),
        "comparisons": [[str(method) for method in one] for one in comparisons],
        "items": {item["id"]: item for group in groups for item in group},
    }
    try:
        _write_rows(path, groups)
    except OSError as error:
        raise RunError(
            f"{path} cannot be written ({error.strerror or error}). Choose another --rating-sheet."
        ) from None
    write_json(key_path, key)
    write_json(folder / KEY_NAME, key)
    return key_path


def _key_path(path: Path) -> Path:
    return path.with_name(f"{path.stem}.key.json")


def default_comparisons(plan: Plan) -> list[Comparison]:
    """The paper's two: gs-ec on a self-attentive and a recurrent model (or the first two), gs-gr and gs-ec on one."""
    able = [victim for victim in plan.victims if not {GREEDY, GREEDY_EC} & victim.missing.keys()]
    if not able:
        return []
    attentive = next((victim for victim in able if victim.kind == "self-attentive"), able[0])
    others = [victim for victim in able if victim is not attentive]
    rival = next((victim for victim in others if victim.kind == "recurrent"), others[0] if others else None)
    within = (Method(attentive.name, GREEDY), Method(attentive.name, GREEDY_EC))
    if rival is None:
        return [within]
    return [(Method(rival.name, GREEDY_EC), Method(attentive.name, GREEDY_EC)), within]


def parse_comparison(text: str, plan: Plan) -> Comparison:
    """`MODEL:ATTACK,MODEL:ATTACK` of this study."""
    attacks = {victim.name: victim.attacks for victim in plan.victims}
    methods = []
    for part in filter(None, text.split(",")):
        model, colon, attack = part.strip().rpartition(":")
        if not colon:
            raise OptionError(f"--compare {text} is not of the form MODEL:ATTACK,MODEL:ATTACK.")
        if model not in attacks:
            raise unknown_name("model in this study", model, attacks)
        if attack not in attacks[model]:
            raise unknown_name(f"attack on {model} in this study", attack, attacks[model])
        methods.append(Method(model, attack))
    if len(set(methods)) < max(2, len(methods)):
        raise OptionError(
            f"--compare {text} names fewer than two different methods, expected MODEL:ATTACK,MODEL:ATTACK."
        )
    return tuple(methods)


def _groups(
    comparison: Comparison, runs: Mapping[str, Run], gold: Mapping[str, str], rng: Random
) -> list[list[dict[str, Any]]]:
    results = {method: read_results(runs[method.model], [method.attack])[method.attack] for method in comparison}
    first = results[comparison[0]]
    texts = [text for text in first if all(succeeded(records.get(text)) for records in results.values())]
    groups = []
    for text in texts:
        if len({records[text].adversarial for records in results.values()}) == 1:
            continue  # nobody can prefer one of two equal texts
        name = _code(rng)
        group = [_item(name, comparison, method, results[method][text], gold[text], rng) for method in comparison]
        rng.shuffle(group)
        groups.append(group)
    return groups


def _item(group: str, comparison: Comparison, method: Method, record: Record, gold: str, rng: Random) -> dict[str, Any]:
    return {
        "id": _code(rng),
        "group": group,
        "comparison": [str(one) for one in comparison],
        "method": str(method),
        "text": record.id,
        "gold": gold,
        "shown": record.adversarial,
        "premise": record.premise,
    }


def _code(rng: Random) -> str:
    return "".join(rng.choices(_LETTERS, k=8))


def _write_rows(path: Path, groups: Sequence[Sequence[Mapping[str, Any]]]) -> None:
    paired = any(item["premise"] is not None for group in groups for item in group)
    columns = (*COLUMNS[:2], PREMISE, *COLUMNS[2:]) if paired else COLUMNS
    with path.open("w", encoding="utf-8", errors="replace", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(columns)
        for group in groups:
            for item in group:
                shown = {**item, "text": item["shown"], "preferred": "", "label": ""}
                writer.writerow([shown[column] for column in columns])


def read_key(folder: Path) -> dict[str, Any]:
    path = folder / KEY_NAME
    try:
        key = json.loads(path.read_text(encoding="utf-8"))
        if key["schema"] == SCHEMA and key["items"]:
            return dict(key)
    except FileNotFoundError:
        raise RunError(
            f"{folder} has no {KEY_NAME}, so no sheet was made from it. Make one with: "
            f"stockade study attention --resume --out {folder} --rating-sheet sheet.csv"
        ) from None
    except (OSError, ValueError, KeyError, TypeError):
        pass
    raise RunError(f"{path} cannot be read. Restore it from the .key.json beside the sheet.")
