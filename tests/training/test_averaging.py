"""Averaged weights of the last epochs."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from stockade.training.averaging import WeightAverage


def layer(value: float) -> nn.Linear:
    made = nn.Linear(1, 1, bias=False)
    nn.init.constant_(made.weight, value)
    return made


def test_mean_of_the_last_epochs_is_there_inside_and_gone_outside() -> None:
    network = layer(1.0)
    average = WeightAverage(network, 2)
    means = []
    for value in (1.0, 3.0, 7.0):
        nn.init.constant_(network.weight, value)
        average.add()
        with average.applied():
            means.append(float(network.weight.detach()))
        assert float(network.weight.detach()) == value
    assert means == [1.0, 2.0, 5.0]


def test_restored_average_goes_on_as_the_saved_one() -> None:
    network = layer(2.0)
    first = WeightAverage(network, 2)
    first.add()
    restored = WeightAverage(network, 2)
    restored.load(first.tensors())
    nn.init.constant_(network.weight, 4.0)
    restored.add()
    with restored.applied():
        assert float(network.weight.detach()) == 3.0


def test_own_weights_come_back_after_an_error() -> None:
    network = layer(2.0)
    average = WeightAverage(network, 2)
    average.add()
    nn.init.constant_(network.weight, 9.0)
    with pytest.raises(RuntimeError, match="stop"), average.applied():
        raise RuntimeError("stop")
    assert torch.equal(network.weight.detach(), torch.tensor([[9.0]]))
