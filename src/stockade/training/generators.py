"""The states of the random generators that a training may draw from: Python's, numpy's and torch's global ones."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor


def capture() -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The present states: torch's as tensors, the others as what JSON can hold."""
    tensors = {"cpu": torch.get_rng_state()}
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        tensors |= {f"cuda.{number}": state for number, state in enumerate(torch.cuda.get_rng_state_all())}
    kind, keys, *rest = cast("tuple[str, Any, int, int, float]", np.random.get_state())
    return tensors, {"python": random.getstate(), "numpy": [kind, keys.tolist(), *rest]}


def restore(tensors: Mapping[str, Tensor], plain: Mapping[str, Any]) -> None:
    """Put the generators back; states of GPUs that are not here are left out."""
    version, numbers, gauss = plain["python"]
    random.setstate((version, tuple(numbers), gauss))
    kind, keys, *rest = plain["numpy"]
    np.random.set_state((kind, np.array(keys, dtype=np.uint32), *rest))
    for name, tensor in tensors.items():
        if name == "cpu":
            torch.set_rng_state(tensor)
        elif int(name.removeprefix("cuda.")) < torch.cuda.device_count():
            torch.cuda.set_rng_state(tensor, int(name.removeprefix("cuda.")))


@contextmanager
def own_generators() -> Iterator[None]:
    """What happens inside does not move the generators of the program around it."""
    before = capture()
    try:
        yield
    finally:
        restore(*before)


def seed_all(seed: int) -> None:
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed % 2**63)
