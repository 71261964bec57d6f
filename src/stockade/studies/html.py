"""The frame of a study's page: one HTML file that needs nothing else, in the look of the run reports."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from stockade import __version__

if TYPE_CHECKING:
    from jinja2 import Environment


def fill_page(package: str, content: Mapping[str, Any]) -> str:
    """The whole page around the `body.html` of a study's package."""
    return _environment(package).get_template("page_of_study.html").render(**content, version=__version__)


def fill_body(package: str, content: Mapping[str, Any]) -> str:
    """The page without its frame, as a notebook shows it."""
    return _environment(package).get_template("notebook.html").render(**content, version=__version__)


@lru_cache(maxsize=8)
def _environment(package: str) -> Environment:
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=ChoiceLoader([PackageLoader(name) for name in (package, "stockade.studies", "stockade.report")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
