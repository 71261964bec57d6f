"""Models and data as users name them: how they are read, what a manifest records of them, what is checked first."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from stockade.core.errors import ModelError, OptionError, RunError
from stockade.core.protocols import Classifier, EncodingClassifier, Fingerprinted, is_label_only
from stockade.core.text import TextInput
from stockade.datasets.examples import ExampleSet, UnlabelledSet
from stockade.datasets.load import load_data
from stockade.datasets.parallel import ParallelSource, load_parallel
from stockade.datasets.source import DataSource, Skipped
from stockade.defenses.chain import load_defenses
from stockade.defenses.defended import defenses_of, remarks_on
from stockade.defenses.registry import NamedDefense
from stockade.engine.batching import TuningMemory
from stockade.experiment.integrity import commit
from stockade.models.adapters import load_model
from stockade.models.code import code_fingerprint
from stockade.models.ensemble_reference import SCHEME, single_models

PYTHON_OBJECT = "a Python object"
"""How the reference of something begins that was given as an object, and that nobody can find again by name."""
_MODEL_NAME = re.compile(r"[\w.+-]+")
_LONGEST_NAME = 120
_STEADY = 1e-3
"""Probabilities that differ by less are alike: arithmetic in batches is not exact."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataOptions:
    """How to read the data.

    Parameters
    ----------
    text_column, label_column, premise_column
        The columns of the text (of the hypothesis in pairs), of the label and of the premise; guessed if None.
    label_map
        The model's class for a label of the data, where their names differ.
    encoding, delimiter
        Of a text file: its encoding, and what stands between its cells; UTF-8 and what its extension says if None.
    skip_bad_rows
        Leave out rows that cannot be read, and report how many, instead of ending with the first.
    source_column, target_column
        The columns of parallel sentences, for translators; guessed if None.
    language
        The language of the texts, such as "de"; English if None. Attacks that need English resources refuse another.
    """

    text_column: str | None = None
    label_column: str | None = None
    premise_column: str | None = None
    label_map: Mapping[str, str] = field(default_factory=dict)
    encoding: str | None = None
    delimiter: str | None = None
    skip_bad_rows: bool = False
    source_column: str | None = None
    target_column: str | None = None
    language: str | None = None

    def load(self, data: object, *, empty_texts: bool = False, needs_labels: bool = True) -> DataSource:
        """The rows of `data`, which is a reference or an object that `st.load_data` takes."""
        return load_data(
            data,
            text_column=self.text_column,
            label_column=self.label_column,
            premise_column=self.premise_column,
            encoding=self.encoding,
            delimiter=self.delimiter,
            skip_bad_rows=self.skip_bad_rows,
            empty_texts=empty_texts,
            needs_labels=needs_labels,
        )

    def load_parallel(self, data: object) -> ParallelSource:
        """The pairs of sentences of `data`, which is a reference or an object that `load_parallel` takes."""
        return load_parallel(
            data,
            source_column=self.source_column,
            target_column=self.target_column,
            encoding=self.encoding,
            delimiter=self.delimiter,
            skip_bad_rows=self.skip_bad_rows,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelOptions:
    """How to load the model, and what its outputs are.

    Parameters
    ----------
    labels
        Class names in the order of the model's outputs, for models that do not name them.
    outputs
        What the model answers with: `"probabilities"`, `"logits"`, or `"labels"` for one that only names classes. If
        None, what the kind of model says of itself, and probabilities where it says nothing.
    device
        `"cpu"`, `"cuda"`, `"mps"`; the best there is if None.
    allow_pickle
        Load weights that can run code when they are read. Only for files you trust.
    trust_remote_code
        Run the code that comes with a model. Only for models you trust.
    timeout
        How many seconds a call may take. A Python model is asked in a process of its own, which is killed when it takes
        longer; None sets it no limit, and leaves services their own.
    settings
        What only models of one kind need, by name, such as the batch size of a service.
    allow_private
        Ask a service at an address of this machine or of a private network.
    max_cost
        The most that the queries of a model with prices may cost; the job then ends and can be resumed.
    """

    labels: Sequence[str] | None = None
    outputs: str | None = None
    device: str | None = None
    allow_pickle: bool = False
    trust_remote_code: bool = False
    timeout: float | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    allow_private: bool = False
    max_cost: float | None = None

    @property
    def runs_code(self) -> bool:
        """Whether a model loaded with these options may run code of whoever made it."""
        return self.allow_pickle or self.trust_remote_code

    def load(self, model: object) -> Classifier:
        """The model without any defense."""
        return load_model(
            model,
            labels=self.labels,
            device=self.device,
            outputs=self.outputs,
            allow_pickle=self.allow_pickle,
            trust_remote_code=self.trust_remote_code,
            timeout=self.timeout,
            settings=self.settings,
            allow_private=self.allow_private,
            max_cost=self.max_cost,
        )


def defenses_around(model: object, defenses: Sequence[NamedDefense] | None) -> list[NamedDefense]:
    """The defenses of a model: those that were named, else those its folder records.

    One that only acts in training must be among those that the model's folder was trained with.
    """
    is_folder = isinstance(model, str | Path) and not str(model).startswith(SCHEME)  # an ensemble is of bare models
    recorded = load_defenses(Path(str(model))) if is_folder else []
    if defenses is None:
        return recorded
    trained = {defense.name for defense in recorded}
    for defense in defenses:
        if not defense.entry.answers and defense.name not in trained:
            raise OptionError(
                f"{defense.name} changes how a model is trained, and this one was not trained with it. Train one with "
                f"stockade train … --defense {defense.name} (docs/defenses has a page for it)."
            )
    return list(defenses)


def reference_of(value: object) -> str:
    """What a manifest calls a model or data: the reference itself, or that it was a Python object."""
    if isinstance(value, str | Path):
        return str(value)
    return f"{PYTHON_OBJECT} ({getattr(value, '__qualname__', type(value).__qualname__)})"


def is_lost_object(value: object) -> bool:
    """Whether this is the recorded reference of something that was given as a Python object."""
    return isinstance(value, str) and value.startswith(PYTHON_OBJECT)


def findable(value: object, what: str) -> object:
    """The value, unless it is only the record of an object that has to be given again."""
    if is_lost_object(value):
        raise RunError(
            f"{what} was {value}, which no folder can hold: give it again, to result.verify(model) or st.resume in "
            "Python, or by a reference with stockade verify --model."
        )
    return value


def fingerprint_of(classifier: Classifier) -> str | None:
    """The fingerprint of a model; None for one that has none, such as a Python function."""
    return classifier.fingerprint() if isinstance(classifier, Fingerprinted) else None


def describe_model(reference: object, classifier: Classifier) -> dict[str, Any]:
    """What a manifest records of a model."""
    defenses, remarks = defenses_of(classifier), remarks_on(classifier)
    code = code_fingerprint(str(reference)) if isinstance(reference, str | Path) else None
    return {
        "reference": reference_of(reference),
        "labels": list(classifier.labels),
        "deterministic": classifier.deterministic,
        "fingerprint": fingerprint_of(classifier),
        **({"label_only": True} if is_label_only(classifier) else {}),
        **({"code": code} if code else {}),
        **({"defenses": defenses} if defenses else {}),
        **({"remarks": remarks} if remarks else {}),
    }


def describe_data(reference: object, examples: ExampleSet | UnlabelledSet) -> dict[str, Any]:
    """What a manifest records of the data."""
    skipped = getattr(examples.source, "skipped", Skipped(0, ""))
    return {
        "reference": reference_of(reference),
        "fingerprint": examples.fingerprint,
        "rows": examples.total,
        "size": examples.size,
        "label_counts": dict(examples.label_counts),
        "ids": None if examples.ids is None else list(examples.ids),
        "commitment": commit(examples.committed()),
        **({"skipped_rows": {"count": skipped.count, "first": skipped.first}} if skipped.count else {}),
    }


def skipped_rows(data: Mapping[str, Any]) -> list[str]:
    """The warning about rows that were left out; none if all could be read.

    Parameters
    ----------
    data
        What a manifest records of the data.
    """
    skipped = data.get("skipped_rows")
    if not skipped:
        return []
    rows = "1 row" if skipped["count"] == 1 else f"{skipped['count']:,} rows"
    total = data["rows"] + skipped["count"]
    return [f"Skipped {rows} of {total:,} that could not be read; the first: {skipped['first']}"]


def check_answers(classifier: Classifier, item: TextInput) -> None:
    """Ask the model about one text, so that a model of the wrong shape ends the command and not every single example.

    A model that does not know its classes yet learns them here, from a text of the right kind.
    """
    try:
        answer = classifier.predict_proba([item])
    except ModelError:
        raise
    except (Exception, SystemExit):  # one text the model cannot take is recorded with that text, by the engine
        return
    if answer.shape != (1, len(classifier.labels)):
        raise ModelError(
            f"The model answered one text with an array of shape {answer.shape}; expected one row with "
            f"a probability for each of {', '.join(classifier.labels)}."
        )


def unsteady_answers(classifier: Classifier, inputs: Sequence[TextInput]) -> int:
    """How many texts a black box that should always answer alike does not answer alike when it is asked twice.

    Nothing is known of texts that it fails on. Networks that are loaded here are not asked: they do answer alike.
    """
    if not classifier.deterministic or isinstance(classifier, EncodingClassifier):
        return 0
    unsteady = 0
    for item in inputs:
        try:
            first, second = (classifier.predict_proba([item]) for _ in range(2))
        except (Exception, SystemExit):
            continue
        unsteady += not np.allclose(first, second, rtol=0.0, atol=_STEADY, equal_nan=True)
    return unsteady


def tuning_memory(classifier: Classifier) -> TuningMemory | None:
    """Where the best batch size of this model on this device is remembered."""
    fingerprint = fingerprint_of(classifier)
    return None if fingerprint is None else TuningMemory(f"{fingerprint}|{getattr(classifier, 'device', 'cpu')}")


def models_by_name(models: object) -> dict[str, object]:
    """The models of a job by short names that can be folders.

    Parameters
    ----------
    models
        A model, a list of models, or a mapping that names them. A tuple is one model: `(model, tokenizer)`.
    """
    if isinstance(models, Mapping):
        return dict(zip(name_models(tuple(models.values()), tuple(map(str, models))), models.values(), strict=True))
    several = tuple(models) if isinstance(models, list) else (models,)
    return dict(zip(name_models(several, None), several, strict=True))


def name_models(models: Sequence[object], names: Sequence[str] | None) -> tuple[str, ...]:
    """Short names that are different and can be folders.

    Parameters
    ----------
    models
        References or objects.
    names
        Names that the user chose; made from the models if None.
    """
    if names is not None:
        for name in names:
            if not _MODEL_NAME.fullmatch(name) or name in (".", ".."):
                raise OptionError(
                    f'The model name "{name}" cannot be a folder, expected letters, digits, ".", "_", "+" and "-".'
                )
        return tuple(names)
    return unique_names("-".join(_MODEL_NAME.findall(_last_part(model))).strip(".-") or "model" for model in models)


def unique_names(names: Iterable[str]) -> tuple[str, ...]:
    """The names, with a number behind each that was there before: `m`, `m-2`."""
    unique: list[str] = []
    for name in names:
        number = 1
        while (numbered := name if number == 1 else f"{name}-{number}") in unique:
            number += 1
        unique.append(numbered)
    return tuple(unique)


def _last_part(model: object) -> str:
    """Of a reference what stands last, of an ensemble that of all members; of an object its name or its class's."""
    if isinstance(model, str | Path):
        models = [Path(single.rstrip("/").rpartition(":")[2]).name for single in single_models(str(model))]
        name = "+".join(models)
        return name if len(models) == 1 or len(name) <= _LONGEST_NAME else f"ensemble-of-{len(models)}"
    named = model[0] if isinstance(model, tuple | list) and model else model
    return str(getattr(named, "__name__", type(named).__name__))
