"""The training loop: batches, loss, backward pass, step, and after each epoch the validation.

Everything it needs is made elsewhere: the batches, the objective (the loss), the device (where and how precisely), the
checkpoints (what survives a crash).
"""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from types import FrameType

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from stockade.core.errors import InputError
from stockade.training.averaging import WeightAverage
from stockade.training.batches import Batches, BatchSource
from stockade.training.checkpoint import Checkpoints
from stockade.training.devices import Device
from stockade.training.objective import Batch, Objective, logits_of, validation_batch
from stockade.training.options import Schedule, TrainingOptions
from stockade.training.state import Evaluation, State

_MOST_CONFUSED = 50
"""Which classes are taken for which is kept up to so many classes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a training is: observers get one after each step, and one with `finished` after each epoch."""

    epoch: int
    epochs: int
    step: int
    steps: int
    loss: float
    validation: Evaluation | None
    """Of the last epoch that has ended."""
    finished: bool = False


Observer = Callable[[Progress], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """A model with all that it is trained with.

    `model` is what the loop calls: the network, or what stands around it where several processes train together.
    `average` holds the weights of the last epochs, whose mean is validated and saved; None for those of the last alone.
    """

    model: nn.Module
    optimiser: torch.optim.Optimizer
    objective: Objective
    batches: BatchSource
    evaluate: Callable[[], Evaluation]
    device: Device
    options: TrainingOptions
    average: WeightAverage | None = None

    @property
    def steps(self) -> int:
        return self.options.epochs * self.batches.per_epoch

    def rate(self, step: int) -> float:
        """The learning rate of a step."""
        options = self.options
        texts = options.schedule_unit == "texts"
        length = options.epochs * len(self.batches.inputs) if texts else self.steps
        warm = options.warm_up_length(length)
        return options.learning_rate * rate_factor(options.schedule, step, length, warm)


def rate_factor(schedule: Schedule, step: int, steps: int, warm: int = 0) -> float:
    """The factor of the learning rate at `step` (from 0) of `steps`.

    It rises linearly through the first `warm` steps, then falls linearly to zero, along half a cosine to zero, with the
    square root of the step, or stays. A function of the step alone: a checkpoint has nothing to save of it.
    """
    if step < warm:
        return (step + 1) / warm
    if schedule == "inverse-sqrt":
        return math.sqrt(max(1, warm) / (step + 1))
    done = (step - warm) / max(1, steps - warm)
    if schedule == "linear":
        return max(0.0, 1.0 - done)
    if schedule == "cosine":
        return 0.5 * (1.0 + math.cos(math.pi * min(1.0, done)))
    return 1.0


def make_optimiser(model: nn.Module, options: TrainingOptions) -> torch.optim.Optimizer:
    """AdamW over the weights that may be trained."""
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    fused = all(weight.device.type in ("cpu", "cuda") and weight.is_floating_point() for weight in weights)
    return torch.optim.AdamW(weights, fused=fused, **options.adam)


def fit(training: Training, state: State, checkpoints: Checkpoints, observe: Observer) -> State:
    """Train from where `state` stands to the end; `checkpoints` then has the weights of the best epoch.

    Stops early after `patience` epochs without a better validation score. Ctrl-C finishes the step, saves and raises.
    """
    options, saved = training.options, time.monotonic()
    started = time.monotonic() - state.seconds
    with gentle_interrupt() as interrupted:
        while state.epoch < options.epochs and not state.out_of_patience(options.patience):
            training.model.train()
            for batch in training.batches.epoch(state.epoch, skip=state.batch):
                loss = take_step(training, batch, state.step)
                state.add_step(loss, len(batch), training.steps)
                observe(_progress(training, state, loss))
                if interrupted() or time.monotonic() - saved > 60 * options.checkpoint_minutes:
                    state.seconds = time.monotonic() - started
                    checkpoints.save(state)
                    saved = time.monotonic()
                if interrupted():
                    raise KeyboardInterrupt
            if training.average is not None:
                training.average.add()
            with nullcontext() if training.average is None else training.average.applied():
                validation = training.device.same(training.evaluate)
                state.seconds = time.monotonic() - started
                finished = state.end_epoch(validation, state.seconds)
                if state.best is finished:
                    checkpoints.save_best(finished.number)
            checkpoints.save(state)
            saved = time.monotonic()
            observe(_progress(training, state, finished.loss, finished=True))
    return state


def take_step(training: Training, batch: Batch, step: int) -> float:
    """Move the weights once, on one batch; returns its loss."""
    for group in training.optimiser.param_groups:
        group["lr"] = training.rate(step)
    training.optimiser.zero_grad(set_to_none=True)
    with training.device.autocast():
        loss = training.objective.loss(training.model, training.objective.augment(batch))
    value = float(loss.detach())
    if not math.isfinite(value):
        raise InputError(
            f"The loss became {value} at step {step + 1} of {training.steps}, so the training was stopped; the last "
            "checkpoint is from before that. Train again with a lower learning rate (it was "
            f"{training.options.learning_rate:g}) or in float32, and look for broken rows in the data."
        )
    training.device.backward(loss)
    training.device.step(training.optimiser, training.options.clip, training.options.clip_value)
    return value


def _progress(training: Training, state: State, loss: float, finished: bool = False) -> Progress:
    last = state.history[-1].validation if state.history else None
    epoch = state.epoch if finished else state.epoch + 1
    return Progress(
        epoch=epoch,
        epochs=training.options.epochs,
        step=state.step,
        steps=training.steps,
        loss=loss,
        validation=last,
        finished=finished,
    )


@torch.inference_mode()
def evaluate_classes(model: nn.Module, texts: Batches, objective: Objective, classes: int) -> Evaluation:
    """The mean cross-entropy of validation texts, and how many of each class are given to each class.

    The texts are those that a defense shows to the model when it is asked (`objective.validation_batch`).
    """
    model.eval()
    loss, given = 0.0, np.zeros(classes * classes, dtype=np.int64)
    for batch in texts.by_length():
        logits = logits_of(model(**validation_batch(objective, batch).tensors))
        loss += float(functional.cross_entropy(logits, batch.labels, reduction="sum"))
        pairs = (batch.labels * classes + logits.argmax(1)).cpu()
        given += np.bincount(pairs.numpy(), minlength=classes * classes)
    confusion = given.reshape(classes, classes)
    return Evaluation(
        loss / len(texts.inputs),
        tuple(confusion.diagonal().tolist()),
        tuple(np.bincount(texts.labels, minlength=classes).tolist()),
        confusion=tuple(map(tuple, confusion.tolist())) if classes <= _MOST_CONFUSED else (),
    )


@torch.inference_mode()
def evaluate_loss(model: nn.Module, texts: Batches, objective: Objective) -> Evaluation:
    """The mean of the objective's loss over validation texts, each batch weighted by its tokens."""
    model.eval()
    total, tokens = 0.0, 0
    for batch in texts.by_length():
        size = int(batch.tensors["attention_mask"].sum())
        total, tokens = total + float(objective.loss(model, batch)) * size, tokens + size
    return Evaluation(total / max(1, tokens))


@contextmanager
def gentle_interrupt() -> Iterator[Callable[[], bool]]:
    """Holds Ctrl-C and SIGTERM back, so that a checkpoint never has half a step.

    Yields a function that says whether one of them has come; the second one interrupts at once.
    """
    interrupted = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield interrupted.is_set
        return
    signals = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.getsignal(number) for number in signals}

    def note(number: int, frame: FrameType | None) -> None:
        if interrupted.is_set():
            raise KeyboardInterrupt
        interrupted.set()

    for number in signals:
        signal.signal(number, note)
    try:
        yield interrupted.is_set
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
