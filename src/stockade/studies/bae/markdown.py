"""The study as Markdown: the tables of the page, with the curve as a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stockade.studies.bae import tables
from stockade.studies.bae.headline import headline
from stockade.studies.markdown import beginning, section
from stockade.studies.tables import order_table


def render_markdown(numbers: Mapping[str, Any]) -> str:
    scale, masked_lm = numbers["similarity_scale"] or "not measured", numbers["masked_lm"]
    about = (
        f"Model `{numbers['model']}`, data `{numbers['data']}`, {numbers['examples']:,} texts, seed {numbers['seed']}. "
        f"Masked LM: {masked_lm}. Similarity: {scale}. Intervals are 95 %."
    )
    lines = beginning(numbers, about, headline(numbers))
    lines += section("The attacks", tables.main_table(numbers))
    lines += section("What the paper says", order_table(numbers))
    title = f"Replacing and inserting (Table 5), {numbers['splits']['attacked']:,} attacked texts"
    lines += section(title, tables.split_table(numbers))
    lines += section(
        "Accuracy after the attack with at most so many words changed (Figure 2)", tables.curve_table(numbers)
    )
    lines += section("Successes with an antonym", tables.antonym_table(numbers))
    fluency = tables.fluency_table(numbers)
    if fluency is not None:
        lines += section(f"Pseudo-perplexity of the successes ({masked_lm})", fluency)
    return "\n".join(lines) + "\n"
