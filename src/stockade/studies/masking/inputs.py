"""The models and data of a study, loaded when a part needs them: a finished study is analysed again without any."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from pathlib import Path

from stockade.core.errors import RunError
from stockade.core.protocols import Classifier, Fingerprinted
from stockade.datasets.examples import ExampleSet, prepare_examples
from stockade.datasets.source import DataSource
from stockade.engine.scheduler import innermost
from stockade.jobs import AN_OBJECT, DataOptions, ModelOptions, reference_of
from stockade.runs.attack import check_answers
from stockade.studies.entry import StudyRequest
from stockade.studies.masking.plan import Plan, Settings, now
from stockade.studies.masking.victims import Victim, check_rates, describe_victim, masking_of


class Inputs:
    """What the user gave, or what the plan says that was; one model at a time is held."""

    def __init__(
        self, models: Mapping[str, object], data: object, data_options: DataOptions, model_options: ModelOptions
    ) -> None:
        self._models, self._data = models, data
        self.data_options, self.model_options = data_options, model_options
        self._held: tuple[str, Classifier] | None = None
        self._source: DataSource | None = None

    @classmethod
    def of(cls, request: StudyRequest, names: tuple[str, ...]) -> Inputs:
        models = dict(zip(names, request.models, strict=True))
        return cls(models, request.data, request.data_options, request.model_options)

    @classmethod
    def of_plan(cls, plan: Plan) -> Inputs:
        models = {victim.name: victim.reference for victim in plan.victims}
        return cls(models, plan.data, plan.data_options, plan.model_options)

    def make_plan(self, settings: Settings) -> Plan:
        """Look at every model and all data once, so that what cannot be used is an error before anything is asked."""
        check_rates({name: masking_of(name, given) for name, given in self._models.items()}, bool(settings.attacks))
        victims, texts = [], None
        for name, given in self._models.items():
            model = self._load(name, settings.seed)
            for row in islice(self._load_data().rows(), 1):
                check_answers(innermost(model), row.input)
            victims.append(describe_victim(name, reference_of(given), given, model))
            texts = self._examples(model, settings)
        assert texts is not None
        return Plan(
            tuple(sorted(victims, key=lambda victim: victim.rate)),
            reference_of(self._data),
            texts.fingerprint,
            texts.size,
            texts.total,
            settings,
            self.data_options,
            self.model_options,
            now(),
        )

    def given(self, victim: Victim) -> object:
        return _findable(self._models[victim.name], f"The model {victim.name}")

    def data(self) -> object:
        return _findable(self._data, "The data")

    def model(self, victim: Victim, plan: Plan) -> Classifier:
        """The model in its masking, which must be the one of the plan."""
        model = self._load(victim.name, plan.settings.seed)
        if (model.fingerprint() if isinstance(model, Fingerprinted) else None) != victim.fingerprint:
            raise RunError(
                f"The model {victim.name} is not the one the study was begun with (another fingerprint): start again "
                "with another --out."
            )
        return model

    def examples(self, victim: Victim, plan: Plan) -> ExampleSet:
        """The texts with the classes of a model; they must be those of the plan."""
        found = self._examples(self.model(victim, plan), plan.settings)
        if found.fingerprint != plan.data_fingerprint:
            raise RunError("The data have changed since the study was begun: start again with another --out.")
        return found

    def _examples(self, model: Classifier, settings: Settings) -> ExampleSet:
        return prepare_examples(
            self._load_data(),
            model.labels,
            limit=settings.limit,
            seed=settings.seed,
            label_map=self.data_options.label_map,
        )

    def _load(self, name: str, seed: int) -> Classifier:
        if self._held is None or self._held[0] != name:
            self._held = None
            given = _findable(self._models[name], f"The model {name}")
            self._held = (name, self.model_options.load(given, seed=seed))
        return self._held[1]

    def _load_data(self) -> DataSource:
        if self._source is None:
            self._source = self.data_options.load(self.data())
        return self._source


def _findable(given: object, what: str) -> object:
    if isinstance(given, str | Path) and str(given).startswith(AN_OBJECT):
        raise RunError(f"{what} was a Python object: resume the study from Python, with the same objects.")
    return given
