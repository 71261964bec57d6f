"""The page of an evaluation: one HTML file that needs nothing else."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from stockade.evaluation import tables
from stockade.evaluation.about import about, headline, remarks
from stockade.evaluation.analysis import WORST
from stockade.evaluation.plots import trade_plot
from stockade.studies.html import fill_body, fill_page

_PACKAGE = "stockade.evaluation"
_MADE_WITH = ("created", "models", "data", "premade", "attacks", "defenses", "seeds", "expectation", "budget")


def render_page(numbers: Mapping[str, Any]) -> str:
    """The whole page."""
    return fill_page(_PACKAGE, _content(numbers))


def render_body(numbers: Mapping[str, Any]) -> str:
    """The page without its frame, as a notebook shows it."""
    return fill_body(_PACKAGE, _content(numbers))


def _content(numbers: Mapping[str, Any]) -> dict[str, Any]:
    made_with = {name: numbers[name] for name in (*_MADE_WITH, "max_changed", "constraint")}
    return {
        "title": f"evaluation {numbers['evaluation']}",
        "heading": f"Evaluation {numbers['evaluation']}",
        "width": 1180,
        "numbers": numbers,
        "wrong_again": any(_wrong_again(row) for row in numbers["rows"] if row["made"]),
        "about": about(numbers),
        "headline": [*headline(numbers), *remarks(numbers)],
        "main": tables.main_table(numbers),
        "worst": WORST,
        "partly": any(row["made"] and not row["worst"]["complete"] for row in numbers["rows"]),
        "failures": tables.failure_sentences(numbers),
        "ways": tables.way_table(numbers),
        "tests": tables.test_table(numbers),
        "votes": tables.vote_table(numbers),
        "seeds": tables.seed_table(numbers),
        "plot": trade_plot(numbers),
        "manifest": json.dumps(made_with, indent=2, ensure_ascii=False),
    }


def _wrong_again(row: Mapping[str, Any]) -> bool:
    """Whether an attack met another clean accuracy than the clean pass."""
    clean = row["clean"]["accuracy"]["value"]
    return any(found["clean_accuracy"]["value"] not in (None, clean) for found in row["attacks"].values())
