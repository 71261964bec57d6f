"""The input vectors of a model's tokens, altered inside its own forward pass.

What is altered is the answer of the input embedding: position and type vectors and the first layer norm come after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor

from stockade.core.errors import ModelError


@contextmanager
def altered_vectors(network: Any, change: Callable[[Tensor], Tensor]) -> Iterator[None]:
    """The forward passes meanwhile go on with `change(vectors)`, texts × tokens × width, in place of the vectors."""
    changed = []

    def alter(_: object, __: object, vectors: Tensor) -> Tensor:
        changed.append(True)
        return change(vectors)

    handle = network.get_input_embeddings().register_forward_hook(alter)
    try:
        yield
    finally:
        handle.remove()
    if not changed:
        raise ModelError(
            f"{type(network).__name__} does not read its texts through its input embedding, so nothing can be put in "
            "there: gradients, and defenses that perturb vectors, need a model that does."
        )


@contextmanager
def input_variable(network: Any) -> Iterator[list[Tensor]]:
    """Makes the input vectors of the forward pass meanwhile the variable that gradients are taken of; it is in the
    list.
    """
    seen: list[Tensor] = []

    def leaf(vectors: Tensor) -> Tensor:
        seen.append(vectors.detach().requires_grad_(True))
        return seen[-1]

    with altered_vectors(network, leaf):
        yield seen
