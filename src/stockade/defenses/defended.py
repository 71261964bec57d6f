"""A classifier inside a defense: itself a classifier, so that any attack runs on it and defenses nest.

A defense that acts when the model is asked has a coroutine `answer(text, rng)`: it awaits requests to the model it
stands around and returns class probabilities. `Defended` makes a classifier of it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np

from stockade.core.errors import ModelError
from stockade.core.example import Scores
from stockade.core.protocols import Classifier, CompositeClassifier, Fingerprinted, Probabilities
from stockade.core.seeds import derive_seed
from stockade.core.text import Text, TextInput
from stockade.defenses.asking import probabilities_of
from stockade.models.language import LanguageModels

DEFAULT_LANGUAGE = LanguageModels()


@runtime_checkable
class AnsweringDefense(Protocol):
    """A defense that acts when the model is asked: a frozen dataclass of options with one coroutine.

    `randomised` says whether two answers to the same text may differ. Every random choice comes from `rng`.
    """

    @property
    def randomised(self) -> bool: ...

    def answer(self, text: Text, rng: np.random.Generator) -> Coroutine[Any, Any, Scores]: ...

    def check(self, inner: Classifier) -> None:
        """Say in one sentence what the model lacks, if it lacks anything."""
        ...


@runtime_checkable
class TwinnedDefense(Protocol):
    """A defense with a twin: a view of it for searches, which shows how close a text is to another class.

    The twin is another classifier and may answer otherwise. That of a defense that votes or averages logits takes mean
    probabilities; that of route also falls with the detector's suspicion. So a twin is only ever searched through:
    whether a text fools the model is asked of the defense itself.
    """

    def twin(self) -> AnsweringDefense: ...


@runtime_checkable
class RemarkableDefense(Protocol):
    """A defense of which a reader of results should know something that depends on the model."""

    def remarks(self, inner: Classifier) -> Sequence[str]: ...


@runtime_checkable
class ResourcefulDefense(Protocol):
    """A defense whose answers depend on files besides its options."""

    def resources(self) -> Mapping[str, str]:
        """What they are for, and fingerprints of what is in them."""
        ...


@dataclass(frozen=True, slots=True)
class Defended:
    """A classifier inside one defense."""

    name: str
    defense: AnsweringDefense
    inner: Classifier
    seed: int = 0
    language: LanguageModels = DEFAULT_LANGUAGE

    def __post_init__(self) -> None:
        if getattr(self.defense, "innermost", False) and isinstance(self.inner, CompositeClassifier):
            raise ModelError(
                f"{self.name} alters what the model reads, so it must stand directly around the model: name it after "
                "the other defenses."
            )
        self.defense.check(self.inner)

    @property
    def labels(self) -> tuple[str, ...]:
        return self.inner.labels

    @property
    def deterministic(self) -> bool:
        return self.inner.deterministic and not self.defense.randomised

    def answer(self, text: Text, draw: int) -> Coroutine[Any, Any, Scores]:
        return self.defense.answer(text, np.random.default_rng(derive_seed(self.seed, self.name, draw)))

    def predict_proba(self, inputs: Sequence[TextInput]) -> Probabilities:
        """Class probabilities of each text; the same text has the same answer whatever else is asked with it."""
        return probabilities_of(self, inputs, self.language)

    def fingerprint(self) -> str:
        """Of the model inside, the defense, its options and its files."""
        inside = self.inner.fingerprint() if isinstance(self.inner, Fingerprinted) else type(self.inner).__qualname__
        options = json.dumps(asdict(self.defense), sort_keys=True, default=str)  # type: ignore[call-overload]
        files = dict(self.defense.resources()) if isinstance(self.defense, ResourcefulDefense) else {}
        return hashlib.sha256(f"{inside} {self.name} {options} {self.seed}{files or ''}".encode()).hexdigest()

    def described(self) -> dict[str, Any]:
        """The defense with every option, as a manifest records it."""
        return {"name": self.name, "options": asdict(self.defense)}  # type: ignore[call-overload]

    def twin(self) -> Defended | None:
        """The same with the defense's twin, if it has one."""
        if not isinstance(self.defense, TwinnedDefense):
            return None
        return replace(self, defense=self.defense.twin())


def defenses_of(classifier: Classifier) -> list[dict[str, Any]]:
    """What stands around a model, from the outside in."""
    found = []
    while isinstance(classifier, Defended):
        found.append(classifier.described())
        classifier = classifier.inner
    return found


def remarks_on(classifier: Classifier) -> list[str]:
    """What a reader of results should know of the defenses around a model."""
    found: list[str] = []
    while isinstance(classifier, Defended):
        if isinstance(classifier.defense, RemarkableDefense):
            found += classifier.defense.remarks(classifier.inner)
        classifier = classifier.inner
    return found
