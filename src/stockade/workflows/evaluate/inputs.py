"""The models, texts and pre-made adversarial texts of an evaluation, loaded when they are needed.

Pre-made texts may be an export of ours, a file with original and changed texts, or any labelled data. In a file with a
column of changed texts the successes are taken, where a column says which those are, with the true label. Double
brackets around changed words, as some tools write them, are removed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from stockade.core.errors import DataError, OptionError, RunError
from stockade.core.protocols import Classifier
from stockade.datasets.columns import LABEL_NAMES
from stockade.datasets.examples import ExampleSet, prepare_examples
from stockade.datasets.files import open_file
from stockade.datasets.load import load_data
from stockade.datasets.source import DataSource, Table, is_missing
from stockade.defenses.registry import NamedDefense
from stockade.experiment.inputs import defenses_around, describe_data, describe_model, fingerprint_of, reference_of
from stockade.experiment.pool import DataPool, ModelPool
from stockade.workflows.evaluate.spec import DefenseChain, EvaluateSpec, records_defense
from stockade.workflows.evaluate.views import views_of

CHANGED_NAMES = ("adversarial", "adversarialtext", "perturbedtext", "perturbed", "advtext", "attackedtext")
_RECORDED = ("reference", "fingerprint", "code", "labels")
_STATUS_NAMES = ("status", "resulttype", "result")
_SUCCESSES = ("success", "successful")
_TRUE_LABEL_NAMES = ("groundtruthoutput", "groundtruth", "truelabel", "goldlabel", *LABEL_NAMES)
_BRACKETS = re.compile(r"\[\[(.*?)\]\]")


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
        self._premade = {name: _PremadePool(data, spec.data_options) for name, data in spec.premade.items()}
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

    def _fingerprint(self, premade: str) -> str:
        return self._premade[premade].source().fingerprint()


class _PremadePool(DataPool):
    """Adversarial texts, read when they are asked for."""

    def _load(self) -> DataSource:
        columns = {name: getattr(self.options, name) for name in ("text_column", "label_column", "premise_column")}
        return load_premade(self.reference, columns)


def load_premade(data: object, columns: Mapping[str, str | None] | None = None) -> DataSource:
    """The adversarial texts behind a reference, with their true labels.

    Parameters
    ----------
    data
        What `st.load_data` takes.
    columns
        The columns that the user has named for the data (`text_column` …). A file that has them too is read by them
        where its own names do not say what is what.
    """
    if not isinstance(data, str | Path) or str(data).startswith(("builtin:", "hf:")):
        return load_data(data)
    table = open_file(Path(data))
    present: dict[str, Any] = {option: column for option, column in (columns or {}).items() if column in table.columns}
    changed = _find(table, CHANGED_NAMES)
    if changed is None:
        return load_data(data, **present)
    label = _find(table, _TRUE_LABEL_NAMES) or present.get("label_column")
    if label is None:
        raise DataError(
            f'{table.name} has changed texts in "{changed}" but no true labels (found: {", ".join(table.columns)}), '
            "expected a column such as label or ground_truth_output. Add it, or rename the one that has them."
        )
    rows = list(_rows(table, changed, label))
    if not rows:
        raise DataError(
            f'{table.name} has no text in "{changed}" that is said to be a success, expected at least one. '
            "Give another --premade file."
        )
    return load_data(rows)


def _rows(table: Table, changed: str, label: str) -> Iterator[tuple[object, object]]:
    columns = (_find(table, _STATUS_NAMES), _find(table, ("premise",)), _find(table, ("adversarialpremise",)))
    for text, true_label, *others in table.cells((changed, label, *filter(None, columns))):
        cells = iter(others)
        status, premise, edited = (None if column is None else next(cells) for column in columns)
        if is_missing(text) or (columns[0] and str(status).strip().casefold() not in _SUCCESSES):
            continue
        plain = _BRACKETS.sub(r"\1", str(text))
        before = premise if is_missing(edited) else edited
        yield (plain if is_missing(before) else (str(before), plain)), true_label


def _find(table: Table, names: Sequence[str]) -> str | None:
    by_key = {re.sub(r"[\s_\-]+", "", column).casefold(): column for column in reversed(table.columns)}
    return next((by_key[name] for name in names if name in by_key), None)
