"""Options as text or Python values, checked against the types that a class of options declares."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, get_args, get_type_hints

from stockade.core.errors import OptionError, unknown_name


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
