"""Names of the certification methods; a new one is one new file in `stockade.certificates.methods`, and nothing here.

Methods are found by importing the files of that folder when the first one is looked up. Users add their own with
`register_method`, packages through the entry points `stockade.certificates.methods`.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from stockade.certificates.method import AnotherDefense
from stockade.core.errors import ModelError
from stockade.core.named import Maker, Named
from stockade.core.protocols import Classifier
from stockade.core.registry import Class, Entry, Presets, Registry, home_of, publications

_PACKAGE = "stockade.certificates.methods"
_SUGGESTED = "position-partition"
"""What the owner of a model without a certifiable defense is pointed to: it proves most, with fewest forward passes
(docs/certify.md#which-defense).
"""


@dataclass(frozen=True, slots=True)
class MethodEntry(Entry):
    """A certification method of the registry."""

    @property
    def sound(self) -> bool:
        """Whether its radius is proved."""
        return bool(getattr(self.implementation, "sound", True))

    @property
    def default(self) -> bool:
        """Whether it is the method for its defense when none is named."""
        return bool(getattr(self.implementation, "default", False))


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedMethod(Named[Any]):
    """A method ready to use, with the name, preset and key it has in a run."""

    @staticmethod
    def from_description(description: Mapping[str, Any], *, trust: bool = False) -> NamedMethod:
        """The method that a manifest describes; `trust` allows to import the module of an unregistered class."""
        return _MAKER.from_description(description, trust=trust)


class _MethodFiles(Mapping[str, str]):
    """Where the class of each method in the folder of methods is, by name."""

    @cached_property
    def _homes(self) -> dict[str, str]:
        package = importlib.import_module(_PACKAGE)
        files = [importlib.import_module(f"{_PACKAGE}.{file.name}") for file in pkgutil.iter_modules(package.__path__)]
        values = (value for file in files for value in vars(file).values())
        classes = [cls for cls in values if isinstance(cls, type) and cls.__module__.startswith(_PACKAGE)]
        return {name: home_of(cls) for cls in classes for name in publications(cls)}

    def __getitem__(self, name: str) -> str:
        return self._homes[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._homes)

    def __len__(self) -> int:
        return len(self._homes)


def _missing(cls: type) -> str | None:
    needed = ("check", "certify", "deviations")
    return None if all(callable(getattr(cls, name, None)) for name in needed) else "the methods " + ", ".join(needed)


METHODS = Registry("method", _MethodFiles(), entry=MethodEntry, group=_PACKAGE, missing=_missing)
_MAKER = Maker(METHODS, NamedMethod, listing="certificates")


def methods() -> Mapping[str, MethodEntry]:
    """All methods by name."""
    return METHODS


def load_methods() -> None:
    """Import every method, so that files may name its evidence and its smoothing distribution."""
    for name in METHODS:
        METHODS[name]


def register_method(name: str, *, paper: str | None = None, presets: Presets | None = None) -> Callable[[Class], Class]:
    """Class decorator: add a certification method of your own, so that it can be used by name.

    Goes above `@dataclass`; the fields of the class are the method's options.

    Parameters
    ----------
    name : str
        What the method is called. A name that another class has is refused.
    paper : str, optional
        Where it was published.
    presets : Mapping, optional
        Named sets of options; each holds what differs from the defaults. The first is used when none is named.
    """
    return METHODS.register(name, paper=paper, presets=presets)


def make_method(reference: object, preset: str | None = None, **options: Any) -> NamedMethod:
    """Make a certification method from its name, or take an instance.

    Parameters
    ----------
    reference : str or method
        `NAME[@PRESET][:option=value,…]`, or an object with `check`, `certify` and `deviations`, registered or not.
    preset : str, optional
        The preset of a name that is written without one; an instance has its options already.
    **options
        Options that win over those of the reference and the preset.
    """
    return _MAKER.make(reference, preset, options)


def make_methods(references: object, preset: str | None = None, **shared: Any) -> tuple[NamedMethod, ...]:
    """Make certification methods from names, instances, or a list of them; each has a key of its own.

    Parameters
    ----------
    references : str, method, list or mapping
        One reference as `make_method` takes it, a list of them, or a mapping from keys to references for several
        methods of the same name.
    preset : str, optional
        The preset of names that are written without one.
    **shared
        Options for all of them.
    """
    return _MAKER.make_all(references, lambda reference: make_method(reference, preset, **shared))


def default_method(classifier: Classifier) -> NamedMethod:
    """The method for the defense around a model; where there is none, one that says what the model needs."""
    candidates = (make_method(name) for name, entry in METHODS.items() if entry.default)
    return next((named for named in candidates if _fits(named, classifier)), None) or make_method(_SUGGESTED)


def _fits(named: NamedMethod, classifier: Classifier) -> bool:
    try:
        named.method.check(classifier)
    except AnotherDefense:
        return False
    except ModelError:  # the right method for a model that it has to refuse: it says why when it is asked
        return True
    return True
