"""The mean of a network's weights at the ends of its last epochs, which generalises better than the last weights."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn


class WeightAverage:
    """The weights at the ends of the last `count` epochs.

    Parameters
    ----------
    network
        The network that is trained.
    count
        Over how many epochs the mean is taken; over all there are, as long as there are fewer.
    """

    def __init__(self, network: nn.Module, count: int) -> None:
        self._network = network
        self._snapshots: deque[dict[str, Tensor]] = deque(maxlen=count)

    def add(self) -> None:
        """Remember the present weights as those of an epoch's end."""
        self._snapshots.append(_copied(self._network.state_dict()))

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Inside the `with` the network has the mean weights; afterwards its own again."""
        before = _copied(self._network.state_dict())
        self._network.load_state_dict(self._mean())
        try:
            yield
        finally:
            self._network.load_state_dict(before)

    def _mean(self) -> dict[str, Tensor]:
        last = self._snapshots[-1]
        return {
            name: torch.stack([snapshot[name] for snapshot in self._snapshots]).mean(0)
            if tensor.is_floating_point()
            else tensor
            for name, tensor in last.items()
        }

    def tensors(self) -> dict[str, Tensor]:
        """What a checkpoint saves, oldest first: `NUMBER.NAME` of each weight."""
        return {
            f"{n}.{name}": tensor for n, snapshot in enumerate(self._snapshots) for name, tensor in snapshot.items()
        }

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Restore what `tensors` has given."""
        snapshots: dict[int, dict[str, Tensor]] = {}
        for key, tensor in tensors.items():
            number, _, name = key.partition(".")
            snapshots.setdefault(int(number), {})[name] = tensor
        self._snapshots.clear()
        self._snapshots.extend(snapshots[number] for number in sorted(snapshots))


def _copied(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.detach().cpu().clone() for name, tensor in weights.items()}
