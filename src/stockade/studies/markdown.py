"""The frame of a study's Markdown, for pull requests and wikis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stockade.studies.tables import Table


def beginning(numbers: Mapping[str, Any], about: str, headline: Sequence[str]) -> list[str]:
    """Title, what was studied, warnings, and the study in a few sentences."""
    lines = [f"# The study {numbers['study']}: {numbers['run']}", "", about, ""]
    lines += [f"> **Warning:** {warning}\n" for warning in numbers["warnings"]]
    return lines + [f"- {sentence}" for sentence in headline]


def section(title: str, table: Table) -> list[str]:
    lines = ["", f"## {title}", "", _line(table.columns), "|" + " --- |" * len(table.columns)]
    return lines + [_line(row) for row in table.rows]


def _line(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
