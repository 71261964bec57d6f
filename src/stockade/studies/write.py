"""Writes what a study found into its folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stockade.core.files import write_json, write_text

JSON_NAME, MARKDOWN_NAME, HTML_NAME = "study.json", "study.md", "study.html"


def write_pages(folder: Path, numbers: Mapping[str, Any], markdown: str, page: str) -> Path:
    """Write `study.json`, `study.md` and `study.html`; the path of the page."""
    write_json(folder / JSON_NAME, numbers)
    write_text(folder / MARKDOWN_NAME, markdown)
    write_text(folder / HTML_NAME, page)
    return folder / HTML_NAME
