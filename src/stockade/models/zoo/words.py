"""What a body of the zoo reads: a vector for each word of each text, however the words were read."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

_FEW_TEXTS = 2
"""So few texts share no words worth looking for."""


@dataclass(frozen=True, slots=True)
class Vectors:
    """The words' vectors of a batch: `vectors` of shape (texts, words, width), and where `mask` is False, no word."""

    vectors: Tensor
    mask: Tensor

    @property
    def dense(self) -> Tensor:
        return self.vectors


@dataclass(frozen=True, slots=True)
class DistinctVectors:
    """The same with every distinct word kept once: word (i, j) has the vector `table[places[i, j]]`.

    Row 0 of the table is zeros and stands where there is no word.
    """

    table: Tensor
    places: Tensor
    mask: Tensor

    @property
    def dense(self) -> Tensor:
        return functional.embedding(self.places, self.table)


Words = Vectors | DistinctVectors


def read_ids(embedding: nn.Module, ids: Tensor, mask: Tensor, distinct: bool) -> Words:
    """The words of a batch of word ids; if `distinct` is wanted and nobody can tell the difference, each one once."""
    if not distinct or len(ids) <= _FEW_TEXTS or torch.is_grad_enabled() or is_watched(embedding):
        return Vectors(embedding(ids), mask)
    marked = functional.pad(torch.where(mask, ids + 1, 0), (0, 1))
    words, places = torch.unique(marked, return_inverse=True)
    table: Tensor = embedding((words - 1).clamp(min=0))
    table[0] = 0.0
    return DistinctVectors(table, places[:, :-1], mask)


def is_watched(module: nn.Module) -> bool:
    """Whether somebody's hook waits for the module to be called on the batch as it came."""
    hooks = (module._forward_hooks, module._forward_pre_hooks, module._backward_hooks, module._backward_pre_hooks)
    return any(hooks)
