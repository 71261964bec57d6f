"""Options as text or Python values, checked against the types that a class of options declares."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Any, get_args, get_type_hints

from stockade.core.catalogue import Reference
from stockade.core.errors import OptionError, unknown_name

_COMMA = re.compile(r",(?![^()]*\))")
"""A comma that separates options; one between brackets belongs to a constraint."""


def parse_options(flag: str, owner: str, written: str) -> dict[str, str]:
    """The options that stand behind a name, `option=value,…`; `flag` is what errors call the place."""
    options = {}
    for item in filter(None, _COMMA.split(written)):
        key, equals, value = item.partition("=")
        if not equals:
            raise OptionError(f'"{item}" in {flag} {owner}:{written} is not of the form option=value.')
        options[key.strip().replace("-", "_")] = value.strip()
    return options


def chosen_options(flag: str, found: Reference[Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a reference, checked: those given win over those written in it, both over its preset."""
    entry = found.entry
    written = parse_options(flag, entry.name, found.written)
    told = {name: value for name, value in given.items() if value is not None}
    return validated(entry.name, entry.make, {**entry.presets[found.preset], **written, **told})


def validated(owner: str, kind: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options as the types that the dataclass `kind` declares, so that text from a command line or file is checked
    like Python values. `owner` is what errors call it.
    """
    known = {field.name for field in dataclasses.fields(kind)}
    types = {name: declared for name, declared in get_type_hints(kind).items() if name in known}
    for name in options:
        if name not in types:
            raise unknown_name(f"option of {owner}", name, types)
    return {name: _value(owner, name, types[name], value) for name, value in options.items()}


def _value(owner: str, name: str, declared: Any, value: Any) -> Any:
    from pydantic import ConfigDict, TypeAdapter, ValidationError

    if name == "constraint" and isinstance(value, str):
        from stockade.attacks.constraint_names import parse_constraint

        return parse_constraint(value)
    if isinstance(value, str) and str(declared).startswith("tuple"):
        value = tuple(value.split("+"))
    if isinstance(value, str) and value.lower() == "none" and type(None) in get_args(declared):
        value = None
    try:
        if name == "constraint":
            return TypeAdapter(declared, config=ConfigDict(arbitrary_types_allowed=True)).validate_python(value)
        return TypeAdapter(declared).validate_python(value)
    except ValidationError as error:
        problem = error.errors()[0]["msg"]
        raise OptionError(f"The option {name} of {owner} cannot be {value!r}: {problem}.") from None
