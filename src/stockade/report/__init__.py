"""Reports: one document model, and its renderers for HTML, Markdown, JSON and the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stockade.report.document import (
    Block,
    Bullets,
    Cell,
    Details,
    Document,
    Heading,
    Note,
    Paragraph,
    Plot,
    Prose,
    Span,
    Table,
    code,
    strong,
)
from stockade.report.examples import Bar, Example, Examples, Filter, Version, Word, Words

if TYPE_CHECKING:
    from stockade.report.html import render_fragment
    from stockade.report.write import write_report

__all__ = [
    "Bar",
    "Block",
    "Bullets",
    "Cell",
    "Details",
    "Document",
    "Example",
    "Examples",
    "Filter",
    "Heading",
    "Note",
    "Paragraph",
    "Plot",
    "Prose",
    "Span",
    "Table",
    "Version",
    "Word",
    "Words",
    "code",
    "render_fragment",
    "strong",
    "write_report",
]


def __getattr__(name: str) -> object:
    """The reports of attack runs that do not use documents yet, loaded when somebody asks for them."""
    if name == "render_fragment":
        from stockade.report.html import render_fragment

        return render_fragment
    if name == "write_report":
        from stockade.report.write import write_report

        return write_report
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
