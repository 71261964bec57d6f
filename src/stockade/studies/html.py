"""The frame of a study's page: one HTML file that needs nothing else, in the look of the run reports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stockade.report.frame import fill

_PACKAGE = "stockade.studies"


def fill_page(package: str, content: Mapping[str, Any]) -> str:
    """The whole page around the `body.html` of a package; `title` and `heading` are those of a study unless given."""
    return fill("page_of_study.html", content, package, _PACKAGE)


def fill_body(package: str, content: Mapping[str, Any]) -> str:
    """The page without its frame, as a notebook shows it."""
    return fill("notebook.html", content, package, _PACKAGE)
