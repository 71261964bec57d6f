"""A document as one HTML page that needs nothing else, or as the fragment a notebook shows."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from stockade import __version__
from stockade.core.sanitize import terminal
from stockade.report.document import Block, Details, Document, Heading, spans

if TYPE_CHECKING:
    from jinja2 import Environment, Template
    from markupsafe import Markup

_TEMPLATE, _STYLE = "document.html", "document.css"
_SCRIPT = re.compile(r"<script>(.*?)</script>", re.DOTALL)
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
            policy=content_policy(),
        )
        .lstrip()
    )


def _template() -> Template:
    """The template. Everything that it is given is escaped, except the drawings of plots."""
    return _environment().get_template(_TEMPLATE)


@lru_cache(maxsize=1)
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("stockade.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_visible,
    )
    environment.filters["spans"] = spans
    environment.filters["blanks"] = _blanks
    environment.filters["breakable"] = _breakable
    environment.filters["kind"] = lambda block: type(block).__name__.lower()
    return environment


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

    return Markup("<wbr>").join(escape(part) for part in _BREAKS.split(terminal(text)))


def _visible(value: object) -> object:
    """What a page is given, with invisible characters made visible; drawings and parts of the page stay as they are."""
    return terminal(value) if isinstance(value, str) and not hasattr(value, "__html__") else value


@lru_cache(maxsize=1)
def content_policy() -> str:
    """The page's Content-Security-Policy: nothing is fetched, and only the script and styles of the template count.

    Hashes are taken from the template and not from the page, so a script that got into a page some other way is not let
    through. Shades and lengths are written at the elements, which is allowed; `style-src` is for older browsers.
    """
    environment = _environment()
    assert environment.loader is not None
    source, _, _ = environment.loader.get_source(environment, _TEMPLATE)
    scripts = " ".join(map(_hash, _SCRIPT.findall(source)))
    style = _hash(f"\n{environment.get_template(_STYLE).render()}")
    return (
        f"default-src 'none'; script-src {scripts}; style-src-elem {style}; style-src-attr 'unsafe-inline'; "
        "style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
    )


def _hash(content: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"
