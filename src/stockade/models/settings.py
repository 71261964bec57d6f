"""Settings: what only models of one kind need, as a user writes them and as a dataclass of that kind declares them.

`--setting NAME=VALUE` has one, `--setting @FILE` those of a TOML or JSON file. A name with a dot stands in a table:
`headers.Authorization=…` is the entry `Authorization` of `headers`. What comes later wins.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from stockade.core.errors import OptionError
from stockade.core.limits import LARGEST_JSON
from stockade.core.options import make_with

Settings = TypeVar("Settings")


def read_settings(items: Iterable[str]) -> dict[str, Any]:
    """The settings that a user has written, not yet checked.

    Parameters
    ----------
    items
        Each `NAME=VALUE`, or `@FILE`.
    """
    settings: dict[str, Any] = {}
    for item in items:
        if item.startswith("@"):
            settings = _merged(settings, _of_file(Path(item[1:]).expanduser()))
            continue
        name, equals, value = item.partition("=")
        if not equals or not name.strip():
            raise OptionError(f"--setting {item} is not of the form NAME=VALUE, such as --setting batch_size=16.")
        settings = _merged(settings, _nested(name.strip(), value))
    return settings


def make_settings(kind: type[Settings], owner: str, values: Mapping[str, Any]) -> Settings:
    """The settings of one kind of model, checked against the types that its dataclass declares.

    Parameters
    ----------
    kind
        The dataclass.
    owner
        What errors call the model.
    values
        Settings by name, as text or as Python values.
    """
    flat: dict[str, Any] = {}
    for name, value in values.items():
        flat = _merged(flat, _nested(name, value))
    return make_with(owner, kind, {name.replace("-", "_"): value for name, value in flat.items()})


def _nested(name: str, value: Any) -> dict[str, Any]:
    table, dot, entry = name.partition(".")
    return {table: {entry: value}} if dot else {name: value}


def _merged(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """Both, the second before the first; tables are merged entry by entry."""
    merged = dict(first)
    for name, value in second.items():
        before = merged.get(name)
        both = isinstance(before, Mapping) and isinstance(value, Mapping)
        merged[name] = {**before, **value} if both else value  # type: ignore[dict-item]
    return merged


def _of_file(path: Path) -> dict[str, Any]:
    try:
        if path.stat().st_size > LARGEST_JSON:
            raise OptionError(f"{path} is larger than {LARGEST_JSON:,} bytes, which no file of settings is.")
        text = path.read_text(encoding="utf-8")
        content = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except (OSError, ValueError, RecursionError) as error:
        raise OptionError(
            f"The settings {path} cannot be read ({error}); expected a TOML file, or a JSON file named .json."
        ) from None
    if not isinstance(content, dict):
        raise OptionError(f"{path} holds a {type(content).__name__}, expected a table of settings by name.")
    return content
