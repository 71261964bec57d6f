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


_TINY = 1e-37
"""Smaller probabilities count as this one, so that a loss stays finite."""


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

    With logits z and smoothing s the loss of a position is logsumexp(z) - (1 - s) · z_y - s · mean(z), so its gradient
    with respect to z is softmax(z) - (1 - s) · onehot(y) - s / tokens. Only the first term needs the table of logits:
    the other two are rows of the weights, and the same for all positions.
    """

    @staticmethod
    def forward(ctx: Any, states: Tensor, weight: Tensor, targets: Tensor, smoothing: float) -> Tensor:
        count, rows = len(states), chunk_rows(weight)
        to_states, to_weight = torch.empty_like(states), torch.zeros_like(weight)
        mean_weight, total = weight.mean(0), states.new_zeros((), dtype=torch.float64)
        for start in range(0, count, rows):
            part, target = states[start : start + rows], targets[start : start + rows, None]
            logits = part @ weight.T
            chosen = logits.gather(1, target)[:, 0]
            probabilities = logits.softmax(1)
            normaliser = chosen - probabilities.gather(1, target)[:, 0].clamp(min=_TINY).log()
            total += (normaliser - (1 - smoothing) * chosen - smoothing * (part @ mean_weight)).sum()
            torch.mm(probabilities, weight, out=to_states[start : start + rows])
            to_weight.addmm_(probabilities.T, part)
        to_states.sub_(weight[targets], alpha=1 - smoothing).sub_(mean_weight, alpha=smoothing)
        to_weight.index_add_(0, targets, states, alpha=smoothing - 1)
        to_weight.sub_(states.sum(0), alpha=smoothing / len(weight))
        ctx.save_for_backward(to_states.div_(max(1, count)), to_weight.div_(max(1, count)))
        return (total / max(1, count)).to(states.dtype)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor, Tensor, None, None]:
        to_states, to_weight = ctx.saved_tensors
        return to_states * gradients[0], to_weight * gradients[0], None, None
