"""What decides the weights of a training."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self, get_args

from pydantic import Field, PlainSerializer, model_validator

from stockade.core.errors import OptionError, unknown_name
from stockade.experiment.inputs import PYTHON_OBJECT, DataOptions
from stockade.experiment.spec import Defenses, Reference, Spec
from stockade.models.translation import ARCHITECTURES
from stockade.training.options import FREE_ON_RESUME, Task, TrainingOptions, preset, preset_for
from stockade.training.translation_options import TranslationOptions, translation_preset


def _objective_name(objective: object) -> str | None:
    if objective is None or isinstance(objective, str):
        return objective
    kind = objective if hasattr(objective, "__qualname__") else type(objective)
    return f"{PYTHON_OBJECT} ({kind.__module__}.{kind.__qualname__})"


class TrainSpec(Spec):
    """Data, an architecture or a model to begin at, and every option that decides the trained weights.

    Parameters
    ----------
    task
        What the model does: classification or translation.
    data, validation
        References or the data themselves; without validation data a part of each class is held out.
    architecture, model
        An architecture of the zoo or of a translator, or a trained model to train further.
    hold_out
        The share of each class that is held out, where there are no validation data.
    labels
        Class names in the order of the data's labels.
    sources, sizes
        Files that an architecture is built from, and its sizes.
    options
        Every training option, as `TrainingOptions` describes it.
    defenses
        Defenses to train with, or to put around the model, from the outside in.
    objective
        A loss of the user's own.
    data_options
        How the data are read.
    device
        Where it is computed.
    """

    kind: ClassVar[str] = "train"
    free: ClassVar[frozenset[str]] = frozenset(
        {"data", "validation", "model", "hold_out", "labels", "data_options", "device"}
    )
    """How things are called may differ on a resume; what was found behind the names is compared by fingerprint."""
    by_key: ClassVar[tuple[str, ...]] = ()

    task: Task = "classification"
    data: Reference
    validation: Reference = None
    architecture: str | None = None
    model: Reference = None
    hold_out: Annotated[float, Field(gt=0, lt=1)] | None = None
    labels: tuple[str, ...] | None = None
    sources: Mapping[str, str] = Field(default_factory=dict)
    sizes: Mapping[str, Any] = Field(default_factory=dict)
    options: Mapping[str, Any] = Field(default_factory=dict)
    defenses: Defenses = ()
    objective: Annotated[object, PlainSerializer(_objective_name)] = None
    data_options: DataOptions = DataOptions()
    device: str | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.defenses and self.objective is not None:
            raise OptionError("Give an objective of your own or defenses, not both.")
        if self.task == "translation":
            classifying = {
                "defenses": self.defenses,
                "an objective": self.objective,
                "class names": self.labels,
                "word vectors or a checkpoint": self.sources,
                "a map of labels": self.data_options.label_map,
            }
            for what, value in classifying.items():
                if value:
                    raise OptionError(f"A translator cannot be trained with {what}: leave that out.")
        return self

    @classmethod
    def decisive(cls, described: Mapping[str, Any]) -> dict[str, Any]:
        """What must be the same for a training to be resumed."""
        decisive = super().decisive(described)
        kept = {name: value for name, value in decisive["options"].items() if name not in FREE_ON_RESUME}
        if decisive.get("task") == "classification":  # trainings from before there were others do not say it
            del decisive["task"]
        return {**decisive, "options": kept}

    @property
    def training_options(self) -> TrainingOptions:
        """The options as the training loop takes them."""
        return options_type(self.task)().changed(**self.options)

    @property
    def name(self) -> str:
        """What is trained, in a word."""
        return self.architecture or str(self.described()["model"])


def task_of(task: str | None, architecture: str | None) -> Task:
    """The task of a training; by default what the architecture is for."""
    if task is None:
        return "translation" if (architecture or "").lower() in ARCHITECTURES else "classification"
    if task == "translation":
        return "translation"
    if task == "classification":
        return "classification"
    raise unknown_name("task", task, get_args(Task))


def options_type(task: Task) -> type[TrainingOptions]:
    """The class of a task's training options."""
    return TranslationOptions if task == "translation" else TrainingOptions


def options_for(
    task: Task, architecture: str | None, model: object, name: str | None, changes: Mapping[str, Any]
) -> TrainingOptions:
    """The options of a preset, by default the architecture's own, with changes."""
    if task == "translation":
        name = name or ("fast" if model is None else "fine-tune")
        return translation_preset(name, architecture).changed(**changes)
    return preset(name or preset_for(architecture or _kind_of(model))).changed(**changes)


def _kind_of(model: object) -> str:
    """What a trained model is, for the choice of a preset."""
    if isinstance(model, str | Path):
        try:
            config = json.loads((Path(model) / "config.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):  # not a folder: the name says what it is, and loading it says what is wrong
            return str(model)
        return f"{config.get('model_type')} {config.get('_name_or_path', '')}"
    network = model[0] if isinstance(model, tuple | list) and model else model
    return str(getattr(getattr(network, "config", None), "model_type", type(network).__name__))
