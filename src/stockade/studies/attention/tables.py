"""The tables of the study."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stockade.studies.attention.victims import ATTACKS, RANDOM
from stockade.studies.tables import NOT_KNOWN, Table, plain_share, ranged, share, value

Numbers = Mapping[str, Any]


def success_table(numbers: Numbers) -> Table:
    """Like the paper's: a row for each attack, a column for each model."""
    models = numbers["models"]
    rows = []
    for attack in ATTACKS:
        title = f"{attack}, share of draws" if attack == RANDOM else attack
        rows.append((title, *(_rate(model, attack) for model in models.values())))
        if attack == "asmax-ec":
            rows.append(("A*, the best of the four", *(_star(model, "best") for model in models.values())))
            rows.append(("any of the four, by text", *(_star(model, "union") for model in models.values())))
    return Table(("attack", *models), tuple(rows))


def model_table(numbers: Numbers) -> Table:
    rows = [
        (name, model["reference"], model["kind"], share(model["accuracy"]), _queries(model))
        for name, model in numbers["models"].items()
    ]
    return Table(("model", "reference", "kind", "accuracy", "queries of gs-ec"), tuple(rows))


def missing_reasons(numbers: Numbers) -> list[str]:
    """Why a model has no number in a row: one sentence for each reason."""
    told = []
    for name, model in numbers["models"].items():
        reasons: dict[str, list[str]] = {}
        for attack, reason in model["missing"].items():
            reasons.setdefault(reason, []).append(attack)
        told += [f"{name}, {', '.join(attacks)}: n/a, {reason}." for reason, attacks in reasons.items()]
    return told


def attention_table(numbers: Numbers) -> Table:
    rows = []
    for name, model in numbers["models"].items():
        found = model["attention"]
        if found is None:
            rows.append((name, NOT_KNOWN, NOT_KNOWN, NOT_KNOWN, NOT_KNOWN, NOT_KNOWN))
            continue
        parts = (ranged(found["others"], 4), ranged(found["relative"], 3), ranged(found["replaced"], 3))
        rows.append((name, f"{found['texts']:,}", *parts, ranged(found["moved"], 3)))
    columns = ("model", "texts", "change of another word", "relative to its attention", "of the replaced word")
    return Table((*columns, "attention moved"), tuple(rows))


def embedding_table(numbers: Numbers) -> Table:
    """R_e, with what the last layer does at the replaced word and far from it."""
    rows = []
    for name, model in numbers["models"].items():
        change, relative = model["embedding_change"], model["relative_embedding_change"]
        near, far = _near_and_far(change)
        rows.append((name, f"{relative['texts']:,}", ranged(relative["mean"], 3), value(near, 3), value(far, 3)))
    columns = ("model", "texts", "R_e", "last layer, replaced word", "last layer, 5 to 10 words away")
    return Table(columns, tuple(rows))


def theorem_table(numbers: Numbers, name: str) -> Table | None:
    """A model's heads by layer, as ratios to the bound; None for a model without self-attention."""
    theorem = numbers["models"][name]["theorem"]
    if theorem is None:
        return None
    rows = []
    for layer in dict.fromkeys(head["layer"] for head in theorem["heads"]):
        heads = [head for head in theorem["heads"] if head["layer"] == layer]
        tails = [max(head["uniform"]["worst"]["tails"][at] or 0.0 for head in heads) for at in (0, 1)]
        real = [head["real"]["worst"]["ratio"] or 0.0 for head in heads if head["real"]]
        rows.append(
            (
                str(layer),
                f"{len(heads)}",
                _span([head["uniform"]["worst"]["ratio"] for head in heads]),
                _span([head["uniform"]["random"]["ratio"] for head in heads], 3),
                *(f"{tail:.3f}" for tail in tails),
                _span([head["real"]["worst"]["ratio"] for head in heads if head["real"]]),
                _span([head["real"]["random"]["ratio"] for head in heads if head["real"]], 3),
                f"{sum(ratio > 1 for ratio in real)}" if real else NOT_KNOWN,
            )
        )
    columns = ("layer", "heads", "uniform, worst Δ", "uniform, random Δ", "P at ε = 2 bounds", "P at ε = 4 bounds")
    return Table((*columns, "real, worst Δ", "real, random Δ", "heads above 1"), tuple(rows))


def rating_table(comparison: Numbers) -> Table:
    rows = [
        (method, f"{found['votes']:,}", ranged(found["readability"], 2), _percent_range(found["accuracy"]))
        for method, found in comparison["methods"].items()
    ]
    return Table(("method", "preferred", "readability", "human accuracy"), tuple(rows))


def shown_tables(numbers: Numbers) -> list[tuple[str, Table]]:
    """What the terminal shows."""
    texts = numbers["texts"]["chosen"]
    shown = [
        (f"Success of the attacks, {texts:,} texts that all models get right:", success_table(numbers)),
        ("Attention, before and after gs-ec:", attention_table(numbers)),
        ("Embeddings, before and after gs-ec:", embedding_table(numbers)),
    ]
    for comparison in (numbers["ratings"] or {"comparisons": []})["comparisons"]:
        shown.append((f"Human raters, {comparison['texts']:,} texts:", rating_table(comparison)))
    return shown


def _rate(model: Numbers, attack: str) -> str:
    found = model["attacks"].get(attack)
    return NOT_KNOWN if found is None else share(found["rate"])


def _star(model: Numbers, which: str) -> str:
    star = model["a_star"]
    if star is None:
        return NOT_KNOWN
    return f"{share(star['rate'])}, {star['attack']}" if which == "best" else share(star["union"]["rate"])


def _queries(model: Numbers) -> str:
    found = model["attacks"].get("gs-ec")
    return NOT_KNOWN if found is None else value(found["mean_queries"])


def _near_and_far(change: Numbers | None) -> tuple[float | None, float | None]:
    if change is None:
        return None, None
    last = dict(zip(change["distances"], change["layers"][-1], strict=True))
    far = [found for distance, found in last.items() if abs(distance) >= 5 and found is not None]
    return last[0], sum(far) / len(far) if far else None


def _span(values: list[float | None], digits: int = 2) -> str:
    known = [found for found in values if found is not None]
    if not known:
        return NOT_KNOWN
    return f"{min(known):.{digits}f}–{max(known):.{digits}f}"


def _percent_range(interval: Numbers) -> str:
    return share(interval) if interval["low"] is not None else plain_share(interval)
