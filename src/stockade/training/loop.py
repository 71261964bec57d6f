"""The training loop: epochs, batches, loss, backward, step; nothing else happens here.

Everything it needs is made elsewhere: the batches, the objective (what is made smaller), the device (where and how
precisely), the checkpoints (what survives a crash).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from stockade.core.errors import InputError
from stockade.training.batches import Batches
from stockade.training.checkpoint import Checkpoints
from stockade.training.devices import Device
from stockade.training.interrupts import gentle_interrupt
from stockade.training.objective import Batch, Objective
from stockade.training.options import TrainingOptions
from stockade.training.schedules import rate_factor
from stockade.training.state import Evaluation, State


@dataclass(frozen=True, slots=True)
class Progress:
    """What an observer is told after each step (`finished` is False) and after each epoch."""

    epoch: int
    epochs: int
    step: int
    steps: int
    loss: float
    validation: Evaluation | None
    """The last one there was."""
    finished: bool = False


Observer = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class Training:
    """A model with all that it is trained with. `model` is what is called; `optimiser` moves its weights."""

    model: nn.Module
    optimiser: torch.optim.Optimizer
    objective: Objective
    batches: Batches
    evaluate: Callable[[], Evaluation]
    device: Device
    options: TrainingOptions

    @property
    def steps(self) -> int:
        return self.options.epochs * self.batches.per_epoch

    def rate(self, step: int) -> float:
        """The learning rate of a step."""
        options = self.options
        texts = options.schedule_unit == "texts"
        length = options.epochs * len(self.batches.inputs) if texts else self.steps
        return options.learning_rate * rate_factor(options.schedule, step, length, options.warm_up)


def make_optimiser(model: nn.Module, options: TrainingOptions) -> torch.optim.Optimizer:
    """AdamW over the weights that may be trained."""
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    fused = all(weight.device.type in ("cpu", "cuda") and weight.is_floating_point() for weight in weights)
    settings: dict[str, Any] = {"lr": options.learning_rate, "weight_decay": options.weight_decay}
    return torch.optim.AdamW(weights, eps=options.epsilon, fused=fused, **settings)


def fit(training: Training, state: State, checkpoints: Checkpoints, observe: Observer) -> State:
    """Train from where `state` stands to the end; the weights of the best epoch are in `checkpoints` then.

    Stops early after `patience` epochs without a better validation score. Ctrl-C ends the step, saves and raises.
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
    """One batch forward, its loss backward, one move of the weights; the loss."""
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
    return Progress(epoch, training.options.epochs, state.step, training.steps, loss, last, finished)
