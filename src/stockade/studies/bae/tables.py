"""The tables of the study."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stockade.studies.bae.splits import MEANINGS
from stockade.studies.tables import Table, plain_share, ranged, share, value

_SHOWN_CAPS = (0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0)


def main_table(numbers: Mapping[str, Any]) -> Table:
    columns = ("attack", "n", "attacked", "clean accuracy", "after the attack", "success rate", "similarity")
    rows = [
        (
            attack,
            f"{found['n']:,}" + (f" (+{found['errors']:,} errors)" if found["errors"] else ""),
            f"{found['attacked']:,}",
            share(found["clean_accuracy"]),
            share(found["robust_accuracy"]),
            share(found["success_rate"]),
            value(found["mean_similarity"], 3),
            value(found["mean_perturbed_percent"], 1, " %"),
            value(found["mean_queries"]),
        )
        for attack, found in numbers["attacks"].items()
    ]
    return Table((*columns, "changed words", "queries"), tuple(rows))


def split_table(numbers: Mapping[str, Any]) -> Table:
    rows = [
        (f"{split}: {MEANINGS[split]}", f"{found['count']:,}", share(found["share"]))
        for split, found in numbers["splits"]["splits"].items()
    ]
    return Table(("split", "texts", "of those attacked"), tuple(rows))


def curve_table(numbers: Mapping[str, Any]) -> Table:
    """Some caps of the curve, and the accuracy without any."""
    caps = numbers["curve"]["caps"]
    chosen = [caps.index(cap) for cap in _SHOWN_CAPS]
    rows = [
        (
            attack,
            *(plain_share(curve[at]) for at in chosen),
            plain_share(numbers["attacks"][attack]["robust_accuracy"]),
        )
        for attack, curve in numbers["curve"]["attacks"].items()
    ]
    return Table(("at most", *(f"{100 * caps[at]:.0f} %" for at in chosen), "no cap"), tuple(rows))


def antonym_table(numbers: Mapping[str, Any]) -> Table:
    rows = [
        (
            attack,
            f"{found['successes']:,}",
            f"{found['direct']['count']:,}",
            share(found["direct"]["share"]),
            f"{found['with_indirect']['count']:,}",
            share(found["with_indirect"]["share"]),
        )
        for attack, found in numbers["antonyms"].items()
    ]
    columns = ("attack", "successes", "with an antonym", "share", "indirect ones too", "share")
    return Table(columns, tuple(rows))


def fluency_table(numbers: Mapping[str, Any]) -> Table | None:
    """None when fluency was not asked for."""
    if numbers["fluency"] is None:
        return None
    rows = [
        (
            attack,
            f"{found['measured']:,}",
            value(found["median_original"]),
            value(found["median_adversarial"]),
            value(found["median_ratio"], 2, "×"),
            ranged(found["mean_ratio"], 2, "×"),
        )
        for attack, found in numbers["fluency"]["attacks"].items()
    ]
    columns = ("attack", "successes", "median before", "median after", "median ratio", "mean ratio")
    return Table(columns, tuple(rows))
