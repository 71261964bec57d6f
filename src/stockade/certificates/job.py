"""A certification job: everything a run of certificates is made from, told to the manifest and told back by it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from stockade.certificates.medians import corrected_alpha
from stockade.certificates.registry import NamedMethod
from stockade.core.errors import OptionError
from stockade.core.protocols import Classifier
from stockade.datasets.examples import ExampleSet, UnlabelledSet, prepare_examples, prepare_texts
from stockade.datasets.source import DataSource
from stockade.jobs import DataOptions, ModelOptions, describe_data, named_again, reference_of
from stockade.runs.attack import describe_model
from stockade.runs.manifest import make_manifest

COMMAND = "certify"


@dataclass(frozen=True, slots=True)
class CertificationJob:
    """A model, data, methods, and every option that decides what is certified."""

    model: object
    data: object
    methods: tuple[NamedMethod, ...]
    seed: int = 0
    whole_set: bool = False
    """Whether alpha is the chance that any certificate of the run is wrong, instead of each."""
    max_words: int = 5_000
    labelled: bool = True
    """Whether the data tell the true classes."""
    data_options: DataOptions = field(default_factory=DataOptions)
    model_options: ModelOptions = field(default_factory=ModelOptions)

    def __post_init__(self) -> None:
        keys = [named.key for named in self.methods]
        if not keys:
            raise OptionError("No method was named. List them with: stockade ls certificates")
        if len(set(keys)) < len(keys):
            raise OptionError(
                f"A method is named twice: {', '.join(keys)}. Write presets with the name, as in ranmask-gap@fixed."
            )
        if self.max_words < 1:
            raise OptionError(f"max-words must be at least 1, not {self.max_words}.")
        if not self.labelled and any(getattr(named.method, "choose", None) == "label" for named in self.methods):
            raise OptionError("choose=label gives the method the true class, and the data are said to have no labels.")
        if not self.labelled and (self.data_options.label_column or self.data_options.label_map):
            raise OptionError("The data are said to have no labels: leave out --label-column and --label-map.")

    def source(self) -> DataSource:
        """The data, not checked yet."""
        return self.data_options.load(self.data, needs_labels=self.labelled)

    def examples(self, source: DataSource, labels: Sequence[str]) -> ExampleSet | UnlabelledSet:
        """The texts to certify, every row of the data checked."""
        options = self.data_options
        if not self.labelled:
            return prepare_texts(source, limit=options.limit, seed=self.seed)
        return prepare_examples(source, labels, limit=options.limit, seed=self.seed, label_map=options.label_map)

    def prepared(self, texts: int) -> tuple[NamedMethod, ...]:
        """The methods with the alpha that each text has."""
        if not self.whole_set:
            return self.methods
        return tuple(_with_alpha(named, texts) for named in self.methods)

    def manifest(self, classifier: Classifier, examples: ExampleSet | UnlabelledSet) -> dict[str, Any]:
        """The manifest of this job with the model and data it found."""
        config = {
            "seed": self.seed,
            "methods": [
                {**named.described(), "sound": named.method.sound, "threat": named.method.threat}
                for named in self.methods
            ],
            "whole_set": self.whole_set,
            "max_words": self.max_words,
            "labelled": self.labelled,
            "data_options": {**dataclasses.asdict(self.data_options), "label_map": dict(self.data_options.label_map)},
            "model_options": dataclasses.asdict(self.model_options),
        }
        model = describe_model(reference_of(self.model), classifier)
        return make_manifest(COMMAND, config, model, describe_data(self.data, examples))

    @classmethod
    def from_manifest(cls, folder: Path, manifest: Mapping[str, Any]) -> CertificationJob:
        """The job a run was made by, if its model and data can be found again by name."""
        model, data = named_again(folder, manifest)
        config = manifest["config"]
        return cls(
            model,
            data,
            recorded_methods(manifest),
            config["seed"],
            config["whole_set"],
            config["max_words"],
            config.get("labelled", True),
            DataOptions(**config["data_options"]),
            ModelOptions(**config["model_options"]),
        )


def _with_alpha(named: NamedMethod, texts: int) -> NamedMethod:
    if not hasattr(named.method, "alpha"):
        return named
    return replace(named, method=replace(named.method, alpha=corrected_alpha(named.method.alpha, texts)))


def recorded_methods(manifest: Mapping[str, Any]) -> tuple[NamedMethod, ...]:
    """The methods of a run, with every option as it was recorded."""
    return tuple(NamedMethod.from_description(told) for told in manifest["config"]["methods"])


def used_methods(manifest: Mapping[str, Any]) -> dict[str, NamedMethod]:
    """The methods of a run by key, with the alpha that each text had."""
    methods, texts = recorded_methods(manifest), manifest["data"]["size"]
    if manifest["config"]["whole_set"]:
        methods = tuple(_with_alpha(named, texts) for named in methods)
    return {named.key: named for named in methods}
