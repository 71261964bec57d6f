"""The evaluation as Markdown: the tables of the page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stockade.evaluation import tables
from stockade.evaluation.about import about, headline, remarks
from stockade.studies.markdown import section


def render_markdown(numbers: Mapping[str, Any]) -> str:
    lines = [f"# Evaluation {numbers['evaluation']}", "", f"{about(numbers)} Intervals are 95 %.", ""]
    lines += [f"> **Warning:** {warning}\n" for warning in numbers["warnings"]]
    lines += [f"- {sentence}" for sentence in [*headline(numbers), *remarks(numbers)]]
    lines += section("Accuracy, clean and under attack", tables.main_table(numbers))
    failures = tables.failure_sentences(numbers)
    if failures:
        lines += ["", "Not measured:", "", *(f"- {sentence}" for sentence in failures)]
    lines += section("Robust accuracy by the way an attack looks at the model", tables.way_table(numbers))
    for title, table in (
        ("Each defense against none (McNemar)", tables.test_table(numbers)),
        ("Votes", tables.vote_table(numbers)),
        ("The worst case by seed", tables.seed_table(numbers)),
    ):
        if table is not None:
            lines += section(title, table)
    return "\n".join(lines) + "\n"
