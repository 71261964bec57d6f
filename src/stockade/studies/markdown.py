"""A study as Markdown, for pull requests and wikis."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stockade.studies import tables
from stockade.studies.headline import headline
from stockade.studies.tables import Table


def render_markdown(numbers: Mapping[str, Any]) -> str:
    """The tables of the page, with the curve as a table."""
    scale, masked_lm = numbers["similarity_scale"] or "not measured", numbers["masked_lm"]
    lines = [
        f"# The study {numbers['study']}: {numbers['run']}",
        "",
        f"Model `{numbers['model']}`, data `{numbers['data']}`, {numbers['examples']:,} texts, seed {numbers['seed']}. "
        f"Masked LM: {masked_lm}. Similarity: {scale}. Intervals are 95 %.",
        "",
    ]
    lines += [f"> **Warning:** {warning}\n" for warning in numbers["warnings"]]
    lines += [f"- {sentence}" for sentence in headline(numbers)]
    lines += _section("The attacks", tables.main_table(numbers))
    lines += _section("What the paper says", _orders(numbers))
    title = f"Replacing and inserting (Table 5), {numbers['splits']['attacked']:,} attacked texts"
    lines += _section(title, tables.split_table(numbers))
    lines += _section(
        "Accuracy after the attack with at most so many words changed (Figure 2)", tables.curve_table(numbers)
    )
    lines += _section("Successes with an antonym", tables.antonym_table(numbers))
    fluency = tables.fluency_table(numbers)
    if fluency is not None:
        lines += _section(f"Pseudo-perplexity of the successes ({masked_lm})", fluency)
    return "\n".join(lines) + "\n"


def _orders(numbers: Mapping[str, Any]) -> Table:
    rows = [(order["claim"], order["verdict"], order["numbers"]) for order in numbers["orders"]]
    return Table(("order", "here", "numbers"), tuple(rows))


def _section(title: str, table: Table) -> list[str]:
    lines = ["", f"## {title}", "", _line(table.columns), "|" + " --- |" * len(table.columns)]
    return lines + [_line(row) for row in table.rows]


def _line(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
