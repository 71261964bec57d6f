"""Label-smoothed cross-entropy of an output layer, without ever holding all its logits.

With ten thousand sub-words the logits of a batch are a hundred times as large as the states they are made from. They
are computed for some positions at a time, and the gradients with respect to states and weights are computed while the
logits are at hand, in the forward pass; the backward pass only scales them.
"""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor

_CHUNK_NUMBERS = 4_000_000
"""Logits that are held at a time: 16 MB, about what the cache of a processor holds."""


def smoothed_loss(states: Tensor, weight: Tensor, targets: Tensor, smoothing: float) -> Tensor:
    """The mean over positions of the cross-entropy with smoothed targets, as fairseq defines it.

    A position with target y costs (1 - smoothing) · (-log p_y) + smoothing · the mean of -log p over all tokens.

    Parameters
    ----------
    states
        Positions × width: what the output layer reads, without padding.
    weight
        Tokens × width: the output layer, which has no bias.
    targets
        The target token of each position.
    smoothing
        The share of the target's probability that is spread over all tokens.
    """
    with torch.autocast(states.device.type, enabled=False):  # the logits of a half-precision model need all digits
        loss = _SmoothedLoss.apply(states.to(weight.dtype), weight, targets, smoothing)
    return cast(Tensor, loss)


def chunk_rows(weight: Tensor) -> int:
    """How many positions are computed at a time."""
    return max(1, _CHUNK_NUMBERS // len(weight))


class _SmoothedLoss(torch.autograd.Function):
    """The loss with its gradients computed in the forward pass.

    With logits z the loss of a position is logsumexp(z) - (1 - s) · z_y - s · mean(z), so its gradient is softmax(z)
    - (1 - s) · onehot(y) - s / tokens.
    """

    @staticmethod
    def forward(ctx: Any, states: Tensor, weight: Tensor, targets: Tensor, smoothing: float) -> Tensor:
        count, tokens = len(states), len(weight)
        to_states, to_weight = torch.empty_like(states), torch.zeros_like(weight)
        total, rows = states.new_zeros((), dtype=torch.float64), chunk_rows(weight)
        for start in range(0, count, rows):
            part = states[start : start + rows]
            target = targets[start : start + rows, None]
            logits = part @ weight.T
            normaliser = logits.logsumexp(1, keepdim=True)
            chosen, mean = logits.gather(1, target), logits.mean(1, keepdim=True)
            total += (normaliser - (1 - smoothing) * chosen - smoothing * mean).sum()
            gradient = logits.sub_(normaliser).exp_().sub_(smoothing / tokens)
            gradient.scatter_add_(1, target, gradient.new_full(target.shape, smoothing - 1))
            torch.mm(gradient, weight, out=to_states[start : start + rows])
            to_weight.addmm_(gradient.T, part)
        ctx.save_for_backward(to_states.div_(max(1, count)), to_weight.div_(max(1, count)))
        return (total / max(1, count)).to(states.dtype)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor, Tensor, None, None]:
        to_states, to_weight = ctx.saved_tensors
        return to_states * gradients[0], to_weight * gradients[0], None, None
