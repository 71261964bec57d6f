"""The tables of an evaluation, for its page, its Markdown and the terminal alike."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from stockade.evaluation.analysis import WORST
from stockade.evaluation.measures import Measure, told_p
from stockade.evaluation.ways import WAYS
from stockade.studies.tables import NOT_KNOWN, Table

Numbers = Mapping[str, Any]


def main_table(numbers: Numbers) -> Table:
    """Like the papers': a row for each model and defense. An attack's numbers are its worst over all ways, by text.

    The worst case of all comes first: it must be in sight however many attacks there are.
    """
    attacks, premade = numbers["attacks"], numbers["premade"]
    columns = ["model", "defense", "clean accuracy", WORST, "macro F1", *(f"pre-made {name}" for name in premade)]
    for attack in attacks:
        columns += [f"{attack}, robust", f"{attack}, success"]
    rows = []
    for row in numbers["rows"]:
        if not row["made"]:
            rows.append((row["model"], row["defense"], *[NOT_KNOWN] * (len(columns) - 2)))
            continue
        worst = bounded(row["worst"], "robust_accuracy", "≤ ")
        cells = [share(row["clean"]["accuracy"]), worst, share(row["clean"]["macro_f1"])]
        cells += [share(row["premade"][name]) for name in premade]
        for attack in attacks:
            found = row["attacks"][attack]
            cells += [bounded(found, "robust_accuracy", "≤ "), bounded(found, "success_rate", "≥ ")]
        rows.append((row["model"], row["defense"], *cells))
    return Table(tuple(columns), tuple(rows))


def way_table(numbers: Numbers) -> Table:
    """Robust accuracy by the way an attack looks at the model."""
    ways = [way for way in WAYS if any(way in row["ways"] for row in _made(numbers))]
    rows = []
    for row in _made(numbers):
        for attack, found in row["attacks"].items():
            cells = [_way(found["ways"].get(way)) for way in ways]
            queries = [one["mean_queries"] for one in found["ways"].values() if one["mean_queries"] is not None]
            told = f"{sum(queries) / len(queries):,.1f}" if queries else NOT_KNOWN
            rows.append((row["model"], row["defense"], attack, *cells, told))
    return Table(("model", "defense", "attack", *ways, "queries"), tuple(rows))


def test_table(numbers: Numbers) -> Table | None:
    """Each defense against none, on the same texts; None if there is no defense."""
    rows = [
        (row["model"], row["defense"], *(_test(row["mcnemar"][name]) for name in (*numbers["attacks"], WORST)))
        for row in _made(numbers)
        if row["mcnemar"] is not None
    ]
    return Table(("model", "defense", *numbers["attacks"], WORST), tuple(rows)) if rows else None


def vote_table(numbers: Numbers) -> Table | None:
    """How much the votes of voting defenses tell a search; None if none votes."""
    rows = [
        (
            row["model"],
            row["defense"],
            NOT_KNOWN if row["votes"]["entropy"] is None else f"{row['votes']['entropy']:.3f}",
            _plain(row["votes"]["unanimous"]),
            _plain(row["votes"]["same_answer"]),
        )
        for row in _made(numbers)
        if row["votes"] is not None
    ]
    columns = ("model", "defense", "mean entropy", "unanimous", "same answer with a word less")
    return Table(columns, tuple(rows)) if rows else None


def seed_table(numbers: Numbers) -> Table | None:
    """The worst case of each seed with its Wilson interval, and of all; None for a single seed."""
    seeds = numbers["seeds"]
    if len(seeds) < 2:
        return None
    rows = []
    for row in _made(numbers):
        robust = row["worst"]["robust_accuracy"]
        cells = [share(robust["by_seed"][str(seed)]) if str(seed) in robust["by_seed"] else NOT_KNOWN for seed in seeds]
        over = robust["over_seeds"]
        rows.append((row["model"], row["defense"], *cells, NOT_KNOWN if over is None else share(over)))
    return Table(("model", "defense", *(f"seed {seed}" for seed in seeds), "mean, t-interval"), tuple(rows))


def failure_sentences(numbers: Numbers) -> list[str]:
    """What has no number and why: one sentence for each reason."""
    places: dict[tuple[str, str, str], dict[str, list[str]]] = {}
    for one in numbers["failures"]:
        by_attack = places.setdefault((one["model"], one["defense"], one["reason"]), {})
        ways = by_attack.setdefault(one["attack"] or "everything", [])
        if one["way"] and one["way"] not in ways:
            ways.append(one["way"])
    told = []
    for (model, defense, reason), by_attack in places.items():
        found = [f"{attack} ({', '.join(ways)})" if ways else attack for attack, ways in by_attack.items()]
        told.append(f"{model}, {defense}, {', '.join(found)}: {reason.rstrip('.')}.")
    return told


def share(found: Measure) -> str:
    """A share in percent with its 95 % Wilson interval (around those of all seeds) and, if there are several seeds, the
    t-interval over them.
    """
    if found["value"] is None:
        return NOT_KNOWN
    told = f"{100 * found['value']:.1f} %"
    over = found.get("over_seeds")
    inside = []
    if found["low"] is not None and found["high"] is not None:
        inside.append(f"{100 * found['low']:.1f}–{100 * found['high']:.1f}")
    if over is not None:
        inside.append(f"t-interval {100 * over['low']:.0f}–{100 * over['high']:.0f}")
    return f"{told} ({', '.join(inside)})" if inside else told


def without_intervals(table: Table) -> Table:
    """The same with the shares alone, for screens that have no room for more."""
    return Table(table.columns, tuple(tuple(cell.partition(" (")[0] for cell in row) for row in table.rows))


def bounded(found: Numbers, name: str, sign: str) -> str:
    """A share that is only a bound where a cell is missing: what was not attacked was not survived."""
    told = share(found[name])
    return told if found["complete"] or told == NOT_KNOWN else f"{sign}{told}"


def _way(found: Numbers | None) -> str:
    return "–" if found is None else share(found["robust_accuracy"])


def _test(found: Numbers | None) -> str:
    if found is None:
        return NOT_KNOWN
    return f"+{found['gained']} −{found['lost']}, {told_p(found['p'])}"


def _plain(value: float | None) -> str:
    return NOT_KNOWN if value is None else f"{100 * value:.1f} %"


def _made(numbers: Numbers) -> Iterator[Numbers]:
    return (row for row in numbers["rows"] if row["made"])
