"""An LSTM with a projection whose state may be clipped, as published ELMo weights need it; torch's own cannot."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class ProjectedLstm(nn.Module):
    """c = clip(f · c + i · tanh(j)); h = clip(P (o · tanh c)). Gates in the order i, f, j, o, one bias for all."""

    def __init__(self, size: int, cells: int, cell_clip: float | None, projection_clip: float | None) -> None:
        super().__init__()
        self.cells, self.cell_clip, self.projection_clip = cells, cell_clip, projection_clip
        self.inputs = nn.Linear(size, 4 * cells, bias=False)
        self.states = nn.Linear(size, 4 * cells)
        self.projection = nn.Linear(cells, size, bias=False)

    def forward(self, vectors: Tensor) -> tuple[Tensor, None]:
        """The states of (texts, words, size) vectors; a pair because torch's LSTM answers with one."""
        gates = self.inputs(vectors)
        hidden = vectors.new_zeros(len(vectors), vectors.shape[2])
        cell = vectors.new_zeros(len(vectors), self.cells)
        found = []
        for step in range(vectors.shape[1]):
            enter, forget, new, out = (gates[:, step] + self.states(hidden)).chunk(4, 1)
            cell = _clip(torch.sigmoid(forget) * cell + torch.sigmoid(enter) * torch.tanh(new), self.cell_clip)
            hidden = _clip(self.projection(torch.sigmoid(out) * torch.tanh(cell)), self.projection_clip)
            found.append(hidden)
        return torch.stack(found, 1), None


def _clip(values: Tensor, limit: float | None) -> Tensor:
    return values if limit is None else values.clamp(-limit, limit)
