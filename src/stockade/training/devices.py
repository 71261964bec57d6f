"""Where a training computes and how precisely: one device, or several processes through `accelerate`.

There are several processes when `accelerate launch` or `torchrun` started the command (they set WORLD_SIZE). Each
then takes its part of every batch, so the batch size is that of all together.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol, TypeVar

import torch
from torch import Tensor, nn

from stockade.core.errors import OptionError, ResourceMissing
from stockade.models.huggingface import resolve_device
from stockade.training.options import Precision

T = TypeVar("T")
_TYPES = {"bfloat16": torch.bfloat16, "float16": torch.float16}


class Device(Protocol):
    """The device or devices of a training, as the loop uses them."""

    device: torch.device
    rank: int
    world: int

    def prepare(
        self, model: nn.Module, optimiser: torch.optim.Optimizer
    ) -> tuple[nn.Module, torch.optim.Optimizer]: ...

    def autocast(self) -> AbstractContextManager[Any]: ...

    def backward(self, loss: Tensor) -> None: ...

    def step(self, optimiser: torch.optim.Optimizer, clip: float | None, clip_value: float | None) -> None:
        """Clip the gradients and move the weights."""
        ...

    def same(self, compute: Callable[[], T]) -> T:
        """The result of `compute` in the first process, in all of them."""
        ...

    def state(self) -> dict[str, Any]:
        """What a checkpoint must save of it."""
        ...

    def load_state(self, state: dict[str, Any]) -> None: ...

    def close(self) -> None:
        """Wait for all processes."""
        ...


def make_device(name: str | None, precision: Precision) -> Device:
    """The device with this name (the best there is if it is None), or all processes if there are several."""
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        return SeveralProcesses(name, precision)
    device = resolve_device(name or "auto")
    return OneDevice(device, _computed_in(precision, device))


def _computed_in(precision: Precision, device: torch.device) -> str:
    if precision == "auto":
        return "bfloat16" if device.type == "cuda" and torch.cuda.is_bf16_supported() else "float32"
    if precision == "float16" and device.type != "cuda":
        raise OptionError(f"float16 needs a CUDA device to train on, found {device.type}. Use float32 or bfloat16.")
    return precision


def _clip(optimiser: torch.optim.Optimizer, clip: float | None, clip_value: float | None) -> None:
    weights = [weight for group in optimiser.param_groups for weight in group["params"]]
    if clip_value is not None:
        nn.utils.clip_grad_value_(weights, clip_value)
    if clip is not None:
        nn.utils.clip_grad_norm_(weights, clip)


class OneDevice:
    """A CPU or one GPU."""

    rank, world = 0, 1

    def __init__(self, device: torch.device, precision: str) -> None:
        self.device = device
        self._type = _TYPES.get(precision)
        self._scaler = torch.amp.GradScaler(device.type) if precision == "float16" else None

    def prepare(self, model: nn.Module, optimiser: torch.optim.Optimizer) -> tuple[nn.Module, torch.optim.Optimizer]:
        return model, optimiser

    def autocast(self) -> AbstractContextManager[Any]:
        return nullcontext() if self._type is None else torch.autocast(self.device.type, self._type)

    def backward(self, loss: Tensor) -> None:
        torch.autograd.backward(loss if self._scaler is None else self._scaler.scale(loss))

    def step(self, optimiser: torch.optim.Optimizer, clip: float | None, clip_value: float | None) -> None:
        if self._scaler is None:
            _clip(optimiser, clip, clip_value)
            optimiser.step()
            return
        self._scaler.unscale_(optimiser)
        _clip(optimiser, clip, clip_value)
        self._scaler.step(optimiser)
        self._scaler.update()

    def same(self, compute: Callable[[], T]) -> T:
        return compute()

    def state(self) -> dict[str, Any]:
        return {} if self._scaler is None else self._scaler.state_dict()

    def load_state(self, state: dict[str, Any]) -> None:
        if self._scaler is not None and state:
            self._scaler.load_state_dict(state)

    def close(self) -> None:
        """There is no other process."""


class SeveralProcesses:
    """Several GPUs or machines, or several CPU processes, by `accelerate`."""

    def __init__(self, name: str | None, precision: Precision) -> None:
        try:
            from accelerate import Accelerator
        except ImportError:
            raise ResourceMissing(
                "Training with several processes needs accelerate. Install it with: pip install 'stockade[accelerate]'"
            ) from None
        on_cpu = name == "cpu" or not torch.cuda.is_available()
        computed = _computed_in(precision, torch.device("cpu" if on_cpu else "cuda"))
        mixed = {"bfloat16": "bf16", "float16": "fp16"}.get(computed, "no")
        self._accelerator = Accelerator(mixed_precision=mixed, cpu=on_cpu)
        atexit.register(self._accelerator.end_training)  # a group that is not ended can abort its processes
        self.device: torch.device = self._accelerator.device
        self.rank: int = self._accelerator.process_index
        self.world: int = self._accelerator.num_processes

    def prepare(self, model: nn.Module, optimiser: torch.optim.Optimizer) -> tuple[nn.Module, torch.optim.Optimizer]:
        prepared: tuple[nn.Module, torch.optim.Optimizer] = self._accelerator.prepare(model, optimiser)
        return prepared

    def autocast(self) -> AbstractContextManager[Any]:
        context: AbstractContextManager[Any] = self._accelerator.autocast()
        return context

    def backward(self, loss: Tensor) -> None:
        self._accelerator.backward(loss)

    def step(self, optimiser: torch.optim.Optimizer, clip: float | None, clip_value: float | None) -> None:
        weights = [weight for group in optimiser.param_groups for weight in group["params"]]
        if clip_value is not None:
            self._accelerator.clip_grad_value_(weights, clip_value)
        if clip is not None:
            self._accelerator.clip_grad_norm_(weights, clip)
        optimiser.step()

    def same(self, compute: Callable[[], T]) -> T:
        from accelerate.utils import broadcast_object_list

        answers: list[Any] = [compute() if self.rank == 0 else None]
        return broadcast_object_list(answers)[0]  # type: ignore[no-any-return]

    def state(self) -> dict[str, Any]:
        scaler = self._accelerator.scaler
        return {} if scaler is None else dict(scaler.state_dict())

    def load_state(self, state: dict[str, Any]) -> None:
        if self._accelerator.scaler is not None and state:
            self._accelerator.scaler.load_state_dict(state)

    def close(self) -> None:
        self._accelerator.wait_for_everyone()
