"""Methods by name: attacks, defenses and certification methods, each found when it is first needed.

A registry knows the home of every published method, `"pwws": "stockade.attacks.pwws:PWWS"`: looking up one name
imports one module, listing imports all. What a method says of itself (paper, presets) stands on its class, through
`published`. Users add their methods with `Registry.register`, and packages through an entry point group.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, is_dataclass
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from typing import Any, TypeVar

from stockade.core.errors import OptionError, unknown_name
from stockade.core.options import option_defaults, validated

_PUBLICATIONS = "__stockade_publications__"

Presets = Mapping[str, Mapping[str, Any]]
Class = TypeVar("Class", bound=type)


@dataclass(frozen=True, slots=True)
class Publication:
    """What a class says of itself: where the method was published, and its named sets of options."""

    paper: str
    presets: Presets


def published(name: str, *, paper: str = "", presets: Presets | None = None) -> Callable[[Class], Class]:
    """Class decorator: say where a method was published and which presets it has; goes above `@dataclass`.

    Parameters
    ----------
    name : str
        What the method is called; a class may have several names, each with presets of its own.
    paper : str
        Authors and year.
    presets : Mapping, optional
        Named sets of options. Each holds what differs from the defaults of the fields; the first is taken when none
        is named.
    """

    def record(cls: Class) -> Class:
        earlier = vars(cls).get(_PUBLICATIONS, {})
        setattr(cls, _PUBLICATIONS, {**earlier, name: Publication(paper, presets or {"default": {}})})
        return cls

    return record


def publications(cls: type) -> Mapping[str, Publication]:
    """What a class says of itself, by name; what its bases say is not its own."""
    stated: Mapping[str, Publication] = vars(cls).get(_PUBLICATIONS, {})
    return stated


@dataclass(frozen=True, slots=True)
class Entry:
    """A method of a registry: its class, where it was published, and its named sets of options."""

    name: str
    implementation: type[Any]
    paper: str
    presets: Presets

    @property
    def summary(self) -> str:
        """The first line of the class's documentation."""
        return (self.implementation.__doc__ or "").strip().split("\n")[0]

    @property
    def options(self) -> dict[str, Any]:
        """Every option with its default value."""
        return option_defaults(self.implementation)

    @property
    def default_preset(self) -> str:
        return next(iter(self.presets))


EntryT = TypeVar("EntryT", bound=Entry)


class Registry(Mapping[str, EntryT]):
    """The methods of one kind by name, imported when they are looked up.

    Parameters
    ----------
    kind : str
        What errors call such a method, such as `attack`.
    table : Mapping
        The home of every method of the package, as `module:Class`.
    entry : type
        The class of the entries.
    group : str
        The entry point group through which packages add methods.
    missing : callable
        Says what a class lacks for being such a method, or None.
    """

    def __init__(
        self,
        kind: str,
        table: Mapping[str, str],
        *,
        entry: type[EntryT],
        group: str,
        missing: Callable[[type], str | None],
    ) -> None:
        self.kind, self.missing = kind, missing
        self._table, self._entry, self._group = table, entry, group
        self._loaded: dict[str, EntryT] = {}

    def __getitem__(self, name: str) -> EntryT:
        if name not in self._loaded:
            if name in self._table:
                cls = load_class(self._table[name])
            elif name in self._plugins:
                cls = self._load_plugin(self._plugins[name])
            else:
                raise KeyError(name)
            self._loaded.setdefault(name, self._make_entry(name, cls))
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(sorted({*self._table, *self._plugins, *self._loaded}))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def find(self, name: str) -> EntryT:
        """The entry of that name; an unknown one is an error that offers the nearest."""
        entry = self.get(name)
        if entry is None:
            raise unknown_name(self.kind, name, self)
        return entry

    def _home(self, name: str) -> str | None:
        """Where the class of that name is, or would be imported from."""
        if name in self._loaded:
            return home_of(self._loaded[name].implementation)
        return self._table.get(name) or (self._plugins[name].value if name in self._plugins else None)

    @cached_property
    def _plugins(self) -> dict[str, EntryPoint]:
        return {point.name: point for point in entry_points(group=self._group)}

    def _load_plugin(self, point: EntryPoint) -> type:
        try:
            cls = point.load()
        except Exception as error:
            raise OptionError(
                f'The {self.kind} "{point.name}" cannot be loaded from {point.value} ({error!r}). Repair or uninstall '
                "the package that adds it."
            ) from error
        return self.checked(cls)

    def _make_entry(self, name: str, cls: type) -> EntryT:
        publication = publications(cls).get(name) or Publication("", {"default": {}})
        return self._entry(name, cls, publication.paper, publication.presets)

    def register(
        self, name: str, *, paper: str | None = None, presets: Presets | None = None
    ) -> Callable[[Class], Class]:
        """Class decorator: add a method of the user's own.

        The same class may be registered again, as happens when a cell of a notebook is run twice; a name that belongs
        to another class is refused.
        """
        if not name or any(mark in name for mark in "@:, "):
            raise OptionError(f'"{name}" cannot name {with_article(self.kind)}: expected no blank, comma, colon or @.')

        def add(cls: Class) -> Class:
            self.checked(cls)
            owner = self._home(name)
            if owner not in (None, home_of(cls)):
                raise OptionError(f'The name "{name}" belongs to the {self.kind} {owner} already: choose another.')
            for preset, options in (presets or {}).items():
                validated(f"{name}@{preset}", cls, options)
            published(name, paper=paper or "", presets=presets)(cls)
            self._loaded[name] = self._make_entry(name, cls)
            return cls

        return add

    def checked(self, cls: object) -> type:
        """The class itself, if it can stand in the registry; else an error that says what it lacks."""
        if not isinstance(cls, type):
            raise OptionError(f"{cls!r} cannot be registered as {with_article(self.kind)}: expected a class.")
        missing = self.missing(cls)
        if missing is not None:
            raise OptionError(f"{home_of(cls)} is no {self.kind}: it lacks {missing}.")
        if not is_dataclass(cls) and _has_options(cls):
            raise OptionError(
                f"{home_of(cls)} has options but is no dataclass: put @dataclass(frozen=True) on it, below the line "
                "that registers it."
            )
        return cls


def _has_options(cls: type) -> bool:
    if any("__init__" in vars(base) for base in cls.__mro__[:-1]):
        return True
    return any("ClassVar" not in str(declared) for declared in vars(cls).get("__annotations__", {}).values())


def load_class(home: str) -> Any:
    """What stands at `module:qualified.name`; imports the module."""
    module, _, qualname = home.partition(":")
    value: Any = importlib.import_module(module)
    for part in qualname.split("."):
        value = getattr(value, part)
    return value


def home_of(cls: type) -> str:
    """Where a class can be imported from, as `module:qualified.name`."""
    return f"{cls.__module__}:{cls.__qualname__}"


def with_article(noun: str) -> str:
    """The noun with a or an."""
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"
