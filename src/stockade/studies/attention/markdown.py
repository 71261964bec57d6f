"""The study as Markdown: the tables of the page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stockade.studies.attention import tables
from stockade.studies.attention.headline import headline
from stockade.studies.attention.published import OTHERS, published_table
from stockade.studies.markdown import beginning, section
from stockade.studies.tables import order_table


def render_markdown(numbers: Mapping[str, Any]) -> str:
    texts = numbers["texts"]
    about = (
        f"Data `{numbers['data']}`, seed {numbers['seed']}. {texts['chosen']:,} texts that all models get right, the "
        f"first in seeded order of {texts['looked_at']:,} looked at (of {texts['total']:,}). One word is replaced in "
        "each. Intervals are 95 %."
    )
    lines = beginning(numbers, about, headline(numbers))
    lines += section("The models", tables.model_table(numbers))
    lines += section("How often a model is fooled (Table 1)", tables.success_table(numbers))
    lines += ["", *(f"- {reason}" for reason in tables.missing_reasons(numbers))]
    lines += section("What the paper says", order_table(numbers))
    lines += section("Attention before and after gs-ec", tables.attention_table(numbers))
    lines += section("Embeddings before and after gs-ec", tables.embedding_table(numbers))
    for name in numbers["models"]:
        table = tables.theorem_table(numbers, name)
        if table is not None:
            lines += section(f"Theorem 1 on {name}: E|s′ − s| / bound, lowest and highest head", table)
    for comparison in (numbers["ratings"] or {"comparisons": ()})["comparisons"]:
        lines += section(f"Human raters, {comparison['texts']:,} texts", tables.rating_table(comparison))
    lines += section("The paper's numbers", published_table())
    return "\n".join([*lines, "", OTHERS]) + "\n"
