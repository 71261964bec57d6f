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
from typing import Any, TypeVar

from stockade.attacks.constraints import Constraint
from stockade.attacks.options import parse_options, validated
from stockade.core.errors import unknown_name
from stockade.core.protocols import Attack, ResourcefulAttack

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
        fields = dataclasses.fields(self.attack)  # type: ignore[arg-type]
        values = {field.name: getattr(self.attack, field.name) for field in fields}
        return {name: str(value) if isinstance(value, Constraint) else value for name, value in values.items()}

    @property
    def resources(self) -> Mapping[str, str]:
        """What the results depend on besides the options, with fingerprints; nothing for most attacks."""
        return self.attack.resources() if isinstance(self.attack, ResourcefulAttack) else {}


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
    parsed = parse_options("--attack", name, written)
    chosen = {**entry.presets[preset], **parsed, **{k: v for k, v in options.items() if v is not None}}
    return NamedAttack(name, preset, entry.make(**validated(name, entry.make, chosen)), key)
