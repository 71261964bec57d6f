"""Methods as users give them: a name, an instance, or a list of either, made into values that a manifest records.

A name is `NAME[@PRESET][:option=value,…]`; an instance may be of a class that no registry knows. Both become a `Named`,
which describes itself, and which `Maker.from_description` makes again.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from stockade.core.errors import OptionError, unknown_name
from stockade.core.options import can_be_described, make_with, option_values, parse_options, validated
from stockade.core.registry import Registry, home_of, load_class, publications, with_article

PYTHON_OBJECT = "a Python object"
"""How records begin to speak of an object that cannot be made again from them."""
CUSTOM = "custom"
"""The preset of an object whose options are those of no preset."""

Method = TypeVar("Method")


@dataclass(frozen=True, slots=True, kw_only=True)
class Named(Generic[Method]):
    """A method ready to use, with what makes it again.

    Parameters
    ----------
    name : str
        Its name in the registry, or `module:Class` of an object whose class has none.
    preset : str
        The named set of options it was made with.
    key : str
        What a run calls it: the name, with the preset when that was written with the name.
    method : object
        The object itself.
    """

    name: str
    preset: str
    key: str
    method: Method

    @property
    def options(self) -> dict[str, Any]:
        """Every option, given or defaulted, as the manifest records it."""
        return option_values(self.method)

    def described(self) -> dict[str, Any]:
        """What a manifest records; `from_description` makes the method again from it."""
        return {"key": self.key, "name": self.name, "preset": self.preset, "options": self.options}


NamedT = TypeVar("NamedT", bound=Named[Any])


class Maker(Generic[NamedT]):
    """Makes the methods of one registry.

    Parameters
    ----------
    registry : Registry
        Where names are looked up.
    named : type
        The class of what is made.
    flag : str, optional
        The option of the command line that names a method; `--KIND` unless given.
    listing : str, optional
        What `stockade ls` calls all of them; `KINDs` unless given.
    """

    def __init__(
        self, registry: Registry[Any], named: type[NamedT], *, flag: str | None = None, listing: str | None = None
    ) -> None:
        self._registry, self._kind, self._named = registry, registry.kind, named
        self._flag, self._listing = flag or f"--{registry.kind}", listing or f"{registry.kind}s"

    def make(self, reference: object, preset: str | None = None, options: Mapping[str, Any] | None = None) -> NamedT:
        """Make a method from its name, or take an instance.

        Parameters
        ----------
        reference : str or object
            `NAME[@PRESET][:option=value,…]`, or an instance of a method's class, registered or not.
        preset : str, optional
            The preset of a name that is written without one; an instance has its options already.
        options : Mapping, optional
            Options that win over those of the reference; None values are left out.
        """
        options = {name: value for name, value in (options or {}).items() if value is not None}
        if isinstance(reference, str):
            return self._from_name(reference, preset, options)
        named = reference if isinstance(reference, self._named) else self._from_instance(reference)
        if not options:
            return named
        values = validated(named.key, type(named.method), options)
        return replace(named, method=replace(named.method, **values))

    def make_all(self, references: object, make: Callable[[Any], NamedT], *, unique: bool = True) -> tuple[NamedT, ...]:
        """Make methods from one reference, a list of references, or a mapping from keys to references.

        Parameters
        ----------
        references : str, object, iterable or mapping
            What a user gave.
        make : callable
            Makes a single one.
        unique : bool
            Refuse two of the same key.
        """
        if isinstance(references, Mapping):
            made = tuple(replace(make(reference), key=str(key)) for key, reference in references.items())
        elif isinstance(references, Iterable) and self._are_several(references):
            made = tuple(make(reference) for reference in references)
        else:
            made = (make(references),)
        if not made:
            raise OptionError(f"No {self._kind} was named. List them with: stockade ls {self._listing}")
        keys = [named.key for named in made]
        if unique and len(set(keys)) < len(keys):
            raise OptionError(self._named_twice(next(named for named in made if keys.count(named.key) > 1), keys))
        return made

    def from_description(self, description: Mapping[str, Any], *, trust: bool = False) -> NamedT:
        """Make a method again from what `Named.described` recorded.

        Parameters
        ----------
        description : Mapping
            Name, preset, options and key.
        trust : bool
            Allow to import the module of an object whose class is not registered: that runs the module's code. A class
            of a module that is imported already is always found.
        """
        name, preset = description["name"], description["preset"]
        entry = self._registry.get(name)
        cls = self._recorded_class(name, trust) if entry is None else entry.implementation
        base = {} if entry is None else entry.presets.get(preset, {})
        method = make_with(name, cls, {**base, **description["options"]})
        return self._named(name=name, preset=preset, key=description.get("key", name), method=method)

    def _from_name(self, reference: str, preset: str | None, options: Mapping[str, Any]) -> NamedT:
        key, _, text = reference.partition(":")
        name, _, written_preset = key.partition("@")
        entry = self._registry.find(name)
        chosen = written_preset or preset or entry.default_preset
        if chosen not in entry.presets:
            raise unknown_name(f"preset of {name}", chosen, entry.presets)
        written = parse_options(self._flag, name, text)
        method = make_with(name, entry.implementation, {**entry.presets[chosen], **written, **options})
        return self._named(name=name, preset=chosen, key=key, method=method)

    def _from_instance(self, method: object) -> NamedT:
        if isinstance(method, type) and self._registry.missing(method) is None:
            raise OptionError(f"{method.__name__} is a class, expected an instance: write {method.__name__}().")
        cls = type(method)
        missing = self._registry.missing(cls)
        if missing is not None:
            raise OptionError(
                f"{method!r} is no {self._kind}: expected a name (stockade ls {self._listing} shows them) or an object "
                f"with {missing}."
            )
        entries = (self._registry.get(name) for name in publications(cls))
        names = [entry.name for entry in entries if entry is not None and entry.implementation is cls]
        if names:
            name, preset = self._nearest_preset(method, names)
            return self._named(name=name, preset=preset, key=name, method=method)
        name = home_of(cls) if can_be_described(method) else f"{PYTHON_OBJECT} ({home_of(cls)})"
        return self._named(name=name, preset=CUSTOM, key=cls.__name__, method=method)

    def _nearest_preset(self, method: object, names: list[str]) -> tuple[str, str]:
        """The name and preset of an instance: of those whose options it has all, the one that says most."""
        matches = []
        for name in names:
            for preset, options in self._registry[name].presets.items():
                values = validated(name, type(method), options)
                if all(getattr(method, option) == value for option, value in values.items()):
                    matches.append((len(values), name, preset))
        if not matches:
            return names[0], CUSTOM
        _, name, preset = max(matches, key=lambda match: match[0])
        return name, preset

    def _are_several(self, references: Iterable[object]) -> bool:
        return not isinstance(references, str) and self._registry.missing(type(references)) is not None

    def _named_twice(self, named: NamedT, keys: list[str]) -> str:
        presets = self._registry[named.name].presets if named.name in self._registry else ()
        preset = next((preset for preset in presets if preset != named.preset), "PRESET")
        return (
            f"{with_article(self._kind).capitalize()} is named twice: {', '.join(keys)}. Write presets with the name, "
            f"as in {named.name}@{preset}, or give them keys in Python, as in "
            f'{{"first": {type(named.method).__name__}(…), "second": …}}.'
        )

    def _recorded_class(self, name: str, trust: bool) -> type:
        module, colon, qualname = name.partition(":")
        is_object = name.startswith(PYTHON_OBJECT)
        if not colon and not is_object:
            raise unknown_name(self._kind, name, self._registry)
        lost = f"The {self._kind} {name} was a Python object and cannot be made again: give it again from Python"
        if is_object or "<locals>" in qualname:
            raise OptionError(f"{lost}, or register its class.")
        if module not in sys.modules and not trust:
            raise OptionError(f"{lost}, import {module} first, or say that the folder can be trusted (--trust-run).")
        try:
            cls = load_class(name) if trust else _imported_class(module, qualname)
        except (ImportError, AttributeError) as error:
            raise OptionError(f"{lost} ({error}).") from None
        return self._registry.checked(cls)


def _imported_class(module: str, qualname: str) -> Any:
    """What stands in a module that is imported already, without asking the module to import more for it."""
    value: Any = sys.modules[module]
    for part in qualname.split("."):
        if part not in getattr(value, "__dict__", {}):
            raise AttributeError(f"{module} has no {qualname}")
        value = value.__dict__[part]
    return value
