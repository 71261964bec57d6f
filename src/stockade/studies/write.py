"""Writes what a study found into its run folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stockade.core.errors import RunError
from stockade.runs.manifest import write_json
from stockade.runs.run import Run
from stockade.studies.html import render_page
from stockade.studies.markdown import render_markdown

JSON_NAME, MARKDOWN_NAME, HTML_NAME = "study.json", "study.md", "study.html"


def write_pages(run: Run, numbers: Mapping[str, Any]) -> Path:
    """Write `study.json`, `study.md` and `study.html`; the path of the page."""
    page = run.folder / HTML_NAME
    try:
        write_json(run.folder / JSON_NAME, numbers)
        _write(run.folder / MARKDOWN_NAME, render_markdown(numbers))
        _write(page, render_page(run, numbers))
    except OSError as error:
        raise RunError(f"{run.folder} cannot be written ({error.strerror or error}).") from None
    return page


def _write(path: Path, content: str) -> None:
    path.write_text(content, encoding="utf-8", errors="replace")
