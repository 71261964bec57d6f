"""Puts together what the training loop needs: batches, objective, optimiser, evaluation. Nothing is written yet."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from stockade.models.encoding import TextEncoder
from stockade.training.batches import Batches, WordDropout
from stockade.training.data import TextSet, TrainingData
from stockade.training.devices import Device
from stockade.training.loop import Training, evaluate_classes, evaluate_loss, make_optimiser
from stockade.training.network import language_objective, make_encoder
from stockade.training.objective import CrossEntropy, MakeObjective, Objective, TrainingKit, class_weights
from stockade.training.options import TrainingOptions


def make_training(
    network: Any,
    tokenizer: Any,
    texts: TrainingData,
    objective: Objective | MakeObjective | None,
    place: Device,
    options: TrainingOptions,
    *,
    trained: bool,
) -> Training:
    """Everything the loop needs; what does not fit together is an error before a folder is made.

    Parameters
    ----------
    network, tokenizer
        The model that is trained.
    texts
        Training and validation texts.
    objective
        A loss, or what makes one from a training kit; None is cross-entropy.
    place
        Where it is computed.
    options
        How it is trained.
    trained
        Whether the training starts from a trained model.
    """
    network.to(place.device)
    encoder = make_encoder(network, tokenizer, options.max_length)
    dropout = WordDropout.of(options.word_dropout, encoder)
    loss = _plain_objective(network, tokenizer, texts, place, options)
    if callable(objective):
        loss = objective(
            TrainingKit(
                network=network,
                tokenizer=tokenizer,
                encoder=encoder,
                classes=texts.classes,
                inputs=texts.train.inputs,
                labels=texts.train.labels,
                plain=loss,
                seed=options.seed,
                trained=trained,
            )
        )
    elif objective is not None:
        loss = objective
    train = _batches(texts.train, encoder, place, options, dropout, place.rank, place.world)
    validation = _batches(texts.validation, encoder, place, options)
    evaluate = (
        partial(evaluate_classes, network, validation, loss, len(texts.classes))
        if texts.classes
        else partial(evaluate_loss, network, validation, loss)
    )
    model, optimiser = place.prepare(network, make_optimiser(network, options))
    return Training(
        model=model,
        optimiser=optimiser,
        objective=loss,
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


def _plain_objective(
    network: Any, tokenizer: Any, texts: TrainingData, place: Device, options: TrainingOptions
) -> Objective:
    if not texts.classes:
        return language_objective(network, tokenizer, texts.train.inputs)
    weights = class_weights(options.class_weights, texts.train.labels, texts.classes)
    return CrossEntropy(None if weights is None else weights.to(place.device))
