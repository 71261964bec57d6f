"""The models and data of a job by name: loaded when they are needed, and then held to what the manifest records.

A finished job is analysed again without loading any of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any

from stockade.core.errors import ModelError, RunError, StockadeError
from stockade.core.protocols import Classifier
from stockade.datasets.examples import ExampleSet, prepare_examples
from stockade.datasets.source import DataSource
from stockade.defenses.chain import wrap
from stockade.defenses.defended import Defended
from stockade.defenses.registry import NamedDefense, make_defense
from stockade.engine.services import innermost
from stockade.experiment.inputs import (
    DataOptions,
    ModelOptions,
    check_answers,
    defenses_around,
    findable,
    fingerprint_of,
    reference_of,
)
from stockade.models.language import LanguageModels


class ModelPool:
    """Models that are loaded when they are asked for, a few at a time.

    Parameters
    ----------
    models
        References or objects by name.
    options
        How they are loaded.
    language
        The masked LM and sentence encoder that defenses may ask.
    held
        How many loaded models are kept; None keeps all.
    """

    def __init__(
        self,
        models: Mapping[str, object],
        options: ModelOptions,
        *,
        language: LanguageModels | None = None,
        held: int | None = 1,
    ) -> None:
        self._models, self._options, self._held = dict(models), options, held
        self._language = language or LanguageModels()
        self._loaded: dict[str, Classifier] = {}
        self._recorded: Mapping[str, str | None] = {}

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._models)

    def hold_to(self, fingerprints: Mapping[str, str | None]) -> None:
        """From now on the bare models must have these fingerprints."""
        self._recorded = fingerprints
        for name, model in self._loaded.items():
            self._check(name, model)

    def reference(self, name: str) -> object:
        """The model as it was given; the record of a lost Python object is refused."""
        return findable(self._models[name], f"The model {name}".rstrip())

    def bare(self, name: str) -> Classifier:
        """The model without any defense."""
        if name not in self._loaded:
            reference = self.reference(name)
            while self._held is not None and len(self._loaded) >= self._held:
                del self._loaded[next(iter(self._loaded))]
            model = self._options.load(reference)
            self._check(name, model)
            self._loaded[name] = model
        return self._loaded[name]

    def defended(self, name: str, defenses: Sequence[NamedDefense] | None = None, *, seed: int = 0) -> Classifier:
        """The model inside defenses: those that are given, else those of its folder."""
        around = defenses_around(self.reference(name), defenses)
        return wrap(self.bare(name), around, seed=seed, language=self._language)

    def _check(self, name: str, model: Classifier) -> None:
        if name in self._recorded and fingerprint_of(model) != self._recorded[name]:
            raise RunError(
                f"The model {name} is not the one the job was begun with (another fingerprint): start again with "
                "another folder."
            )


@contextmanager
def asking() -> Iterator[None]:
    """While a finished job is checked: whatever a model raises, one that cannot be asked is an error of one sentence.

    A job that runs records what a model raises with the text; a check has nothing to record it in.
    """
    try:
        yield
    except StockadeError:
        raise
    except (Exception, SystemExit) as error:
        raise ModelError(
            f"The model cannot be asked again: it raised {type(error).__name__} ({error}). Give one that answers, with "
            "result.verify(model) in Python or stockade verify --model."
        ) from None


def recorded_model(
    reference: object,
    options: ModelOptions,
    defenses: Sequence[NamedDefense] | None,
    recorded: Mapping[str, Any],
    *,
    seed: int,
    language: LanguageModels,
) -> Classifier:
    """The model of a finished job, to ask it again.

    Parameters
    ----------
    reference
        Where it is, or the model itself, with or without the defenses around it.
    options
        How it is loaded.
    defenses
        What the job's spec says of defenses; None: what the model brought.
    recorded
        What the manifest records of the model.
    seed, language
        As for `ModelPool`.
    """
    classifier = ModelPool({"": reference}, options, language=language).defended("", defenses, seed=seed)
    if defenses is None and not isinstance(classifier, Defended):  # it was given inside them, and now it is not
        around = [make_defense(entry["name"], **entry["options"]) for entry in recorded.get("defenses", ())]
        classifier = wrap(classifier, around, seed=seed, language=language)
    return classifier


class DataPool:
    """Data that are read when they are asked for, and must not have changed since the job was begun.

    Parameters
    ----------
    data
        A reference or the data themselves.
    options
        How they are read.
    limit, seed
        The seeded sample that is taken of them.
    needs_labels
        Whether they must have labels.
    """

    def __init__(
        self,
        data: object,
        options: DataOptions,
        *,
        limit: int | None = None,
        seed: int = 0,
        needs_labels: bool = True,
    ) -> None:
        self._data, self.options, self._limit, self._seed = data, options, limit, seed
        self._needs_labels = needs_labels
        self._source: DataSource | None = None
        self._recorded: str | None = None

    @property
    def reference(self) -> object:
        """The data as they were given; the record of a lost Python object is refused."""
        return findable(self._data, "The data")

    def hold_to(self, fingerprint: str) -> None:
        """From now on the data must have this fingerprint."""
        self._recorded = fingerprint
        if self._source is not None:
            self._check(self._source)

    def source(self) -> DataSource:
        """The rows, not checked yet."""
        if self._source is None:
            source = self._load()
            self._check(source)
            self._source = source
        return self._source

    def examples(self, labels: Sequence[str], *, target: int | None = None) -> ExampleSet:
        """The sample with the classes of a model, every row checked."""
        return prepare_examples(
            self.source(),
            labels,
            limit=self._limit,
            seed=self._seed,
            label_map=self.options.label_map,
            target=target,
        )

    def check_answers(self, classifier: Classifier) -> None:
        """Ask a model about the first text, so that one of the wrong shape is an error before anything is done."""
        for row in islice(self.source().rows(), 1):
            check_answers(innermost(classifier), row.input)

    def _load(self) -> DataSource:
        return self.options.load(self.reference, needs_labels=self._needs_labels)

    def _check(self, source: DataSource) -> None:
        if self._recorded is not None and source.fingerprint() != self._recorded:
            raise RunError(
                f"{reference_of(self._data)} has changed since the job was begun: start again with another folder."
            )
