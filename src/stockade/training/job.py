"""A whole training: data and a name in, a folder with a trained model, its card and its history out."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from stockade.core.files import refuse_existing
from stockade.core.seeds import derive_seed
from stockade.datasets.load import load_data
from stockade.datasets.source import DataSource
from stockade.models.encoding import TextEncoder
from stockade.training import folder as folders
from stockade.training.batches import Batches, WordDropout
from stockade.training.checkpoint import Checkpoints, isolated_generators, seed_all
from stockade.training.data import (
    HOLD_OUT,
    TextSet,
    TrainingData,
    prepare_data,
    prepare_texts,
    rewrite_data,
    rewriting_key,
    save_rewritten,
)
from stockade.training.devices import Device, make_device
from stockade.training.loop import Observer, Training, evaluate_classes, evaluate_loss, fit, make_optimiser
from stockade.training.network import Origin, Start, language_objective, make_encoder, shape_fingerprint
from stockade.training.objective import CrossEntropy, MakeObjective, Objective, Rewrite, TrainingKit, class_weights
from stockade.training.options import FREE_ON_RESUME, TrainingOptions
from stockade.training.recording import Recorder, Trained
from stockade.training.state import State

__all__ = ["Trained", "train"]


def train(
    data: object,
    origin: Origin,
    out: str | Path,
    *,
    options: TrainingOptions,
    validation: object = None,
    hold_out: float = HOLD_OUT,
    labels: tuple[str, ...] | None = None,
    label_map: Mapping[str, str] | None = None,
    objective: Objective | MakeObjective | None = None,
    rewrite: Rewrite | None = None,
    defenses: Sequence[Mapping[str, Any]] = (),
    resume: bool = False,
    device: str | None = None,
    request: Mapping[str, Any] | None = None,
    observe: Observer | None = None,
) -> Trained:
    """Train `origin` on `data` into the folder `out`.

    `data` and `validation` are data sources or references to some; without `validation` a seeded share of each class
    is held out. `objective` changes the loss, or makes what does from a training kit; `rewrite` changes the training
    texts; `defenses` describes both in the record. `request` is kept in the folder's record for whoever
    wants to repeat the training. A folder that is complete already is only read.
    """
    out = Path(out)
    if not resume:
        refuse_existing(out, folders.RECORD)
    read = partial(load_data, empty_texts=True, needs_labels=not origin.is_language_model)
    source, other = read(data), None if validation is None else read(validation)
    with isolated_generators():
        place = make_device(device, options.precision)
        start = origin.load()
        texts = _texts(source, other, origin, start, labels, label_map, hold_out, options.seed)
        key = "" if rewrite is None else rewriting_key(texts, options.seed, defenses)
        if rewrite is not None:
            texts = place.same(partial(rewrite_data, out, texts, rewrite, options.seed, key))
        seed_all(derive_seed(options.seed, "build"))
        model, tokenizer = _model(origin, start, texts, options.seed)
        training = _training(model, tokenizer, texts, objective, place, options, start is not None)
        config = _config(origin, start, model, texts, options, objective, defenses, request or {})
        place.same(partial(folders.begin, out, config, resume))
        if rewrite is not None:
            place.same(partial(save_rewritten, out, texts, key))
        record = folders.read_record(out)
        if record["complete"]:
            return Trained.read(out, record)
        with folders.locked(out) if place.rank == 0 else nullcontext():
            fingerprint = hashlib.sha256(json.dumps(folders.decisive(config), sort_keys=True).encode()).hexdigest()
            checkpoints = Checkpoints(out / folders.CHECKPOINT, fingerprint, model, training.optimiser, place)
            recorder = Recorder(out, config, texts, observe)
            seed_all(derive_seed(options.seed, "train", place.rank))
            state = checkpoints.load() or State()
            fit(training, state, checkpoints, recorder.watch(state) if place.rank == 0 else _nobody)
            place.same(partial(_finish, checkpoints, recorder, model, tokenizer, state))
        place.close()
        assert state.best is not None
        return Trained(out, texts.classes, tuple(state.history), state.best, state.seconds, texts.warnings)


def _finish(checkpoints: Checkpoints, recorder: Recorder, model: Any, tokenizer: Any, state: State) -> None:
    checkpoints.load_best(state)
    recorder.end(model.eval(), tokenizer, state)


def _nobody(_: object) -> None:
    """The observer of every process but the first."""


def _texts(
    source: DataSource,
    validation: DataSource | None,
    origin: Origin,
    start: Start | None,
    labels: tuple[str, ...] | None,
    label_map: Mapping[str, str] | None,
    hold_out: float,
    seed: int,
) -> TrainingData:
    if origin.is_language_model:
        return prepare_texts(source, validation, hold_out=hold_out, seed=seed)
    classes = labels if start is None else start.classes
    return prepare_data(source, validation, classes=classes, label_map=label_map, hold_out=hold_out, seed=seed)


def _model(origin: Origin, start: Start | None, texts: TrainingData, seed: int) -> tuple[Any, Any]:
    if start is not None:
        return start.model, start.tokenizer
    return origin.build(texts.train.inputs, texts.classes, seed)


def _training(
    network: Any,
    tokenizer: Any,
    texts: TrainingData,
    objective: Objective | MakeObjective | None,
    place: Device,
    options: TrainingOptions,
    trained: bool,
) -> Training:
    """Everything the loop needs; nothing is written yet, so what does not fit together leaves no folder behind."""
    network.to(place.device)
    encoder = make_encoder(network, tokenizer, options.max_length)
    dropout = WordDropout.of(options.word_dropout, encoder)
    goal = _objective(network, tokenizer, texts, place, options)
    if callable(objective):
        part = texts.train
        goal = objective(
            TrainingKit(
                network=network,
                tokenizer=tokenizer,
                encoder=encoder,
                classes=texts.classes,
                inputs=part.inputs,
                labels=part.labels,
                plain=goal,
                seed=options.seed,
                trained=trained,
            )
        )
    elif objective is not None:
        goal = objective
    train = _batches(texts.train, encoder, place, options, dropout, place.rank, place.world)
    validation = _batches(texts.validation, encoder, place, options)
    evaluate = (
        partial(evaluate_classes, network, validation, goal, len(texts.classes))
        if texts.classes
        else partial(evaluate_loss, network, validation, goal)
    )
    model, optimiser = place.prepare(network, make_optimiser(network, options))
    return Training(
        model=model,
        optimiser=optimiser,
        objective=goal,
        batches=train,
        evaluate=evaluate,
        device=place,
        options=options,
    )


def _batches(
    texts: TextSet,
    encoder: TextEncoder,
    place: Device,
    options: TrainingOptions,
    dropout: WordDropout | None = None,
    rank: int = 0,
    world: int = 1,
) -> Batches:
    return Batches(
        inputs=texts.inputs,
        labels=np.array(texts.labels, dtype=np.int64),
        encoded=encoder.encode(texts.inputs),
        encoder=encoder,
        size=options.batch,
        seed=options.seed,
        device=place.device,
        backward=place.backward,
        dropout=dropout,
        rank=rank,
        world=world,
        epochs=options.epochs,
    )


def _objective(network: Any, tokenizer: Any, texts: TrainingData, place: Device, options: TrainingOptions) -> Objective:
    if not texts.classes:
        return language_objective(network, tokenizer, texts.train.inputs)
    weights = class_weights(options.class_weights, texts.train.labels, texts.classes)
    return CrossEntropy(None if weights is None else weights.to(place.device))


def _config(
    origin: Origin,
    start: Start | None,
    model: Any,
    texts: TrainingData,
    options: TrainingOptions,
    objective: Objective | MakeObjective | None,
    defenses: Sequence[Mapping[str, Any]],
    request: Mapping[str, Any],
) -> dict[str, Any]:
    """What decides the trained weights; a training is resumed only if nothing of it differs."""
    kept = {name: value for name, value in options.described().items() if name not in FREE_ON_RESUME}
    config = {
        "architecture": origin.architecture,
        "model": None if start is None else f"{origin.name} {start.fingerprint[:16]}",
        "shapes": shape_fingerprint(model),
        "sources": dict(origin.sources),
        "sizes": dict(origin.sizes),
        "objective": None if objective is None or defenses else _name_of(objective),
        "defenses": list(defenses),
        "options": kept,
        "data": texts.described(),
        "request": dict(request),
    }
    return json.loads(json.dumps(config))  # type: ignore[no-any-return]


def _name_of(objective: Objective | MakeObjective) -> str:
    kind = objective if hasattr(objective, "__qualname__") else type(objective)
    return f"{kind.__module__}.{kind.__qualname__}"
