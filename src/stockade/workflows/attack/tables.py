"""The tables of attacks: one row per run and attack, and what became of each class.

Where a run is of a randomised model, robust accuracy and success rate stand there twice: for what fools it repeatedly,
and for what fools it once. On a model that always answers alike the two are the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stockade.report.document import Table
from stockade.report.numbers import NOT_AVAILABLE, number, percent
from stockade.workflows.attack.result import AttackResult
from stockade.workflows.attack.summary import mostly_untried

_ROBUST, _SUCCESS = "robust accuracy", "success rate"
_REPEATABLE, _FIRST_FLIP = "repeatable", "first flip"
_FIELDS = {_ROBUST: "robust_accuracy", _SUCCESS: "success_rate"}
TWO_RULES = (
    "Repeatable: the text found fools the model in at least half of its answers. First flip: one wrong answer is "
    "enough, as papers count."
)


def has_first_flips(result: AttackResult) -> bool:
    """Whether a run says what fooled its model once: a run of a randomised model."""
    return any("first_flip_success_rate" in numbers for numbers in result.summary["attacks"].values())


def summary_table(results: Sequence[AttackResult], names: Sequence[str] | None = None, caption: str = "") -> Table:
    """One row per run and attack; `names` are what the runs are called, if there are several."""
    several = len(results) > 1
    two_rules = any(map(has_first_flips, results))
    rows = [
        (*([label] if several else []), *_cells(attack, numbers, result, two_rules))
        for label, result in zip(names or [result.name for result in results], results, strict=True)
        for attack, numbers in result.summary["attacks"].items()
    ]
    shares = _share_columns(two_rules)
    columns = (
        *(["run"] if several else []),
        *("attack", "n", "clean accuracy"),
        *shares,
        *("queries", "changed words", "similarity", "seconds"),
    )
    numeric = range(1 + several, len(columns))
    text = f"{caption} {TWO_RULES}".strip() if two_rules else caption
    return Table(columns, tuple(rows), caption=text, numeric=numeric, grouped=1 if several else 0)


def variant_of(numbers: Mapping[str, Any]) -> str:
    """Which search it was, if it is not the published one."""
    return " (decision-based)" if numbers.get("decision_based") else ""


def _share_columns(two_rules: bool) -> list[str]:
    if not two_rules:
        return [_ROBUST, _SUCCESS]
    return [f"{share}, {rule}" for share in ("robust", "success") for rule in (_REPEATABLE, _FIRST_FLIP)]


def _shares(numbers: Mapping[str, Any], result: AttackResult, two_rules: bool) -> list[str]:
    """Robust accuracy and success rate, each by both rules if the table has them."""
    cells = []
    for field in _FIELDS.values():
        cells.append(percent(numbers[field]))
        if not two_rules:
            continue
        first_flip = numbers.get(f"first_flip_{field}")
        if first_flip is None and result.manifest.inputs["model"]["deterministic"]:
            first_flip = numbers[field]
        cells.append(NOT_AVAILABLE if first_flip is None else percent(first_flip))
    return cells


def _cells(attack: str, numbers: Mapping[str, Any], result: AttackResult, two_rules: bool) -> tuple[str, ...]:
    shares = _shares(numbers, result, two_rules)
    if mostly_untried(numbers["untried"], numbers["attacked"]):
        shares[: len(shares) // 2] = ["not attacked"] * (len(shares) // 2)
    return (
        attack + variant_of(numbers),
        f"{numbers['n']:,}" + (f" (+{numbers['errors']:,} errors)" if numbers["errors"] else ""),
        percent(numbers["clean_accuracy"]),
        *shares,
        number(numbers["mean_queries"]),
        number(numbers["mean_perturbed_percent"], 1, " %"),
        number(numbers["mean_similarity"], 3),
        number(numbers["seconds"]),
    )


def class_table(result: AttackResult) -> Table:
    """What became of the texts of each class, by attack."""
    two_rules = has_first_flips(result)
    rows = [
        (
            attack,
            label,
            f"{numbers['n']:,}",
            f"{numbers['predicted']:,}",
            percent(numbers["clean_accuracy"]),
            *_shares(numbers, result, two_rules),
        )
        for attack, classes in result.summary["classes"].items()
        for label, numbers in classes.items()
    ]
    columns = ("attack", "class", "texts", "predicted", "clean accuracy", *_share_columns(two_rules))
    caption = "By true class. Predicted: how many of all unchanged texts the model gives that class."
    return Table(columns, rows, title="By class", caption=caption, numeric=range(2, len(columns)), grouped=1)
