"""Published methods by name: attacks and defenses, each in a file of its own.

A catalogue imports the modules of its package when the list is first needed, so they must be light at import (no
torch). Packages of others can add methods through the entry point group that is called like the package.
"""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import Any, Generic, TypeVar

from stockade.core.errors import unknown_name

DEFAULT_PRESET = "paper"


@dataclass(frozen=True, slots=True)
class Published:
    """One method: how to make it, where it was published, and its named sets of options."""

    name: str
    make: Callable[..., Any]
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


Entry = TypeVar("Entry", bound=Published)
Made = TypeVar("Made", bound=type)


@dataclass(frozen=True, slots=True)
class Reference(Generic[Entry]):
    """`NAME[@PRESET][:option=value,…]` taken apart; `written` are the options as they stand there."""

    entry: Entry
    preset: str
    key: str
    """The name, with the preset when that was written with the name."""
    written: str


class Catalogue(Generic[Entry]):
    """The methods of one kind."""

    def __init__(self, kind: str, package: str, entry: type[Entry], preset: str = DEFAULT_PRESET) -> None:
        self._kind, self._package, self._entry, self._preset = kind, package, entry, preset
        self._registered: dict[str, Entry] = {}
        self._imported = False

    def register(self, name: str, *, paper: str, presets: Mapping[str, Mapping[str, Any]]) -> Callable[[Made], Made]:
        """Class decorator that puts a method on the list. The first preset is taken when none is named; it holds what
        differs from the field defaults.
        """

        def add(made: Made) -> Made:
            self._registered[name] = self._entry(name, made, paper, presets)
            return made

        return add

    def all(self) -> Mapping[str, Entry]:
        """All methods by name, in alphabetical order."""
        if not self._imported:
            package = importlib.import_module(self._package)
            for module in pkgutil.iter_modules(package.__path__):
                importlib.import_module(f"{self._package}.{module.name}")
            for point in entry_points(group=self._package):
                point.load()
            self._imported = True
        return dict(sorted(self._registered.items()))

    def find(self, reference: str, preset: str | None = None) -> Reference[Entry]:
        """What a reference means; a preset in it wins over `preset`."""
        key, _, written = reference.partition(":")
        name, _, own_preset = key.partition("@")
        entry = self.all().get(name)
        if entry is None:
            raise unknown_name(self._kind, name, self.all())
        chosen = own_preset or preset or self._preset
        if chosen not in entry.presets:
            raise unknown_name(f"preset of {name}", chosen, entry.presets)
        return Reference(entry, chosen, key, written)
