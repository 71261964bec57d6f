"""Tensors on disk."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


def write_tensors(path: Path, tensors: Mapping[str, Tensor], about: Mapping[str, str]) -> None:
    """Tensors and a few strings as one safetensors file; tensors that share their memory are written each."""
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    seen: set[int] = set()
    apart: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        plain = tensor.detach().cpu().contiguous()
        apart[name] = plain.clone() if plain.untyped_storage().data_ptr() in seen else plain
        seen.add(plain.untyped_storage().data_ptr())
    try:
        save_file(apart, path, dict(about))
    except SafetensorError as error:
        raise OSError(str(error)) from None
