"""A classifier inside a defense: itself a classifier, so that any attack runs on it and defenses nest.

A defense that acts when the model is asked has a coroutine `answer(text, rng)`: it awaits requests to the model inside
and returns class probabilities. `Defended` makes a classifier of it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np

from stockade.core.errors import ModelError, ScoringFailed
from stockade.core.example import Scores
from stockade.core.protocols import Classifier, CompositeClassifier, Fingerprinted, Probabilities
from stockade.core.seeds import derive_seed
from stockade.core.text import Text, TextInput
from stockade.engine.composite import make_scoring
from stockade.engine.language import EmbeddingService, FillingService
from stockade.engine.requests import Draw, Score
from stockade.models.language import LanguageModels

DEFAULT_LANGUAGE = LanguageModels()


@runtime_checkable
class AnsweringDefense(Protocol):
    """A defense that acts when the model is asked: a frozen dataclass of options with one coroutine."""

    @property
    def randomised(self) -> bool:
        """Whether two answers to the same text may differ."""
        ...

    def answer(self, text: Text, rng: np.random.Generator) -> Coroutine[Any, Any, Scores]:
        """Class probabilities of a text; every random choice comes from `rng`."""
        ...


@runtime_checkable
class ChecksModel(Protocol):
    """A defense that not every model will do for."""

    def check(self, inner: Classifier) -> None:
        """Raise an error that says in one sentence what the model lacks, if it lacks anything."""
        ...


@runtime_checkable
class HasSurrogate(Protocol):
    """A defense with a surrogate: a view of it for searches, which shows how close a text is to another class.

    The surrogate is another classifier and may answer otherwise. That of a defense that votes or averages logits takes
    mean probabilities; that of route also falls with the detector's suspicion. So a surrogate is only ever searched
    through: whether a text fools the model is asked of the defense itself.
    """

    def surrogate(self) -> AnsweringDefense: ...


@runtime_checkable
class HasRemarks(Protocol):
    """A defense of which a reader of results should know something that depends on the model."""

    def remarks(self, inner: Classifier) -> Sequence[str]: ...


@runtime_checkable
class HasResources(Protocol):
    """A defense whose answers depend on files besides its options."""

    def resources(self) -> Mapping[str, str]:
        """What the files are for, and fingerprints of their content."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Defended:
    """A classifier inside a defense, which is itself a classifier.

    Parameters
    ----------
    name
        The name of the defense.
    defense
        What answers in the model's place.
    inner
        The classifier inside: a model, or a model inside other defenses.
    seed
        Decides the random choices, together with the text and the query.
    language
        The masked LM and the sentence encoder that the defense may ask.
    """

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
        if isinstance(self.defense, ChecksModel):
            self.defense.check(self.inner)

    @property
    def labels(self) -> tuple[str, ...]:
        return self.inner.labels

    @property
    def deterministic(self) -> bool:
        return self.inner.deterministic and not self.defense.randomised

    def answer(self, text: Text, draw: int) -> Coroutine[Any, Any, Scores]:
        """Class probabilities of a text; `draw` names the random choices."""
        return self.defense.answer(text, np.random.default_rng(derive_seed(self.seed, self.name, draw)))

    def predict_proba(self, inputs: Sequence[TextInput]) -> Probabilities:
        """Class probabilities of each text; the same text has the same answer whatever else is asked with it."""
        return probabilities_of(self, inputs, self.language)

    def fingerprint(self) -> str:
        """A hash of the model inside, the defense, its options and its files."""
        inside = self.inner.fingerprint() if isinstance(self.inner, Fingerprinted) else type(self.inner).__qualname__
        options = json.dumps(asdict(self.defense), sort_keys=True, default=str)  # type: ignore[call-overload]
        files = dict(self.defense.resources()) if isinstance(self.defense, HasResources) else {}
        return hashlib.sha256(f"{inside} {self.name} {options} {self.seed}{files or ''}".encode()).hexdigest()

    def described(self) -> dict[str, Any]:
        """The defense with every option, as a manifest records it."""
        return {"name": self.name, "options": asdict(self.defense)}  # type: ignore[call-overload]

    def surrogate(self) -> Defended | None:
        """The same with the defense's surrogate, if it has one."""
        if not isinstance(self.defense, HasSurrogate):
            return None
        return replace(self, defense=self.defense.surrogate())


def probabilities_of(
    classifier: CompositeClassifier, inputs: Sequence[TextInput], language: LanguageModels, purpose: str = "predict"
) -> Probabilities:
    """Class probabilities of texts outside of any search, by a classifier that asks another one.

    The random choices of an answer depend on the text and on `purpose` alone, so the same text has the same answer
    whatever else is asked with it.
    """
    service = make_scoring(
        classifier,
        filling=FillingService(language.make_masked_lm),
        embedding=EmbeddingService(language.make_encoder),
    )
    questions = [Score([Text.of(text)], draw=Draw(derive_seed(purpose, repr(text)), 0)) for text in inputs]
    rows: list[tuple[float, ...]] = []
    for scores in service.answer_scores(questions):
        if isinstance(scores, ScoringFailed):
            raise ModelError(f"The defended model has no answer: {scores}.")
        rows.append(scores[0].probabilities)  # type: ignore[index]  # only a failure is no list
    return np.array(rows, dtype=np.float64).reshape(len(inputs), len(classifier.labels))


def defenses_of(classifier: Classifier) -> list[dict[str, Any]]:
    """The defenses around a model, from the outside in, as a manifest records them."""
    defenses = []
    while isinstance(classifier, Defended):
        defenses.append(classifier.described())
        classifier = classifier.inner
    return defenses


def remarks_on(classifier: Classifier) -> list[str]:
    """What a reader of results should know of the defenses around a model."""
    remarks: list[str] = []
    while isinstance(classifier, Defended):
        if isinstance(classifier.defense, HasRemarks):
            remarks += classifier.defense.remarks(classifier.inner)
        classifier = classifier.inner
    return remarks
