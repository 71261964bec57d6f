"""What a certification method is: it certifies texts of a model in one defense, and knows what its evidence is like.

A method is a frozen dataclass of options in a file of its own in `stockade.certificates.methods`. That file also holds
the method's smoothing distribution, evidence and consistency check, so that a new certifiable defense takes two files:
the defense and its method.
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterator
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np

from stockade.certificates.certificate import Certificate
from stockade.certificates.evidence import Evidence
from stockade.core.errors import ModelError
from stockade.core.protocols import Classifier
from stockade.core.text import Text, TextInput
from stockade.defenses.defended import Defended

Defense = TypeVar("Defense")
WRONG_KIND = "the evidence is not of the kind that this method makes"
_RANDOMISED = "The model inside the defense is randomised: asked twice about the same text"
_USELESS = "and then votes prove nothing. Certify a model in evaluation mode that always gives the same answer."
_TOLERANCE = 1e-3
"""What one model's answers to one text may differ by, far more than rounding does and far less than chance."""


@dataclass(frozen=True, slots=True)
class CertificationInput:
    """One text to certify.

    Parameters
    ----------
    text : Text
        The text; of a pair, with its premise.
    label : int or None
        The true class, if the method may know it.
    seed : int
        Names the random copies of the text.
    """

    text: Text
    label: int | None
    seed: int


@dataclass(frozen=True, slots=True)
class MethodResult:
    """What a method proved for one text, or why it proved nothing.

    Parameters
    ----------
    evidence : Evidence or None
        What a certificate rests on; None if there is none.
    selection : tuple[int, ...] or None
        Votes by class of the copies that chose the class.
    drawn : int
        How many copies that were; some may have voted for nothing.
    reason : str or None
        Why there is no evidence.
    """

    evidence: Evidence | None
    selection: tuple[int, ...] | None = None
    drawn: int = 0
    reason: str | None = None


NO_WORDS = MethodResult(None, reason="the text has no words")


class CertificationMethod(Protocol):
    """A way to certify texts of a model in one kind of defense."""

    @property
    def sound(self) -> bool:
        """Whether its radius is proved."""
        ...

    @property
    def threat(self) -> str:
        """What an attacker may do within a radius of d, in words."""
        ...

    @property
    def certifies(self) -> type[object]:
        """The class of the defense."""
        ...

    @property
    def default(self) -> bool:
        """Whether it is the method for its defense when none is named."""
        ...

    def check(self, classifier: Classifier) -> None:
        """Refuse a model that the method cannot certify, with the reason."""
        ...

    def certify(self, inputs: CertificationInput, classifier: Classifier) -> Coroutine[Any, Any, MethodResult]:
        """Await requests to the model inside the defense until the radius of a text is known."""
        ...

    def deviations(self, certificate: Certificate, evidence: Evidence, defense: Any) -> Iterator[str]:
        """Where evidence is not what this method makes of the certificate's text and a defense, without the model."""
        ...


@runtime_checkable
class DescribesChanges(Protocol):
    """A method whose radius does not count changed words, or not any of them."""

    def allowed_changes(self, certificate: Certificate) -> str:
        """What the radius of a certificate allows, in short."""
        ...


@runtime_checkable
class RestrictsWords(Protocol):
    """A method that lets an attacker change some words of a text only."""

    def changeable_words(self, certificate: Certificate, defense: Any) -> tuple[bool, ...] | None:
        """For each word of `text.split()` whether it may be changed; None if that cannot be told here."""
        ...


@runtime_checkable
class Resampling(Protocol):
    """A method whose certificates can be tested with fresh random copies."""

    def for_resampling(self, alpha: float) -> CertificationMethod:
        """The method that gives each text fresh evidence about the class it is told, wrong with probability alpha."""
        ...


def allowed_changes(method: CertificationMethod, certificate: Certificate) -> str:
    """What the radius of a certificate allows, in short: "any 2 of 14 words"."""
    if isinstance(method, DescribesChanges):
        changes = method.allowed_changes(certificate)
    else:
        changes = f"any {certificate.radius} of {certificate.words} words"
    if not certificate.insertions:
        return changes
    plural = "" if certificate.insertions == 1 else "s"
    return f"{changes}; or {certificate.insertions} inserted word{plural}, if nothing else is changed"


def changeable_words(method: CertificationMethod, certificate: Certificate, defense: Any) -> tuple[bool, ...] | None:
    """For each word of a certificate's text whether an attacker may change it; None if that cannot be told here."""
    if isinstance(method, RestrictsWords):
        return method.changeable_words(certificate, defense)
    return (True,) * certificate.words


class AnotherDefense(ModelError):
    """The model has no defense, or one that other methods certify."""


def certified_defense(classifier: Classifier, kind: type[Defense], name: str, example: str) -> Defense:
    """The defense of this kind directly around a model; anything else is refused, with the reason.

    Parameters
    ----------
    classifier : Classifier
        The defended model.
    kind : type
        The class of the defense.
    name : str
        What the defense is called.
    example : str
        The defense with options, as errors write it for the command line.
    """
    if not isinstance(classifier, Defended) or not isinstance(classifier.defense, kind):
        needed = f"This certificate needs a model inside {name}, and this one"
        if isinstance(classifier, Defended):
            raise AnotherDefense(
                f"{needed} is inside {classifier.name}: take the model without it and add --defense {example}, or "
                "leave out --method to take the method for its defense (stockade ls certificates)."
            )
        raise AnotherDefense(
            f"{needed} has no defense: add --defense {example}, or train one with stockade train DATA --arch … "
            f"--defense {example} --out models/m"
        )
    if isinstance(classifier.inner, Defended):
        raise ModelError(
            f"{name} is around another defense ({classifier.inner.name}), and only a defense directly around the model "
            "can be certified: name one defense that acts when the model is asked."
        )
    if not classifier.inner.deterministic:
        raise ModelError(f"{_RANDOMISED} it may answer differently, {_USELESS}")
    return classifier.defense


def check_repeats(model: Classifier, item: TextInput) -> None:
    """Refuse a model that answers a text differently when it is asked again, whatever it says of itself."""
    try:
        first, second = (np.asarray(model.predict_proba([item])) for _ in range(2))
    except Exception:  # one text the model cannot take is recorded with that text, by the engine
        return
    if not np.allclose(first, second, rtol=0, atol=_TOLERANCE, equal_nan=True):
        raise ModelError(f"{_RANDOMISED} it answered {first[0].round(3)} and {second[0].round(3)}, {_USELESS}")
