"""Options as text or Python values, checked against the types that a class of options declares."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar, get_args, get_type_hints, runtime_checkable

from stockade.core.errors import OptionError, unknown_name

if TYPE_CHECKING:
    from pydantic import TypeAdapter

_COMMA = re.compile(r",(?![^()]*\))")
"""A comma that separates options; one between brackets belongs to a constraint."""

REQUIRED = "(required)"
"""Stands for the default of an option that has none."""
Made = TypeVar("Made")


@runtime_checkable
class TextOption(Protocol):
    """A type of option with a textual form of its own, such as a constraint; `str` gives the text back."""

    @classmethod
    def from_text(cls, text: str) -> Self: ...


def option_defaults(kind: type) -> dict[str, Any]:
    """Every option of a class with its default value; a class that is no dataclass has none."""
    return {field.name: _default(field) for field in _fields(kind)}


def _fields(kind: type) -> tuple[dataclasses.Field[Any], ...]:
    return dataclasses.fields(kind) if dataclasses.is_dataclass(kind) else ()


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return REQUIRED if field.default is dataclasses.MISSING else field.default


def option_values(method: object) -> dict[str, Any]:
    """Every option of an object as a manifest records it."""
    values = {name: getattr(method, name) for name in option_defaults(type(method))}
    return {name: str(value) if isinstance(value, TextOption) else value for name, value in values.items()}


def can_be_described(method: object) -> bool:
    """Whether an object of the same class with the same options does the same: all it holds are plain options."""
    if not dataclasses.is_dataclass(method):
        return not getattr(method, "__dict__", None) and type(method).__init__ is object.__init__
    if any(not field.init for field in dataclasses.fields(method)):
        return False
    return all(_is_plain(value) for value in option_values(method).values())


def _is_plain(value: object) -> bool:
    if isinstance(value, Mapping):
        return all(isinstance(key, str) and _is_plain(item) for key, item in value.items())
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, bool | int | float | str)


def parse_options(flag: str, owner: str, text: str) -> dict[str, str]:
    """Take apart the options that follow a name, `option=value,…`.

    Parameters
    ----------
    flag : str
        What errors call the place, such as `--attack`.
    owner : str
        The name in front of the options.
    text : str
        The options.
    """
    options = {}
    for item in filter(None, _COMMA.split(text)):
        key, equals, value = item.partition("=")
        if not equals:
            raise OptionError(f'"{item}" in {flag} {owner}:{text} is not of the form option=value.')
        options[key.strip().replace("-", "_")] = value.strip()
    return options


def validated(owner: str, kind: type, options: Mapping[str, Any]) -> dict[str, Any]:
    """Convert options to the types that a dataclass declares, so that text is checked like Python values.

    Parameters
    ----------
    owner : str
        What errors call the class.
    kind : type
        The dataclass.
    options : Mapping
        Values by the names of its fields.
    """
    names = option_defaults(kind)
    for name in options:
        if name not in names:
            raise unknown_name(f"option of {owner}", name, names)
    types = get_type_hints(kind) if options else {}
    return {name: _converted(owner, name, types[name], value) for name, value in options.items()}


def make_with(owner: str, kind: type[Made], options: Mapping[str, Any]) -> Made:
    """Make an object of a class with options as text or Python values; `owner` is what errors call the class."""
    values = validated(owner, kind, options)
    required = [name for name, default in option_defaults(kind).items() if default == REQUIRED]
    missing = [name for name in required if name not in values]
    if missing:
        raise OptionError(f"The option {missing[0]} of {owner} has no default: write it, as in {owner}:{missing[0]}=….")
    return kind(**values)


def _converted(owner: str, name: str, declared: Any, value: Any) -> Any:
    from pydantic import ValidationError

    if isinstance(value, str):
        kinds = get_args(declared) or (declared,)
        textual = next((kind for kind in kinds if isinstance(kind, TextOption)), None)
        if value.lower() == "none" and type(None) in kinds:
            value = None
        elif textual is not None:
            return textual.from_text(value)
        elif str(declared).startswith("tuple"):
            value = tuple(value.split("+"))
    try:
        return _adapter(declared).validate_python(value)
    except ValidationError as error:
        problem = error.errors()[0]["msg"]
        raise OptionError(f"The option {name} of {owner} cannot be {value!r}: {problem}.") from None


def _adapter(declared: Any) -> TypeAdapter[Any]:
    from pydantic import ConfigDict, PydanticSchemaGenerationError, TypeAdapter

    try:
        return TypeAdapter(declared)
    except PydanticSchemaGenerationError:  # a class of Stockade's or the user's: an instance of it is all there is
        return TypeAdapter(declared, config=ConfigDict(arbitrary_types_allowed=True))
