"""The models of a study, loaded when they are needed and once: a finished study is analysed again without any."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from stockade.core.errors import RunError
from stockade.core.protocols import Classifier, Fingerprinted
from stockade.jobs import AN_OBJECT, ModelOptions, reference_of
from stockade.studies.attention.plan import Plan
from stockade.studies.attention.victims import Victim
from stockade.studies.entry import StudyRequest


@dataclass(slots=True)
class Models:
    """What the user gave, by name, and what was loaded of it."""

    request: StudyRequest
    options: ModelOptions = field(init=False)
    _given: dict[str, object] = field(default_factory=dict)
    _loaded: dict[str, Classifier] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.options = self.request.model_options

    def name(self, names: tuple[str, ...]) -> None:
        self._given = dict(zip(names, self.request.models, strict=True))

    def remember(self, plan: Plan, names: tuple[str, ...]) -> None:
        """Models that were not given come from where the plan found them."""
        if self.request.models:
            self.name(names)
        else:
            self._given = {victim.name: victim.reference for victim in plan.victims}
            self.options = plan.model_options

    @property
    def references(self) -> Mapping[str, str]:
        return {name: reference_of(model) for name, model in self._given.items()}

    def all(self) -> dict[str, Classifier]:
        return {name: self._load(name) for name in self._given}

    def given(self, victim: Victim) -> object:
        """The model as it was given, for a run that records what that was."""
        found = self._given[victim.name]
        if isinstance(found, str) and found.startswith(AN_OBJECT):
            raise RunError(
                f"The model {victim.name} was a Python object: resume the study from Python, with the same objects."
            )
        return found

    def loader(self, victim: Victim) -> Callable[[], Classifier]:
        """Loads the model if it is asked for, and makes sure that it is the one of the plan."""

        def load() -> Classifier:
            self.given(victim)
            model = self._load(victim.name)
            fingerprint = model.fingerprint() if isinstance(model, Fingerprinted) else None
            if fingerprint != victim.fingerprint:
                raise RunError(
                    f"The model {victim.name} is not the one the study was begun with (another fingerprint): "
                    "start again with another --out."
                )
            return model

        return load

    def _load(self, name: str) -> Classifier:
        if name not in self._loaded:
            self._loaded[name] = self.options.load(self._given[name])
        return self._loaded[name]
