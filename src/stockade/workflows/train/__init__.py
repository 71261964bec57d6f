"""Train a text classifier of the zoo or a translator, or train a model further, with or without defenses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stockade.core.errors import OptionError, unknown_name
from stockade.experiment.inputs import DataOptions
from stockade.experiment.progress import Observer, Runtime

if TYPE_CHECKING:
    from stockade.training.objective import Objective
    from stockade.workflows.train.result import TrainResult

_ARGUMENTS = (
    "task",
    "architecture",
    "model",
    "validation",
    "hold_out",
    "preset",
    "labels",
    "sources",
    "sizes",
    "objective",
    "defenses",
    "device",
)


def train(
    data: object,
    architecture: str | None = None,
    *,
    out: str | Path,
    task: str | None = None,
    model: object = None,
    validation: object = None,
    hold_out: float | None = None,
    preset: str | None = None,
    labels: Sequence[str] | None = None,
    sources: Mapping[str, str] | None = None,
    sizes: Mapping[str, Any] | None = None,
    objective: Objective | None = None,
    defenses: object = (),
    resume: bool = False,
    device: str | None = None,
    data_options: DataOptions | None = None,
    observer: Observer | None = None,
    **options: Any,
) -> TrainResult:
    """Train a text classifier or a translator; the folder `out` is a Hugging Face model folder.

    Parameters
    ----------
    data
        What `st.attack` takes; for a translator parallel sentences, as files or as a list of (source, target).
    architecture
        A name of the zoo, such as `"CNN-W-GloVe-1"` or `"MiniLM-L6"` (`stockade ls models`), or a translator:
        `"transformer-mt"`, `"bilstm-mt"`.
    out
        The folder of the trained model.
    task
        `"classification"` or `"translation"`; by default what the architecture is for.
    model
        A trained model to train further, in place of an architecture.
    validation
        Data to validate on; without them a part of each class is held out.
    hold_out
        The share that is held out; a tenth by default.
    preset
        Training options by name; the architecture's own by default.
    labels
        Class names in the order of the data's labels.
    sources
        Files of your own that the architecture is built from: `glove`, `word2vec`, `fasttext`, `elmo`, `checkpoint`.
    sizes
        Sizes of the architecture, other than its defaults.
    objective
        A loss of your own.
    defenses
        Defenses to train with, or to put around the model, by name, as objects or a list of them from the outside in.
    resume
        Go on with the interrupted training in `out`; it ends with the weights of an unbroken one.
    device
        `"cpu"`, `"cuda"`, `"mps"`; the best there is by default.
    data_options
        How the data are read.
    observer
        Called with a `Progress` after each step.
    **options
        Training options, in place of the preset's: `epochs`, `batch`, `learning_rate`, `patience`, `seed` …
    """
    from stockade.workflows.train.run import WORKFLOW
    from stockade.workflows.train.spec import TrainSpec, options_for, options_type, task_of

    purpose = task_of(task, architecture)
    names = {field.name for field in fields(options_type(purpose))}
    for name in options.keys() - names:
        raise unknown_name("training option", name, {*names, *_ARGUMENTS})
    if data is None:
        raise OptionError("There is no data to train on: give some, as in: stockade train reviews.csv --arch …")
    spec = TrainSpec.of(
        task=purpose,
        data=data,
        validation=validation,
        architecture=architecture,
        model=model,
        hold_out=hold_out,
        labels=None if labels is None else tuple(labels),
        sources=sources or {},
        sizes=sizes or {},
        options=options_for(purpose, architecture, model, preset, options).described(),
        defenses=() if defenses is None else defenses,
        objective=objective,
        data_options=data_options or DataOptions(),
        device=device,
    )
    result: TrainResult = WORKFLOW.start(spec, out, Runtime(observer=observer), resume=resume)
    return result


def is_classifier(folder: Path) -> bool:
    """Whether the training in a folder made a classifier, rather than a language model or a translator."""
    from stockade.workflows.train.result import TrainResult

    return bool(TrainResult.open(folder).classes)
