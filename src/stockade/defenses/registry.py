"""Names, options and presets of the defenses; a new defense is one new file in this folder.

A defense is a frozen dataclass of options. It acts when the model is asked (`answer`, see `defended.py`), when it is
trained (`objective`, see `stockade.training.kit`), or both. Each module of `stockade.defenses` may register some; the
modules are imported when the list is first needed, so they must be light at import (no torch). Packages of others can
add defenses through the entry point group `stockade.defenses`.
"""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import entry_points
from itertools import pairwise
from typing import Any, TypeVar

from stockade.attacks.options import parse_options, validated
from stockade.core.errors import OptionError, unknown_name
from stockade.core.protocols import Classifier
from stockade.defenses.defended import AnsweringDefense, Defended
from stockade.models.language import LanguageModels

DefenseType = TypeVar("DefenseType", bound=type)
DEFAULT_PRESET = "paper"


@dataclass(frozen=True, slots=True)
class DefenseEntry:
    """One defense of the list: how to make it, where it was published, and its named sets of options."""

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

    @property
    def answers(self) -> bool:
        """Whether it acts when the model is asked."""
        return hasattr(self.make, "answer")

    @property
    def trains(self) -> bool:
        """Whether it acts when the model is trained."""
        return hasattr(self.make, "objective")


@dataclass(frozen=True, slots=True)
class NamedDefense:
    """A defense ready to be used, with the name and preset it was asked for by."""

    name: str
    preset: str
    defense: Any
    entry: DefenseEntry

    @property
    def options(self) -> dict[str, Any]:
        """Every option, given or defaulted, as the manifest records it."""
        return {field.name: getattr(self.defense, field.name) for field in dataclasses.fields(self.defense)}

    def described(self) -> dict[str, Any]:
        return {"name": self.name, "preset": self.preset, "options": self.options}


_REGISTERED: dict[str, DefenseEntry] = {}


def register(
    name: str, *, paper: str, presets: Mapping[str, Mapping[str, Any]]
) -> Callable[[DefenseType], DefenseType]:
    """Class decorator that puts a defense on the list. The first preset, `paper`, holds what differs from the field
    defaults.
    """

    def add(defense: DefenseType) -> DefenseType:
        _REGISTERED[name] = DefenseEntry(name, defense, paper, presets)
        return defense

    return add


@lru_cache(maxsize=1)
def defenses() -> Mapping[str, DefenseEntry]:
    """All defenses by name, in alphabetical order."""
    package = importlib.import_module("stockade.defenses")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"stockade.defenses.{module.name}")
    for point in entry_points(group="stockade.defenses"):
        point.load()
    return dict(sorted(_REGISTERED.items()))


def make_defense(reference: str, preset: str | None = None, **options: Any) -> NamedDefense:
    """A defense from `NAME[@PRESET][:option=value,…]`; options given by keyword win over those in the reference."""
    key, _, written = reference.partition(":")
    name, _, own_preset = key.partition("@")
    entry = defenses().get(name)
    if entry is None:
        raise unknown_name("defense", name, defenses())
    preset = own_preset or preset or DEFAULT_PRESET
    if preset not in entry.presets:
        raise unknown_name(f"preset of {name}", preset, entry.presets)
    parsed = parse_options("--defense", name, written)
    chosen = {**entry.presets[preset], **parsed, **{k: v for k, v in options.items() if v is not None}}
    return NamedDefense(name, preset, entry.make(**validated(name, entry.make, chosen)), entry)


def check_order(named: Sequence[NamedDefense]) -> None:
    """Defenses are named from the outside in: those that only train come last, nearest to the model."""
    for outer, inner in pairwise(named):
        if not outer.entry.answers and inner.entry.answers:
            raise OptionError(
                f"{outer.name} changes how the model is trained, so it cannot stand around {inner.name}: name defenses "
                f"from the outside in, as in --defense {inner.name} --defense {outer.name}."
            )


def wrap(
    classifier: Classifier,
    named: Sequence[NamedDefense],
    *,
    seed: int = 0,
    language: LanguageModels | None = None,
) -> Classifier:
    """The classifier inside those of the defenses that act when it is asked; the first is the outermost."""
    check_order(named)
    for one in reversed(named):
        if isinstance(one.defense, AnsweringDefense):
            classifier = Defended(one.name, one.defense, classifier, seed, language or LanguageModels())
    return classifier
