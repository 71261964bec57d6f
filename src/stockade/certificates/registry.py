"""Names and options of the ways to certify; a new one is one new file in
`stockade.certificates.methods` and one line here.

A method is a frozen dataclass of options. `check` looks at the defended model and says in one sentence why the method
cannot speak of it, if it cannot; `certify` is a coroutine that awaits requests to the model inside the defense and
returns what it found. `threat` says in words what a radius means.
"""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from stockade.certificates.evidence import Evidence
from stockade.core.errors import ModelError
from stockade.core.named import Maker, Named
from stockade.core.protocols import Classifier
from stockade.core.registry import Entry, Registry
from stockade.core.text import Text

DEFAULT_METHODS = ("ranmask-gap", "position-partition", "hash-partition", "deletion", "safer")
"""One for each defense that can be certified; the first is named to those who stand in none."""


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
class MethodEntry(Entry):
    """A certification method of the registry."""

    @property
    def sound(self) -> bool:
        return bool(getattr(self.implementation, "sound", True))


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedMethod(Named[Any]):
    """A method ready to use, with the name, preset and key it has in a run."""

    @staticmethod
    def from_description(description: Mapping[str, Any], *, trust: bool = False) -> NamedMethod:
        """The method that a manifest describes; `trust` allows to import the module of an unregistered class."""
        return _MAKER.from_description(description, trust=trust)


def _missing(cls: type) -> str | None:
    certifies = callable(getattr(cls, "certify", None)) and callable(getattr(cls, "check", None))
    return None if certifies else "the methods check and certify"


METHODS = Registry(
    "method",
    {
        "deletion": "stockade.certificates.methods.deletion:DeletionCertificate",
        "hash-partition": "stockade.certificates.methods.partition:HashPartition",
        "position-partition": "stockade.certificates.methods.partition:PositionPartition",
        "ranmask-exact": "stockade.certificates.methods.ranmask:RanMaskExact",
        "ranmask-gap": "stockade.certificates.methods.ranmask:RanMaskGap",
        "ranmask-legacy": "stockade.certificates.methods.ranmask:RanMaskLegacy",
        "ranmask-lf": "stockade.certificates.methods.ranmask:RanMaskMajority",
        "safer": "stockade.certificates.methods.safer:SaferCertificate",
    },
    entry=MethodEntry,
    group="stockade.certificates.methods",
    missing=_missing,
)
_MAKER = Maker(METHODS, NamedMethod, listing="certificates")


def methods() -> Mapping[str, MethodEntry]:
    """All methods by name; looking one up imports its module, walking through them imports all."""
    return METHODS


def make_method(reference: object, preset: str | None = None, **options: Any) -> NamedMethod:
    """Make a certification method from its name, or take an instance.

    Parameters
    ----------
    reference : str or method
        `NAME[@PRESET][:option=value,…]`, or an object with `check` and `certify`, registered or not.
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
