"""Checkpoints: all that a training needs to continue as if it had never stopped, without a pickle.

`checkpoint/state.safetensors` holds the weights, the optimiser's moments and the states of the random generators as
tensors, and how far the training is as JSON in the header: one file, so it is whole or not there.
`checkpoint/best-N.safetensors` holds the weights of the best epoch so far; the state says which N is meant, and it is
written before the state that names it, so a crash between the two loses nothing.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from stockade.core.errors import InputError, RunError
from stockade.core.files import replace_file
from stockade.core.seeds import derive_seed
from stockade.training.averaging import WeightAverage
from stockade.training.devices import Device
from stockade.training.state import State

_STATE, _BEST = "state.safetensors", "best-{}.safetensors"


class Checkpoints:
    """The checkpoints of one training in a folder; `fingerprint` says which training that is."""

    def __init__(
        self,
        folder: Path,
        fingerprint: str,
        network: nn.Module,
        optimiser: torch.optim.Optimizer,
        device: Device,
        average: WeightAverage | None = None,
    ) -> None:
        self._folder, self._fingerprint, self._average = folder, fingerprint, average
        self._network, self._optimiser, self._device = network, optimiser, device
        self._last: int | None = None

    def save(self, state: State) -> None:
        """Replace the checkpoint by the present state of the training."""
        if self._device.rank:
            return
        tensors = {f"model.{name}": tensor for name, tensor in self._network.state_dict().items()}
        for name, tensor in tensors.items():
            if tensor.is_floating_point() and not torch.isfinite(tensor).all():
                raise InputError(
                    f"The weights {name.removeprefix('model.')} are no longer finite after step {state.step}, so the "
                    "training was stopped; the checkpoint before that is kept. Train again with a lower learning rate."
                )
        moments: dict[str, dict[str, Any]] = {}
        for number, values in self._optimiser.state_dict()["state"].items():
            for name, value in values.items():
                if isinstance(value, Tensor):
                    tensors[f"optimiser.{number}.{name}"] = value
                else:
                    moments.setdefault(str(number), {})[name] = value
        if self._average is not None:
            tensors |= {f"average.{name}": tensor for name, tensor in self._average.tensors().items()}
        generators, plain_generators = generator_states()
        tensors |= {f"random.{name}": tensor for name, tensor in generators.items()}
        about = {
            "fingerprint": self._fingerprint,
            "state": state.described(),
            "device": self._device.state(),
            "optimiser": moments,
            "random": plain_generators,
        }
        self._write(_STATE, tensors, {"stockade": json.dumps(about)})
        self._last = state.step
        best = state.best
        for path in self._folder.glob(_BEST.format("*")):
            if best is not None and path.name != _BEST.format(best.number):
                path.unlink(missing_ok=True)

    def save_best(self, epoch: int) -> None:
        """Keep the weights as those of the best epoch so far."""
        if not self._device.rank:
            self._write(_BEST.format(epoch), self._network.state_dict(), {})

    def load(self) -> State | None:
        """Restore the training from its checkpoint; None if there is none yet."""
        path = self._folder / _STATE
        if not path.exists():
            return None
        about, tensors = _read(path)
        if about["fingerprint"] != self._fingerprint:
            raise RunError(
                f"{path} is the checkpoint of another training (another model, data or options); it is left as it "
                "is. Resume with the same options, or use another folder."
            )
        self._load_network(path, _under("model.", tensors))
        self._load_optimiser(tensors, about["optimiser"])
        if self._average is not None:
            self._average.load(_under("average.", tensors))
        self._device.load_state(about["device"])
        state = State.read(about["state"])
        self._load_generators(tensors, about["random"], state.step)
        self._last = state.step
        return state

    def load_best(self, state: State) -> None:
        """Put the weights of the best epoch into the model."""
        if state.best is not None:
            path = self._folder / _BEST.format(state.best.number)
            self._load_network(path, _read(path)[1])

    def _write(self, name: str, tensors: Mapping[str, Tensor], about: Mapping[str, str]) -> None:
        path = self._folder / name
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            replace_file(path, lambda temporary: write_tensors(temporary, tensors, about))
        except OSError as error:
            earlier = (
                "There is no earlier checkpoint."
                if self._last is None
                else f"The checkpoint of step {self._last} before it is unharmed: make room and go on with --resume."
            )
            raise RunError(f"The checkpoint {path} cannot be written ({error.strerror or error}). {earlier}") from None

    def _load_network(self, path: Path, tensors: dict[str, Tensor]) -> None:
        weights = self._network.state_dict()
        differing = sorted(
            name
            for name in {*weights, *tensors}
            if name not in weights or name not in tensors or weights[name].shape != tensors[name].shape
        )
        if differing:
            raise RunError(
                f"{path} was saved by another architecture: {differing[0]} differs from this model's"
                f"{f' and so do {len(differing) - 1} more' if len(differing) > 1 else ''}. It is left as it is; name "
                "the same architecture and sizes, or use another folder."
            )
        self._network.load_state_dict(tensors)

    def _load_optimiser(self, tensors: Mapping[str, Tensor], plain: Mapping[str, Mapping[str, Any]]) -> None:
        moments: dict[int, dict[str, Any]] = {int(number): dict(values) for number, values in plain.items()}
        for name, tensor in _under("optimiser.", dict(tensors)).items():
            number, _, key = name.partition(".")
            moments.setdefault(int(number), {})[key] = tensor
        groups = self._optimiser.state_dict()["param_groups"]
        self._optimiser.load_state_dict({"state": moments, "param_groups": groups})

    def _load_generators(self, tensors: Mapping[str, Tensor], plain: Mapping[str, Any], step: int) -> None:
        if self._device.rank:  # only the first process is saved; the others must not repeat its numbers
            torch.manual_seed(derive_seed("resumed", self._device.rank, step) % 2**63)
            return
        restore_generators(_under("random.", dict(tensors)), plain)


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    from safetensors import safe_open

    try:
        with safe_open(path, framework="pt") as stored:
            about = (stored.metadata() or {}).get("stockade", "{}")
            return json.loads(about), {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118
    except Exception as error:
        raise RunError(
            f"The checkpoint {path} cannot be read ({error}). Restore it from a copy, or use another folder."
        ) from None


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def write_tensors(path: Path, tensors: Mapping[str, Tensor], about: Mapping[str, str]) -> None:
    """Write tensors and a few strings as one safetensors file; tensors that share their memory are written each."""
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    written: set[int] = set()
    apart: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        plain = tensor.detach().cpu().contiguous()
        apart[name] = plain.clone() if plain.untyped_storage().data_ptr() in written else plain
        written.add(plain.untyped_storage().data_ptr())
    try:
        save_file(apart, path, dict(about))
    except SafetensorError as error:
        raise OSError(str(error)) from None


def generator_states() -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The states of Python's, numpy's and torch's global generators: torch's as tensors, the others as JSON."""
    tensors = {"cpu": torch.get_rng_state()}
    if torch.cuda.is_initialized():
        tensors |= {f"cuda.{number}": state for number, state in enumerate(torch.cuda.get_rng_state_all())}
    kind, keys, *rest = cast("tuple[str, Any, int, int, float]", np.random.get_state())
    return tensors, {"python": random.getstate(), "numpy": [kind, keys.tolist(), *rest]}


def restore_generators(tensors: Mapping[str, Tensor], plain: Mapping[str, Any]) -> None:
    """Put the global generators back to saved states; those of GPUs that are not here are left out."""
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
def isolated_generators() -> Iterator[None]:
    """Leaves the global generators of the program around it as they were."""
    before = generator_states()
    try:
        yield
    finally:
        restore_generators(*before)


def seed_all(seed: int) -> None:
    """Seed Python's, numpy's and torch's global generators."""
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed % 2**63)
