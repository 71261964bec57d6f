"""A document as one HTML page that needs nothing else, or as the fragment a notebook shows."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from stockade import __version__
from stockade.report.document import Document, Heading, spans

if TYPE_CHECKING:
    from jinja2 import Template


def render_page(document: Document) -> str:
    """The whole page.

    Parameters
    ----------
    document
        What to render.
    """
    return _template().render(document=document, whole=True, version=__version__)


def render_fragment(document: Document) -> str:
    """The page without its frame and filters, with few examples.

    Parameters
    ----------
    document
        What to render.
    """
    return _template().render(document=document, whole=False, version=__version__)


@lru_cache(maxsize=1)
def _template() -> Template:
    """The template. Everything that it is given is escaped, except the drawings of plots."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("stockade.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["spans"] = spans
    environment.filters["anchor"] = _anchor
    environment.filters["kind"] = lambda block: type(block).__name__.lower()
    return environment.get_template("document.html")


def _anchor(heading: Heading) -> str:
    return heading.anchor or re.sub(r"\W+", "-", heading.text.lower()).strip("-")
