"""The models of the study: of which kind they are, and which attacks they allow."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from stockade.core.errors import ModelError
from stockade.core.protocols import (
    AttentiveClassifier,
    Classifier,
    Fingerprinted,
    RepresentingClassifier,
    ZeroingClassifier,
)
from stockade.core.text import Text

RANDOM, LIST, GREEDY, GREEDY_EC = "random", "list", "gs-gr", "gs-ec"
BY_ATTENTION = ("asmin-gr", "asmax-gr", "asmin-ec", "asmax-ec")
ATTACKS = (RANDOM, LIST, *BY_ATTENTION, GREEDY, GREEDY_EC)
"""In the order of the paper's table."""

_BLACK_BOX = "the model does not show {}: it is no Hugging Face model"


@dataclass(frozen=True, slots=True)
class Victim:
    """One model of the study, as its plan records it."""

    name: str
    reference: str
    kind: str
    fingerprint: str | None
    labels: tuple[str, ...]
    missing: Mapping[str, str]
    """The attacks that this model does not allow, with the reason."""

    @property
    def attacks(self) -> tuple[str, ...]:
        return tuple(attack for attack in ATTACKS if attack not in self.missing)


def describe_victim(name: str, reference: str, model: Classifier, text: Text) -> Victim:
    """What the plan says of a model; `text` is one that it can be asked about."""
    from stockade.models.internals import kind_of

    fingerprint = model.fingerprint() if isinstance(model, Fingerprinted) else None
    return Victim(name, reference, kind_of(model), fingerprint, tuple(model.labels), _missing(model, text))


def _missing(model: Classifier, text: Text) -> dict[str, str]:
    """Each attack that asks for something the model does not show."""
    zeroing = _reason(ZeroingClassifier, model, "its input vectors", lambda m: m.predict_zeroed([(text, 0)]))
    vectors = _reason(RepresentingClassifier, model, "its sentence vectors", lambda m: m.represent([text.input]))
    attention = _reason(AttentiveClassifier, model, "its attention", lambda m: m.word_attention([text], 0, "mean"))
    needs = {GREEDY: [zeroing], GREEDY_EC: [zeroing, vectors]}
    needs |= {name: [attention, vectors] if name.endswith("-ec") else [attention] for name in BY_ATTENTION}
    found = {attack: next((reason for reason in needs.get(attack, ()) if reason), None) for attack in ATTACKS}
    return {attack: reason for attack, reason in found.items() if reason is not None}


def _reason(protocol: Any, model: Classifier, what: str, ask: Callable[[Any], object]) -> str | None:
    """Why the model does not answer; None if it does."""
    if not isinstance(model, protocol):
        return _BLACK_BOX.format(what)
    try:
        ask(model)
    except ModelError as error:
        return str(error).partition(":")[0].rstrip(".")
    return None
