"""A document as one HTML page that needs nothing else, or as the fragment a notebook shows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from stockade import __version__
from stockade.report.document import Block, Details, Document, Heading, spans

if TYPE_CHECKING:
    from jinja2 import Template
    from markupsafe import Markup

_LEAST_CONTENTS = 4
"""Pages with so many sections begin with links to them."""

_BREAKS = re.compile(r"(?<=[,:=/@+])(?=[^\s\d])")


def render_page(document: Document) -> str:
    """The whole page.

    Parameters
    ----------
    document
        What to render.
    """
    return _render(document, whole=True)


def render_fragment(document: Document) -> str:
    """The page without its frame and filters, with few examples.

    Parameters
    ----------
    document
        What to render.
    """
    return _render(document, whole=False)


def _render(document: Document, whole: bool) -> str:
    sections = [block for block in document.blocks if isinstance(block, Heading) and block.level == 2]
    anchors = _anchors(document)
    return (
        _template()
        .render(
            document=document,
            whole=whole,
            contents=sections if len(sections) >= _LEAST_CONTENTS else (),
            anchors=lambda heading: anchors[id(heading)],
            version=__version__,
        )
        .lstrip()
    )


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
    environment.filters["blanks"] = _blanks
    environment.filters["breakable"] = _breakable
    environment.filters["kind"] = lambda block: type(block).__name__.lower()
    return environment.get_template("document.html")


def _anchors(document: Document) -> dict[int, str]:
    """What links to each heading end in, by its identity: two headings may have the same words."""
    anchors: dict[int, str] = {}
    for heading in _headings(document.blocks):
        name = heading.anchor or re.sub(r"\W+", "-", heading.text.lower()).strip("-") or "section"
        repeats = sum(re.fullmatch(rf"{re.escape(name)}(-\d+)?", other) is not None for other in anchors.values())
        anchors.setdefault(id(heading), f"{name}-{repeats + 1}" if repeats else name)
    return anchors


def _headings(blocks: Sequence[Block]) -> Iterator[Heading]:
    for block in blocks:
        if isinstance(block, Heading):
            yield block
        elif isinstance(block, Details) and not isinstance(block.content, str):
            yield from _headings(block.content)


def _blanks(text: str) -> tuple[str, str, str]:
    """The blanks before a text, the text, and the blanks behind it: marks are drawn without blanks at their ends."""
    inner = text.strip()
    start = text.index(inner)
    return text[:start], inner, text[start + len(inner) :]


def _breakable(text: str) -> Markup:
    """An escaped text that may be broken behind punctuation: options of defenses make long names."""
    from markupsafe import Markup, escape

    return Markup("<wbr>").join(escape(part) for part in _BREAKS.split(text))
