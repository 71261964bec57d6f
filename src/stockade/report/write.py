"""Writes a report of one or more runs to a file."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from stockade.core.errors import OptionError, unknown_name
from stockade.report.html import render_page
from stockade.report.markdown import render_markdown
from stockade.runs.run import Run

Shown = TypeVar("Shown")


def render_json(runs: Sequence[Run]) -> str:
    """The summaries of the runs, as `summary.json` holds them."""
    return json.dumps([run.summary for run in runs], indent=2) + "\n"


RENDERERS: dict[str, Callable[[Sequence[Run]], str]] = {
    "html": render_page,
    "md": render_markdown,
    "json": render_json,
}


def write_report(runs: Sequence[Run], path: str | Path, format: str = "html") -> Path:
    """Write the report and return its path."""
    return write_rendered(runs, RENDERERS, path, format)


def write_rendered(
    runs: Sequence[Shown], renderers: Mapping[str, Callable[[Sequence[Shown]], str]], path: str | Path, format: str
) -> Path:
    """Write runs of one kind in one of the formats that there are for it."""
    if format not in renderers:
        raise unknown_name("report format", format, renderers)
    target = Path(path)
    content = renderers[format](runs)
    try:
        target.write_text(content, encoding="utf-8", errors="replace")
    except OSError as error:
        raise OptionError(f"{target} cannot be written ({error.strerror or error}). Choose another --out.") from None
    return target
