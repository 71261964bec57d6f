"""Checks what a user sets when a model of the zoo is built: known names, values like the defaults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stockade.core.errors import OptionError, unknown_name


def with_options(defaults: Mapping[str, Any], options: Mapping[str, Any], model: str) -> dict[str, Any]:
    """The defaults with the user's options in their place."""
    for name, value in options.items():
        if name not in defaults:
            raise unknown_name(f"option of {model}", name, defaults)
        expected = _wrong(defaults[name], value)
        if expected:
            raise OptionError(f"The option {name} of {model} is {value!r}; expected {expected}.")
    return {**defaults, **options}


def _wrong(default: Any, value: Any) -> str | None:
    """What is expected of a value, if it is not that; None if all is well."""
    if isinstance(default, bool):
        return None if isinstance(value, bool) else "true or false"
    if isinstance(default, str):
        return None if isinstance(value, str) else "a name"
    if isinstance(default, int):
        return None if _is_count(value) else "a whole number of 1 or more"
    if isinstance(default, float):
        fits = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1
        return None if fits else "a number from 0 to below 1"
    pairs = not isinstance(default[0], int)
    if not isinstance(value, list | tuple) or not value:
        return "a list of pairs of whole numbers" if pairs else "a list of whole numbers"
    if pairs:
        fits = all(isinstance(one, list | tuple) and len(one) == 2 and all(map(_is_count, one)) for one in value)
        return None if fits else "a list of pairs of whole numbers of 1 or more"
    return None if all(map(_is_count, value)) else "a list of whole numbers of 1 or more"


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1
