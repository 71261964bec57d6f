"""What stands behind a defended model: certificates speak of one defense directly around one model that answers the
same text in the same way always.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from stockade.certificates.registry import AnotherDefense
from stockade.core.errors import ModelError
from stockade.core.protocols import Classifier
from stockade.core.text import TextInput
from stockade.defenses.defended import Defended

Defense = TypeVar("Defense")
_RANDOMISED = "The model inside the defense is randomised: asked twice about the same text"
_USELESS = "and then votes prove nothing. Certify a model in evaluation mode that always gives the same answer."
_WOBBLE = 1e-3
"""What one model's answers to one text may differ by, far more than rounding does and far less than chance."""


def smoothing(classifier: Classifier, kind: type[Defense], name: str, example: str) -> Defense:
    """The defense of this kind that stands around the model; anything else is refused, with the reason."""
    if not isinstance(classifier, Defended) or not isinstance(classifier.defense, kind):
        about = f"This certificate is about a model inside {name}, and this one stands in"
        if isinstance(classifier, Defended):
            raise AnotherDefense(
                f"{about} {classifier.name}: take the model without it and add --defense {example}, or leave --method "
                "out, and the one that fits is taken, if there is one (ranmask, partition, deletion, safer)."
            )
        raise AnotherDefense(
            f"{about} no defense: add --defense {example}, or train one with stockade train DATA --arch … --defense "
            f"{example} --out models/m"
        )
    if isinstance(classifier.inner, Defended):
        raise ModelError(
            f"{name} stands around another defense ({classifier.inner.name}), and a certificate speaks of one that "
            "stands directly around the model: name one defense that answers."
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
    if not np.allclose(first, second, rtol=0, atol=_WOBBLE, equal_nan=True):
        raise ModelError(f"{_RANDOMISED} it answered {first[0].round(3)} and {second[0].round(3)}, {_USELESS}")
