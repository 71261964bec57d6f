"""The models of a study that may grow: loaded one at a time, held to what is recorded of them, marked where they fail.

A study of many models should not end because one of them is gone. What is known of each model is therefore a row of the
study's store and not part of its manifest: models can be added on a resume, one that was scored already must still be
the same, and one that cannot be used is marked with the reason while the others go on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from stockade.core.errors import ModelError, OptionError, StockadeError
from stockade.core.protocols import Classifier
from stockade.datasets.examples import ExampleSet
from stockade.engine.computing import reason_of
from stockade.experiment.inputs import ModelOptions, describe_model, fingerprint_of, is_lost_object, reference_of
from stockade.experiment.pool import DataPool, ModelPool
from stockade.experiment.store import Document, ResultStore
from stockade.models.language import LanguageModels
from stockade.studies.transferability.cross_scoring import is_second

MODELS, SECOND_MODELS, FAILURES = "models", "second models", "failures"
"""Parts of the store: what each model, or second training of one, was when it was first loaded, and why one cannot be
used.
"""


class Roster:
    """Models by name, each loaded when it is needed, and only one at a time.

    Parameters
    ----------
    models
        References or objects by name.
    data
        The texts, which are matched to the classes of each model.
    options
        How models are loaded.
    language
        The language models that defenses may ask.
    seed
        Of randomised defenses.
    """

    def __init__(
        self,
        models: Mapping[str, object],
        data: DataPool,
        options: ModelOptions,
        language: LanguageModels,
        seed: int,
    ) -> None:
        self._models = ModelPool(models, options, language=language)
        self._references, self._data, self._seed = dict(models), data, seed
        self._examples: dict[tuple[str, ...], ExampleSet] = {}
        self._classes: tuple[str, tuple[str, ...]] | None = None

    def reference(self, name: str) -> object:
        """A model as it was given."""
        return self._references[name]

    def check(self) -> None:
        """Load every model once; the first that cannot be used is an error."""
        for name in self._references:
            self._load(name)

    def load(self, name: str, store: ResultStore) -> tuple[Classifier, ExampleSet]:
        """A model in its defenses, and the texts with its classes.

        It is recorded when it is loaded for the first time, and from then on must be the same.

        Parameters
        ----------
        name
            Which model.
        store
            Where models are recorded.
        """
        if self._classes is None:
            first = next(store.documents(MODELS), None)
            self._classes = None if first is None else (first["name"], tuple(first["labels"]))
        classifier, examples = self._load(name)
        part = SECOND_MODELS if is_second(name) else MODELS
        recorded = store.get(part, name)
        if recorded is None:
            described = {"name": name, **describe_model(self._references[name], classifier)}
            store.add(part, name, described, position=list(self._references).index(name))
        elif recorded["fingerprint"] != fingerprint_of(classifier):
            raise ModelError(
                f"The model {name} is not the one that the study was begun with (another fingerprint). Put it back, or "
                "add the new one under another name."
            )
        return classifier, examples

    def _load(self, name: str) -> tuple[Classifier, ExampleSet]:
        classifier = self._models.defended(name, seed=self._seed)
        self._data.check_answers(classifier)
        labels = tuple(classifier.labels)
        first, classes = self._classes or (name, labels)
        if len(labels) != len(classes):
            raise ModelError(
                f"The models disagree on the classes: {first} has {', '.join(classes)}, {name} has "
                f"{', '.join(labels)}. Give models of the same task."
            )
        self._classes = first, classes
        if labels not in self._examples:
            self._examples[labels] = self._data.examples(labels)
        return classifier, self._examples[labels]


@contextmanager
def marking(store: ResultStore, name: str, stage: str) -> Iterator[None]:
    """Mark a model with the reason if what is done inside fails, and take the mark away if it does not.

    Parameters
    ----------
    store
        Where marks are kept.
    name
        The model.
    stage
        What is done with it, such as "attack"; each has a mark of its own.
    """
    key = f"{stage}/{name}"
    try:
        yield
    except Exception as error:  # whatever a model raises must not cost the others
        reason = str(error) if isinstance(error, StockadeError) else reason_of(error)
        mark(store, name, stage, reason)
    else:
        if key in store.ids(FAILURES):
            mark(store, name, stage, None)


def mark(store: ResultStore, name: str, stage: str, reason: str | None) -> None:
    """Record why a model cannot be used; None that it can.

    Parameters
    ----------
    store, name, stage
        As for `marking`.
    reason
        A sentence.
    """
    store.add(FAILURES, f"{stage}/{name}", {"name": name, "stage": stage, "reason": reason})


def recorded_models(store: ResultStore) -> dict[str, Document]:
    """What is recorded of each model, in the order in which they were first loaded."""
    return {document["name"]: document for document in store.documents(MODELS)}


def recorded_failures(store: ResultStore) -> dict[str, str]:
    """The reasons why models cannot be used, or not to the end: the first of each."""
    failures: dict[str, str] = {}
    for document in store.documents(FAILURES):
        if document["reason"]:
            failures.setdefault(document["name"], document["reason"])
    return failures


def with_recorded(given: Mapping[str, object], recorded: Mapping[str, str], option: str) -> dict[str, object]:
    """The models of a study that is resumed: those it had, and new ones behind them.

    Parameters
    ----------
    given
        What was named now.
    recorded
        What the manifest records.
    option
        What errors call them.
    """
    for name, reference in given.items():
        before = recorded.get(name)
        if before is not None and before != reference_of(reference) and not is_lost_object(before):
            raise OptionError(
                f"{option} {name} of this study is {before}, not {reference_of(reference)}. Name the models of the "
                "study again, in their order, with the new one behind them; or give it another name."
            )
    return {**recorded, **given}


def name_pairs(value: Any, option: str, example: str) -> Any:
    """Pairs such as NAME=MODEL as a mapping; a mapping stays as it is.

    Parameters
    ----------
    value
        A list of strings, or a mapping.
    option
        The option that they were given with.
    example
        What one looks like.
    """
    if value is None:
        return {}
    if isinstance(value, Mapping):
        return dict(value)
    pairs: dict[str, str] = {}
    for item in [value] if isinstance(value, str) else _strings(value, option):
        name, equals, reference = item.partition("=")
        if not equals or not name.strip() or not reference.strip():
            raise OptionError(f"{option} {item} is not of the form NAME=VALUE, such as {option} {example}.")
        pairs[name.strip()] = reference.strip()
    return pairs


def _strings(value: object, option: str) -> Sequence[str]:
    if isinstance(value, list | tuple) and all(isinstance(item, str) for item in value):
        return value
    raise OptionError(f"{option} is {value!r:.60}, expected NAME=VALUE, or a mapping in Python.")
