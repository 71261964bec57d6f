"""Names and options of the ways to certify; a new one is one new file in `stockade.certificates.methods`.

A method is a frozen dataclass of options. `check` looks at the defended model and says in one sentence why the method
cannot speak of it, if it cannot; `certify` is a coroutine that awaits requests to the model inside the defense and
returns what it found. `threat` says in words what a radius means.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, Protocol

from stockade.attacks.options import chosen_options
from stockade.certificates.evidence import Evidence
from stockade.core.catalogue import Catalogue, Published
from stockade.core.errors import ModelError
from stockade.core.protocols import Classifier
from stockade.core.text import Text

DEFAULT_METHODS = ("ranmask-gap", "position-partition", "hash-partition", "deletion", "safer")
"""One for each defense that can be certified; the first is named to those who stand in none."""
DEFAULT_PRESET = "default"


@dataclass(frozen=True, slots=True)
class MethodResult:
    """What a method found for one text: the ground of a certificate, or the reason why there is none."""

    evidence: Evidence | None
    selection: tuple[int, ...] | None = None
    """Votes of the copies that chose the class."""
    drawn: int = 0
    """How many copies that were; some may have voted for nothing."""
    reason: str | None = None


class AnotherDefense(ModelError):
    """The model stands in no defense, or in one that other methods are about."""


NO_WORDS = MethodResult(None, reason="the text has no words")


@dataclass(frozen=True, slots=True)
class CertificationInput:
    """One text to certify. `label` is the true class, if the method may know it; `seed` names its random copies."""

    text: Text
    label: int | None
    seed: int


class CertificationMethod(Protocol):
    """A way to certify."""

    @property
    def sound(self) -> bool:
        """Whether its radius is proved."""
        ...

    @property
    def threat(self) -> str:
        """What a radius of d says, in words."""
        ...

    def check(self, classifier: Classifier) -> None:
        """Refuse a model that the method cannot speak of."""
        ...

    def certify(self, inputs: CertificationInput, classifier: Classifier) -> Coroutine[Any, Any, MethodResult]: ...


@dataclass(frozen=True, slots=True)
class MethodEntry(Published):
    """One method of the list."""

    @property
    def sound(self) -> bool:
        return bool(getattr(self.make, "sound", True))


@dataclass(frozen=True, slots=True)
class NamedMethod:
    """A method ready to be used, with the name and preset it was asked for by."""

    name: str
    preset: str
    key: str
    method: Any
    entry: MethodEntry

    @property
    def options(self) -> dict[str, Any]:
        """Every option, given or defaulted, as the manifest records it."""
        return {field.name: getattr(self.method, field.name) for field in dataclasses.fields(self.method)}

    def described(self) -> dict[str, Any]:
        return {"key": self.key, "name": self.name, "preset": self.preset, "options": self.options}


_CATALOGUE = Catalogue("certificate", "stockade.certificates.methods", MethodEntry, DEFAULT_PRESET)
register = _CATALOGUE.register
methods = _CATALOGUE.all


def make_method(reference: str, preset: str | None = None, **options: Any) -> NamedMethod:
    """A method from `NAME[@PRESET][:option=value,…]`; options given by keyword win over those in the reference."""
    found = _CATALOGUE.find(reference, preset)
    made = found.entry.make(**chosen_options("--method", found, options))
    return NamedMethod(found.entry.name, found.preset, found.key, made, found.entry)


def default_method(classifier: Classifier) -> NamedMethod:
    """The method for the defense that a model stands in; the first of all where there is none."""
    candidates = [make_method(name) for name in DEFAULT_METHODS]
    return next((named for named in candidates if _speaks_of(named, classifier)), candidates[0])


def _speaks_of(named: NamedMethod, classifier: Classifier) -> bool:
    try:
        named.method.check(classifier)
    except AnotherDefense:
        return False
    except ModelError:  # the right method for a model that it has to refuse: it says why when it is asked
        return True
    return True
