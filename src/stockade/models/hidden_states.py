"""What a masked LM computes before its head: hidden vectors of every position."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor


def hidden_states(base: Any) -> Callable[[Tensor, Tensor], Tensor]:
    def compute(ids: Tensor, attention: Tensor) -> Tensor:
        device = base.device
        states: Tensor = base(input_ids=ids.to(device), attention_mask=attention.to(device)).last_hidden_state
        return states

    return compute


def logits_everywhere(model: Any) -> Callable[[Tensor, Tensor], Tensor]:
    """For architectures whose head we do not know: the logits of every position stand in for the hidden states."""

    def compute(ids: Tensor, attention: Tensor) -> Tensor:
        device = model.device
        logits: Tensor = model(input_ids=ids.to(device), attention_mask=attention.to(device)).logits
        return logits

    return compute
