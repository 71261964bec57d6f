"""Words read by a language model in both directions: a learned mix of its layers (Peters et al. 2018, eq. 1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import torch
from torch import Tensor, nn

from stockade.models.zoo.bilm_encoder import BiLmEncoder, BiLmSizes
from stockade.models.zoo.words import Vectors


class ElmoReader(nn.Module):
    """γ · Σ softmax(w)_k · layer k. A frozen language model stays as it was trained; only γ and w learn."""

    def __init__(self, sizes: BiLmSizes, blank: int, marks: Sequence[int], frozen: bool) -> None:
        super().__init__()
        self.bilm = BiLmEncoder(sizes, blank, marks)
        self.frozen = frozen
        self.bilm.requires_grad_(not frozen)
        self.weights = nn.Parameter(torch.zeros(sizes.layers + 1))
        self.scale = nn.Parameter(torch.ones(1))
        self.width = 2 * sizes.projection_size

    def train(self, mode: bool = True) -> Self:
        """Frozen again each time: loading a model makes all its weights learn."""
        super().train(mode)
        self.bilm.requires_grad_(not self.frozen)
        return self

    @property
    def embedding(self) -> nn.Embedding:
        """The vectors of the bytes."""
        return self.bilm.embedding

    def forward(self, ids: Tensor, mask: Tensor, vectors: Tensor | None = None) -> Vectors:
        """The words of a batch; `vectors` stand in for what the embedding says about the ids."""
        states, cut = self.bilm(ids, mask, vectors)
        shares = self.weights.softmax(0)
        mixed = self.scale * sum(share * layer for share, layer in zip(shares, states, strict=True))
        return Vectors(mixed[:, 1:-1] * cut.mask.unsqueeze(2), cut.mask)
