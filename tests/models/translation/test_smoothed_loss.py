"""The label-smoothed loss, on a toy by hand and against torch."""

from __future__ import annotations

from math import exp, log

import pytest
import torch
from torch.nn import functional

from stockade.models.translation import smoothed_loss as module
from stockade.models.translation.smoothed_loss import smoothed_loss


def test_loss_of_a_toy_is_the_one_computed_by_hand() -> None:
    # One position, three tokens: the state 1 meets the weights 2, 1, 0, so these are the logits; the target is token 0.
    loss = smoothed_loss(torch.tensor([[1.0]]), torch.tensor([[2.0], [1.0], [0.0]]), torch.tensor([0]), 0.1)
    normaliser = log(exp(2) + exp(1) + exp(0))
    costs = [normaliser - 2, normaliser - 1, normaliser]
    assert float(loss) == pytest.approx(0.9 * costs[0] + 0.1 * sum(costs) / 3, abs=1e-6)


def test_loss_is_the_mean_over_positions() -> None:
    weight, targets = torch.tensor([[2.0], [1.0], [0.0]]), torch.tensor([0, 2])
    single = [smoothed_loss(torch.tensor([[1.0]]), weight, targets[row : row + 1], 0.1) for row in (0, 1)]
    both = smoothed_loss(torch.tensor([[1.0], [1.0]]), weight, targets, 0.1)
    assert float(both) == pytest.approx(float(sum(single)) / 2, abs=1e-6)


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.5])
@pytest.mark.parametrize("numbers", [10, 4_000_000])
def test_loss_and_gradients_are_those_of_torch(monkeypatch: pytest.MonkeyPatch, smoothing: float, numbers: int) -> None:
    monkeypatch.setattr(module, "_CHUNK_NUMBERS", numbers)  # in chunks of one position, or all at once
    torch.manual_seed(0)
    targets = torch.randint(7, (11,))
    answers = []
    for fused in (True, False):
        torch.manual_seed(1)
        states = torch.randn(11, 5, dtype=torch.float64, requires_grad=True)
        weight = torch.randn(7, 5, dtype=torch.float64, requires_grad=True)
        loss = (
            smoothed_loss(states, weight, targets, smoothing)
            if fused
            else functional.cross_entropy(states @ weight.T, targets, label_smoothing=smoothing)
        )
        (3 * loss).backward()
        assert states.grad is not None
        assert weight.grad is not None
        answers.append((loss.detach(), states.grad, weight.grad))
    for ours, theirs in zip(*answers, strict=True):
        torch.testing.assert_close(ours, theirs)


def test_half_precision_states_are_computed_in_that_of_the_weights() -> None:
    weight, targets = torch.randn(7, 4, requires_grad=True), torch.tensor([1, 2])
    states = torch.randn(2, 4, dtype=torch.bfloat16, requires_grad=True)
    with torch.autocast("cpu", torch.bfloat16):
        loss = smoothed_loss(states, weight, targets, 0.1)
    loss.backward()
    assert loss.dtype == torch.float32
    assert states.grad is not None
    assert states.grad.dtype == torch.bfloat16
