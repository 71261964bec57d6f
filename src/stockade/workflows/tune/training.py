"""Trials of a defense that acts in training: each trains the model further with its options, in a folder of its own.

A training that was interrupted goes on from its checkpoint. Of the finished ones only the model of the best trial so
far is kept: the others can be trained again from their options.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from stockade.core.protocols import Classifier
from stockade.defenses.registry import NamedDefense
from stockade.experiment.inputs import reference_of
from stockade.experiment.progress import Observer, Runtime, within
from stockade.training.data import HOLD_OUT, prepare_data
from stockade.training.network import Origin
from stockade.workflows.tune.trials import Trial, best_of

if TYPE_CHECKING:
    from stockade.workflows.tune.spec import TuneSpec

TRIALS_FOLDER = "trials"


def trial_folder(folder: Path, number: int) -> Path:
    """Where the model of a trial is trained.

    Parameters
    ----------
    folder, number
        The folder of the search, and which trial.
    """
    return folder / TRIALS_FOLDER / str(number)


def train_trial(
    spec: TuneSpec, defense: NamedDefense, folder: Path, number: int, observer: Observer | None = None
) -> Classifier:
    """The model of a search, trained further with a defense; one that is trained already is only loaded.

    Parameters
    ----------
    spec
        The model to begin at, the texts to train on, and how.
    defense
        The defense with the options of the trial.
    folder, number
        The folder of the search, and which trial.
    observer
        Called with a `Progress` after each step.
    """
    from stockade.workflows.train.run import run
    from stockade.workflows.train.spec import TrainSpec

    training = TrainSpec.of(
        data=spec.train_data,
        model=spec.model,
        options=spec.train_options,
        defenses=(defense,),
        data_options=spec.data_options,
        device=spec.model_options.device,
    )
    trained = run(
        training, trial_folder(folder, number), Runtime(observer=within(f"trial {number}", observer)), resume=True
    )
    return spec.model_options.load(trained.folder)


def describe_training(spec: TuneSpec, labels: tuple[str, ...]) -> dict[str, str]:
    """What the manifest records of the texts that trials train on; what no training could do without is an error.

    Parameters
    ----------
    spec
        The search.
    labels
        The classes of the model, which must be those of the texts.
    """
    Origin(model=spec.model, device=spec.model_options.device).load()
    source = spec.data_options.load(spec.train_data, empty_texts=True)
    seed = int(spec.train_options["seed"])
    prepare_data(source, None, classes=labels, label_map=spec.data_options.label_map, hold_out=HOLD_OUT, seed=seed)
    return {"reference": reference_of(spec.train_data), "fingerprint": source.fingerprint()}


def keep_best(folder: Path, trials: Iterable[Trial]) -> None:
    """Remove the models of all finished trials but the best.

    Parameters
    ----------
    folder
        Of the search.
    trials
        Those that have ended.
    """
    finished = list(trials)
    best = best_of(finished)
    for trial in finished:
        if best is None or trial.number != best.number:
            shutil.rmtree(trial_folder(folder, trial.number), ignore_errors=True)
