"""A document as JSON: the data behind it, or its blocks."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence

from stockade.report.document import Document, Plot, Span, spans

_MOST_ITEMS = 20


def render_json(document: Document) -> str:
    """The document's `data`; where there is none, its title, about and blocks.

    Parameters
    ----------
    document
        What to render.
    """
    content = document.data
    if content is None:
        content = {"title": document.title, "about": document.about, "blocks": document.blocks}
    return json.dumps(_plain(content), indent=2, allow_nan=False) + "\n"


def indented(content: Mapping[str, object]) -> str:
    """A manifest or a configuration as text for `Details`; of a list of more than a few items the length alone.

    Parameters
    ----------
    content
        What to write.
    """
    return json.dumps(_plain(_short(content)), indent=2, ensure_ascii=False)


def _short(value: object) -> object:
    if isinstance(value, Mapping):
        return {name: _short(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return f"{len(value):,} items" if len(value) > _MOST_ITEMS else [_short(item) for item in value]
    return value


def _plain(value: object) -> object:
    """The value in what JSON has: no tuples of spans, no drawings, and null for numbers that JSON cannot hold."""
    if isinstance(value, Span):
        return value.text
    if isinstance(value, tuple) and any(isinstance(part, Span) for part in value):
        return "".join(span.text for span in spans(value))
    if isinstance(value, Plot):
        return {"block": "plot", "name": value.name, "caption": _plain(value.caption)}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return {"block": type(value).__name__.lower(), **fields}
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, Sequence | set | frozenset | range) and not isinstance(value, str):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, str | int | bool) else str(value)
