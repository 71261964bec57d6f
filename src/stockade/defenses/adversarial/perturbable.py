"""Which input vectors of a batch may be moved, and passes that drop the same numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor


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
