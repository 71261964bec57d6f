"""The input vectors of a model's tokens, altered inside its own forward pass.

What is altered is the answer of the input embedding: position and type vectors and the first layer norm come after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
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
            "there; train it without defenses that perturb vectors, such as pgd, freelb, adv-hotflip and hull."
        )


def vector_width(network: Any) -> int:
    return int(network.get_input_embeddings().weight.shape[-1])


def perturbable_tokens(tensors: Mapping[str, Tensor], tokenizer: Any) -> Tensor:
    """Which tokens of a batch may be moved: none of the padding, and none that hides a word.

    Words are hidden by the mask token, or by the unknown one where the tokenizer has no mask.
    """
    hiding = tokenizer.unk_token_id if tokenizer.mask_token_id is None else tokenizer.mask_token_id
    there = tensors["attention_mask"].bool()
    return there if hiding is None else there & (tensors["input_ids"] != hiding)


def replayed_dropout(device: torch.device) -> Callable[[], None]:
    """What puts torch's generators back to where they are now: the passes after each call drop the same numbers."""
    states: list[tuple[Callable[[Tensor], None], Tensor]] = [(torch.set_rng_state, torch.get_rng_state())]
    if device.type == "cuda":
        states.append((lambda state: torch.cuda.set_rng_state(state, device), torch.cuda.get_rng_state(device)))
    elif device.type == "mps":
        states.append((torch.mps.set_rng_state, torch.mps.get_rng_state()))

    def put_back() -> None:
        for put, state in states:
            put(state)

    return put_back
