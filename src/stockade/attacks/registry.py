"""Names, options and presets of the attacks; a new attack is one new file in this folder.

Each module of `stockade.attacks` may register attacks; the modules are imported when the list is first needed, so
they must be light at import (no torch). Packages of others can add attacks through the entry point group
`stockade.attacks`.
"""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import entry_points
from typing import Any, TypeVar, get_type_hints

from stockade.core.errors import OptionError, unknown_name
from stockade.core.protocols import Attack

AttackType = TypeVar("AttackType", bound=type)
DEFAULT_PRESET = "paper"


@dataclass(frozen=True, slots=True)
class AttackEntry:
    """One attack of the list: how to make it, where it was published, and its named sets of options."""

    name: str
    make: Callable[..., Attack]
    paper: str
    presets: Mapping[str, Mapping[str, Any]]

    @property
    def summary(self) -> str:
        """The first sentence of the class's documentation."""
        return (self.make.__doc__ or "").strip().split("\n")[0]

    @property
    def options(self) -> dict[str, Any]:
        """Every option with its default value."""
        return {field.name: field.default for field in dataclasses.fields(self.make)}  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class NamedAttack:
    """An attack ready to run, with the name and preset it was asked for by."""

    name: str
    preset: str
    attack: Attack
    key: str
    """What a run calls it: the name, with the preset when that was written with the name."""

    @property
    def options(self) -> dict[str, Any]:
        """Every option, given or defaulted, as the manifest records it."""
        return dataclasses.asdict(self.attack)  # type: ignore[call-overload, no-any-return]


_REGISTERED: dict[str, AttackEntry] = {}


def register(name: str, *, paper: str, presets: Mapping[str, Mapping[str, Any]]) -> Callable[[AttackType], AttackType]:
    """Class decorator that puts an attack on the list. The first preset, `paper`, holds what differs from the field
    defaults.
    """

    def add(attack: AttackType) -> AttackType:
        _REGISTERED[name] = AttackEntry(name, attack, paper, presets)
        return attack

    return add


@lru_cache(maxsize=1)
def attacks() -> Mapping[str, AttackEntry]:
    """All attacks by name, in alphabetical order."""
    package = importlib.import_module("stockade.attacks")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"stockade.attacks.{module.name}")
    for point in entry_points(group="stockade.attacks"):
        point.load()
    return dict(sorted(_REGISTERED.items()))


def make_attack(reference: str, preset: str | None = None, **options: Any) -> NamedAttack:
    """An attack from `NAME[@PRESET][:option=value,…]`.

    A preset in the reference wins over `preset`; options given by keyword win over those in the reference, both over
    the preset.
    """
    key, _, written = reference.partition(":")
    name, _, own_preset = key.partition("@")
    entry = attacks().get(name)
    if entry is None:
        raise unknown_name("attack", name, attacks())
    preset = own_preset or preset or DEFAULT_PRESET
    if preset not in entry.presets:
        raise unknown_name(f"preset of {name}", preset, entry.presets)
    chosen = {**entry.presets[preset], **_parse(name, written), **{k: v for k, v in options.items() if v is not None}}
    return NamedAttack(name, preset, entry.make(**_validated(entry, chosen)), key)


def _parse(name: str, written: str) -> dict[str, str]:
    options = {}
    for item in filter(None, written.split(",")):
        key, equals, value = item.partition("=")
        if not equals:
            raise OptionError(f'"{item}" in --attack {name}:{written} is not of the form option=value.')
        options[key.strip().replace("-", "_")] = value.strip()
    return options


def _validated(entry: AttackEntry, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options as the types the attack declares, so that text from a command line or file is checked like Python
    values.
    """
    from pydantic import TypeAdapter, ValidationError

    kinds = {name: kind for name, kind in get_type_hints(entry.make).items() if name in entry.options}
    validated = {}
    for name, value in options.items():
        if name not in kinds:
            raise unknown_name(f"option of {entry.name}", name, kinds)
        if isinstance(value, str) and str(kinds[name]).startswith("tuple"):
            value = tuple(value.split("+"))
        try:
            validated[name] = TypeAdapter(kinds[name]).validate_python(value)
        except ValidationError as error:
            problem = error.errors()[0]["msg"]
            raise OptionError(f"The option {name} of {entry.name} cannot be {value!r}: {problem}.") from None
    return validated
