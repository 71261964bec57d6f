"""The models, texts and pre-made adversarial texts of an evaluation, loaded when they are needed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stockade.core.errors import OptionError, RunError
from stockade.core.protocols import Classifier
from stockade.datasets.examples import ExampleSet, prepare_examples
from stockade.datasets.source import DataSource
from stockade.defenses.registry import NamedDefense
from stockade.experiment.inputs import defenses_around, describe_data, describe_model, fingerprint_of, reference_of
from stockade.experiment.pool import DataPool, ModelPool
from stockade.workflows.evaluate.premade import attempts_of, load_premade
from stockade.workflows.evaluate.spec import DefenseChain, EvaluateSpec, records_defense
from stockade.workflows.evaluate.views import views_of

_RECORDED = ("reference", "fingerprint", "code", "labels")


class EvaluationInputs:
    """What an evaluation is about; one model at a time is held, and the source of transferred texts.

    Parameters
    ----------
    spec
        Names or objects, and how they are loaded.
    """

    def __init__(self, spec: EvaluateSpec) -> None:
        self.spec = spec
        self._models = ModelPool(spec.models, spec.model_options, language=spec.language)
        self._source = ModelPool({"": spec.transfer_from}, spec.model_options, language=spec.language)
        self._data = DataPool(spec.data, spec.data_options, limit=spec.limit, seed=spec.seed)
        self._premade = {name: PremadePool(data, spec.data_options) for name, data in spec.premade.items()}
        self._examples: dict[str, ExampleSet] = {}
        self._checked: Classifier | None = None

    def described(self) -> dict[str, Any]:
        """What the manifest records of the models and data.

        Every model and all data are looked at, so that what cannot be used is an error before anything is asked.
        """
        spec, models, data, sizes = self.spec, {}, {}, {}
        spec.language.check()
        from_folder = any(chain.defenses is None for chain in spec.defenses)
        if from_folder and not any(map(records_defense, spec.models.values())):
            raise OptionError(
                "The defense own is what the folder of a model records, and no folder here records one that acts when "
                "the model is asked (there is no such defense.json). Name a defense, or leave own out."
            )
        for name in spec.models:
            model = self.model(name)
            data = describe_data(spec.data, self.examples(name))
            sizes = {premade: self.premade(premade, name).size for premade in spec.premade}
            described = describe_model(spec.models[name], model)
            models[name] = {
                **{key: value for key, value in described.items() if key in _RECORDED},
                "records_defense": records_defense(spec.models[name]),
            }
            self.views(name, model)  # classes that do not fit are an error before anything is asked
        return {
            "models": models,
            "data": data,
            "premade": {
                name: {"reference": reference_of(value), "fingerprint": self._fingerprint(name), "size": sizes[name]}
                for name, value in spec.premade.items()
            },
            "attacks": {attack.key: dict(attack.resources) for attack in spec.attacks},
            "source": None if self.source is None else fingerprint_of(self.source),
        }

    def hold_to(self, recorded: Mapping[str, Any]) -> None:
        """From now on models and data must be those that the manifest records."""
        self._models.hold_to({name: model["fingerprint"] for name, model in recorded["models"].items()})
        self._source.hold_to({"": recorded["source"]})
        self._data.hold_to(recorded["data"]["fingerprint"])
        for name, premade in self._premade.items():
            premade.hold_to(recorded["premade"][name]["fingerprint"])

    def model(self, name: str) -> Classifier:
        """The bare model."""
        model = self._models.bare(name)
        if model is not self._checked:  # a model that does not know its classes yet learns them from a text
            self._data.check_answers(model)
            self._checked = model
        return model

    def defenses(self, name: str, chain: DefenseChain) -> tuple[NamedDefense, ...]:
        """The defenses of a chain around a model; what it lacks for them is an error of one sentence."""
        around = tuple(defenses_around(self._models.reference(name), chain.defenses))
        if chain.defenses is None and not around:
            raise OptionError("the folder of the model names no defense (there is no defense.json)")
        return around

    def defended(self, name: str, chain: DefenseChain, seed: int) -> Classifier:
        """The model inside a chain of defenses."""
        self.model(name)
        return self._models.defended(name, self.defenses(name, chain), seed=seed)

    def check_row(self, name: str, chain: DefenseChain, seed: int, fingerprint: str | None) -> Classifier:
        """The model inside a chain, which must be what it was when its row was begun, to the last file it reads."""
        classifier = self.defended(name, chain, seed)
        if fingerprint_of(classifier) != fingerprint:
            raise RunError(
                f"{chain.name} around {name} is not what the evaluation was begun with (another fingerprint; has a "
                "file changed that it reads?): start again with another folder."
            )
        return classifier

    @property
    def source(self) -> Classifier | None:
        """The model that texts are transferred from."""
        return None if self.spec.transfer_from is None else self._source.bare("")

    def views(self, name: str, classifier: Classifier) -> dict[str, Classifier | None]:
        """What searches query in each view of a row."""
        source = self.source
        if source is not None and source.labels != classifier.labels:
            raise OptionError(
                f"--transfer-from has the classes {', '.join(source.labels)}, and {name} "
                f"{', '.join(classifier.labels)}: expected the same in the same order."
            )
        return views_of(classifier, self.spec.eot_samples, self.spec.language, source)

    def examples(self, name: str) -> ExampleSet:
        """The texts of the evaluation with the classes of a model; the same texts for all."""
        if name not in self._examples:
            self._examples[name] = self._data.examples(self.model(name).labels)
        return self._examples[name]

    def premade(self, premade: str, name: str) -> ExampleSet:
        """The texts of a pre-made set with the classes of a model."""
        label_map = self.spec.data_options.label_map
        return prepare_examples(self._premade[premade].source(), self.model(name).labels, label_map=label_map)

    def attempts(self, premade: str) -> tuple[str, ...]:
        """What became of the attempt on each text of a pre-made set; nothing where the set does not say."""
        return attempts_of(self._premade[premade].source())

    def _fingerprint(self, premade: str) -> str:
        return self._premade[premade].source().fingerprint()


class PremadePool(DataPool):
    """Adversarial texts, read when they are asked for."""

    def _load(self) -> DataSource:
        columns = {name: getattr(self.options, name) for name in ("text_column", "label_column", "premise_column")}
        return load_premade(self.reference, columns)
