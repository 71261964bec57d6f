"""Writes what a study found into its folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stockade.core.errors import RunError
from stockade.runs.manifest import write_json

JSON_NAME, MARKDOWN_NAME, HTML_NAME = "study.json", "study.md", "study.html"


def write_pages(folder: Path, numbers: Mapping[str, Any], markdown: str, page: str) -> Path:
    """Write `study.json`, `study.md` and `study.html`; the path of the page."""
    target = folder / HTML_NAME
    try:
        write_json(folder / JSON_NAME, numbers)
        _write(folder / MARKDOWN_NAME, markdown)
        _write(target, page)
    except OSError as error:
        raise RunError(f"{folder} cannot be written ({error.strerror or error}).") from None
    return target


def _write(path: Path, content: str) -> None:
    path.write_text(content, encoding="utf-8", errors="replace")
