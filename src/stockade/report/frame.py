"""The frame of every page: templates of a package in the look of the reports, and what stands at a page's end."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from stockade import __version__

if TYPE_CHECKING:
    from jinja2 import Environment

_OWN = "stockade.report"


def fill(template: str, content: Mapping[str, Any], *packages: str) -> str:
    """A template with its content. Templates are looked for in the packages, then here."""
    return _environment(packages).get_template(template).render(**content, version=__version__)


def shown_manifest(manifest: Mapping[str, Any]) -> str:
    """A manifest as a page shows it: without the ids of the sample, which may be many."""
    ids = manifest["data"].get("ids")
    shown = "all" if ids is None else f"{len(ids)} ids, in manifest.json"
    return json.dumps({**manifest, "data": {**manifest["data"], "ids": shown}}, indent=2, ensure_ascii=False)


@lru_cache(maxsize=8)
def _environment(packages: tuple[str, ...]) -> Environment:
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=ChoiceLoader([PackageLoader(name) for name in (*packages, _OWN)]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
