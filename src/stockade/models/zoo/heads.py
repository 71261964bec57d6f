"""What the zoo's models share: masks of real words, pooling over them, and the answer's shape."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers.modeling_outputs import SequenceClassifierOutput


def usable_mask(input_ids: Tensor | None, attention_mask: Tensor | None, inputs_embeds: Tensor | None) -> Tensor:
    """True at real words. Without an attention mask every position is real."""
    if (input_ids is None) == (inputs_embeds is None):
        raise ValueError("give either input_ids or inputs_embeds")
    if attention_mask is not None:
        return attention_mask.bool()
    shaped = input_ids if input_ids is not None else inputs_embeds
    assert shaped is not None
    return torch.ones(shaped.shape[:2], dtype=torch.bool, device=shaped.device)


def pool(states: Tensor, mask: Tensor, how: str) -> Tensor:
    """The mean or the maximum of the states at real words; zeros for an empty text."""
    kept = mask.unsqueeze(2)
    if how == "mean":
        return (states * kept).sum(1) / kept.sum(1).clamp(min=1)
    if how == "max":
        highest = states.masked_fill(~kept, -torch.inf).amax(1)
        return highest.masked_fill(~mask.any(1, keepdim=True), 0.0)
    raise ValueError(f'pooling is "mean" or "max", not "{how}"')


def classifier_output(logits: Tensor, labels: Tensor | None) -> SequenceClassifierOutput:
    """Logits, with the cross-entropy when the true classes are given."""
    loss = None if labels is None else functional.cross_entropy(logits, labels)
    return SequenceClassifierOutput(loss=loss, logits=logits)  # type: ignore[arg-type]  # declared as FloatTensor


def torch_defaults(module: nn.Module) -> None:
    """Initialise a layer as torch does: transformers' own 0.02 is meant for deep stacks with layer norms."""
    reset = getattr(module, "reset_parameters", None)
    if callable(reset):
        reset()
