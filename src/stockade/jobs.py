"""An attack job: everything a run is made from, told to the manifest and told back by it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stockade.attacks.registry import NamedAttack
from stockade.core.errors import OptionError, RunError
from stockade.core.protocols import Classifier
from stockade.datasets.examples import ExampleSet, UnlabelledSet
from stockade.datasets.load import load_data
from stockade.datasets.source import DataSource
from stockade.defenses.chain import load_defenses, wrap
from stockade.defenses.registry import NamedDefense, make_defense
from stockade.lexicon.neighbours import Neighbours, read_neighbours
from stockade.models.adapters import load_model
from stockade.models.language import LanguageModels
from stockade.runs.attack import DEFAULT_LANGUAGE, describe_model
from stockade.runs.manifest import make_manifest
from stockade.runs.similarity import scale_of

AN_OBJECT = "a Python object"


@dataclass(frozen=True, slots=True)
class DataOptions:
    """How to read the data: which columns, which rows, and what its labels are called by the model."""

    text_column: str | None = None
    label_column: str | None = None
    premise_column: str | None = None
    label_map: Mapping[str, str] = field(default_factory=dict)
    limit: int | None = None

    def load(self, data: object, *, empty_texts: bool = False, needs_labels: bool = True) -> DataSource:
        return load_data(
            data,
            text_column=self.text_column,
            label_column=self.label_column,
            premise_column=self.premise_column,
            empty_texts=empty_texts,
            needs_labels=needs_labels,
        )


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """How to load the model, and what its outputs are."""

    labels: Sequence[str] | None = None
    outputs: str = "probabilities"
    device: str | None = None
    allow_pickle: bool = False
    trust_remote_code: bool = False
    defenses: Sequence[str] = ()
    """What stands around the model, from the outside in; `none` leaves out what its folder says."""

    def load(self, model: object, *, seed: int = 0, language: LanguageModels = DEFAULT_LANGUAGE) -> Classifier:
        """The model inside its defenses: those that were named, else those of its folder."""
        named = self.named_defenses(model)
        return wrap(self.load_bare(model), named, seed=seed, language=language)

    def named_defenses(self, model: object) -> list[NamedDefense]:
        """What stands around a model; those that only train must be in the model already."""
        kept = load_defenses(Path(model)) if isinstance(model, str | Path) else []
        if not self.defenses:
            return kept
        if list(self.defenses) == ["none"]:
            return []
        named = [make_defense(reference) for reference in self.defenses]
        refuse_untrained(named, kept)
        return named

    def load_bare(self, model: object) -> Classifier:
        """The model without any defense."""
        return load_model(
            model,
            labels=self.labels,
            device=self.device,
            outputs=self.outputs,
            allow_pickle=self.allow_pickle,
            trust_remote_code=self.trust_remote_code,
        )


def refuse_untrained(named: Sequence[NamedDefense], kept: Sequence[NamedDefense]) -> None:
    """Those that only train must be among those that the model's folder was trained with."""
    trained = {one.name for one in kept}
    for one in named:
        if not one.entry.answers and one.name not in trained:
            raise OptionError(
                f"{one.name} changes how a model is trained, and this one was not trained with it. Train one with "
                f"stockade train … --defense {one.name} (docs/defenses has a page for it)."
            )


@dataclass(frozen=True, slots=True)
class NeighbourFile:
    """A table of word neighbours, or vectors, of the user's own: what it was called and what was in it."""

    reference: str
    table: Neighbours

    @classmethod
    def read(cls, path: str | Path) -> NeighbourFile:
        return cls(str(path), read_neighbours(path))

    def describe(self) -> dict[str, str]:
        return {"reference": self.reference, "fingerprint": self.table.fingerprint()}


@dataclass(frozen=True, slots=True)
class AttackJob:
    """A model, data, attacks, and every option that decides what they find."""

    model: object
    data: object
    attacks: tuple[NamedAttack, ...]
    seed: int = 0
    budget: int | None = None
    max_words: int = 5_000
    target: str | None = None
    similarity: bool = True
    data_options: DataOptions = DataOptions()
    model_options: ModelOptions = ModelOptions()
    language: LanguageModels = DEFAULT_LANGUAGE
    neighbours: NeighbourFile | None = None

    def manifest(self, classifier: Classifier, examples: ExampleSet) -> dict[str, Any]:
        """The manifest of this job with the model and data it found."""
        config = {
            "seed": self.seed,
            "attacks": [named.described() for named in self.attacks],
            "budget": self.budget,
            "max_words": self.max_words,
            "target": self.target,
            "similarity": scale_of(self.language.encoder_name) if self.similarity else None,
            "mlm": self.language.masked_lm,
            "encoder": self.language.encoder,
            "neighbours": None if self.neighbours is None else self.neighbours.describe(),
            "data_options": {**dataclasses.asdict(self.data_options), "label_map": dict(self.data_options.label_map)},
            "model_options": dataclasses.asdict(self.model_options),
        }
        model = describe_model(reference_of(self.model), classifier)
        return make_manifest("attack", config, model, describe_data(self.data, examples))

    @classmethod
    def from_manifest(cls, folder: Path, manifest: Mapping[str, Any]) -> AttackJob:
        """The job a run was made by, if its model and data can be found again by name."""
        model, data = named_again(folder, manifest)
        config = manifest["config"]
        neighbours = config.get("neighbours")
        return cls(
            model,
            data,
            tuple(NamedAttack.from_description(described) for described in config["attacks"]),
            config["seed"],
            config["budget"],
            config["max_words"],
            config["target"],
            config["similarity"] is not None,
            DataOptions(**config["data_options"]),
            ModelOptions(**config["model_options"]),
            LanguageModels(config["mlm"], config["encoder"]),
            None if neighbours is None else NeighbourFile.read(neighbours["reference"]),
        )


def describe_data(data: object, examples: ExampleSet | UnlabelledSet) -> dict[str, Any]:
    """What the manifest says of the data."""
    return {
        "reference": reference_of(data),
        "fingerprint": examples.fingerprint,
        "rows": examples.total,
        "size": examples.size,
        "label_counts": dict(examples.label_counts),
        "ids": None if examples.ids is None else list(examples.ids),
    }


def named_again(folder: Path, manifest: Mapping[str, Any]) -> tuple[str, str]:
    """The references of the model and the data of a run, if others can find them."""
    model, data = manifest["model"]["reference"], manifest["data"]["reference"]
    if model.startswith(AN_OBJECT) or data.startswith(AN_OBJECT):
        raise RunError(f"{folder} was made from Python objects: resume it from Python, with the same objects.")
    return model, data


def reference_of(given: object) -> str:
    """What a record calls something that a user gave: the reference itself, or that it was an object."""
    if isinstance(given, str | Path):
        return str(given)
    return f"{AN_OBJECT} ({getattr(given, '__qualname__', type(given).__qualname__)})"
