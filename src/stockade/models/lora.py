"""Low-rank adapters (LoRA, Hu et al. 2021): train a small change of frozen layers, store only that, merge it at load.

A change of the weight `W` of `….name` is stored as two matrices, `….name.a` [rank, in] and `….name.b` [out,
rank], and is worth `scale * b @ a`. Every other tensor of an adapter file replaces the tensor of the same
name (a new head, a pooler, layer norms). The scale is kept in the file's metadata. After merging, the model
is an ordinary one: same classes, same speed.

Differences to the paper: the scale is stored as one number instead of alpha and rank.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from stockade.core.errors import ModelError


@dataclass(frozen=True, slots=True)
class Adapter:
    """A change of a base model: low-rank deltas (by layer name) and tensors that take the place of the base's own."""

    deltas: dict[str, tuple[Tensor, Tensor]]
    replaced: dict[str, Tensor]
    scale: float


class LoraLinear(nn.Module):
    """A frozen linear layer plus its trainable low-rank change; `b` begins at zero, so training begins at the
    base model.
    """

    def __init__(self, base: nn.Linear, rank: int, scale: float, dropout: float) -> None:
        super().__init__()
        self.base = base.requires_grad_(False)
        self.scale = scale
        self.a = nn.Parameter(torch.empty(rank, base.in_features))
        self.b = nn.Parameter(torch.zeros(base.out_features, rank))
        nn.init.normal_(self.a, std=base.in_features**-0.5)
        self.dropout = nn.Dropout(dropout)

    def forward(self, inputs: Tensor) -> Tensor:
        change = nn.functional.linear(nn.functional.linear(self.dropout(inputs), self.a), self.b)
        return cast(Tensor, self.base(inputs)) + self.scale * change


def add_lora(model: nn.Module, layers: str, rank: int, scale: float, dropout: float = 0.0) -> None:
    """Freeze `model` and put an adapter on every linear layer whose name matches the regular expression `layers`."""
    model.requires_grad_(False)
    chosen = [name for name, layer in model.named_modules() if isinstance(layer, nn.Linear) and re.search(layers, name)]
    if not chosen:
        raise ValueError(f"no linear layer of the model has a name that matches {layers!r}")
    for name in chosen:
        parent, _, attribute = name.rpartition(".")
        holder = model.get_submodule(parent)
        setattr(holder, attribute, LoraLinear(cast(nn.Linear, getattr(holder, attribute)), rank, scale, dropout))


def trained_adapter(model: nn.Module, replaced: Iterable[str] = ()) -> Adapter:
    """What was learnt by a model that went through `add_lora`: its deltas, and the tensors named by the
    prefixes `replaced`.
    """
    adapted = {name: layer for name, layer in model.named_modules() if isinstance(layer, LoraLinear)}
    prefixes = tuple(replaced)
    tensors = {
        name: tensor.detach() for name, tensor in model.state_dict().items() if prefixes and name.startswith(prefixes)
    }
    scales = {layer.scale for layer in adapted.values()}
    if len(scales) != 1:
        raise ValueError(f"an adapter has one scale for all its layers, found {sorted(scales)}")
    return Adapter(
        {name: (layer.a.detach(), layer.b.detach()) for name, layer in adapted.items()}, tensors, scales.pop()
    )


def save_adapter(adapter: Adapter, path: Path) -> None:
    """Write an adapter in half precision."""
    tensors = dict(adapter.replaced)
    for name, (a, b) in adapter.deltas.items():
        tensors[f"{name}.a"], tensors[f"{name}.b"] = a, b
    halves = {name: tensor.to(torch.float16).contiguous() for name, tensor in tensors.items()}
    save_file(halves, path, metadata={"format": "pt", "scale": repr(adapter.scale)})


def load_adapter(path: Path) -> Adapter:
    """Read an adapter file into float32 tensors."""
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name).to(torch.float32) for name in file.keys()}  # noqa: SIM118 (not a dict)
    except (OSError, SafetensorError) as problem:
        raise ModelError(
            f"The adapter {path} cannot be read ({problem}). Reinstall Stockade or rebuild the file."
        ) from None
    layers = [name.removesuffix(".a") for name in tensors if name.endswith(".a")]
    deltas = {name: (tensors.pop(f"{name}.a"), tensors.pop(f"{name}.b")) for name in layers}
    return Adapter(deltas, tensors, float(metadata.get("scale", "1.0")))


@torch.no_grad()
def merge_adapter(model: nn.Module, adapter: Adapter) -> None:
    """Change `model` in place: `weight += scale * b @ a` for every delta, and copy the replaced tensors."""
    weights = model.state_dict()
    unknown = sorted({*adapter.replaced, *(f"{name}.weight" for name in adapter.deltas)} - weights.keys())
    if unknown:
        raise ModelError(
            f"The adapter is for another model: it changes {unknown[0]}, which {type(model).__name__} has not got."
        )
    for name, (a, b) in adapter.deltas.items():
        weights[f"{name}.weight"].add_(b @ a, alpha=adapter.scale)
    for name, tensor in adapter.replaced.items():
        weights[name].copy_(tensor)
