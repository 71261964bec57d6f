"""Adversarial copies of a batch by flipping tokens along the gradient, and training on both.

Replacing token a at a place by b changes the loss, to first order, by g · (E_b - E_a), with g the gradient of the loss
with respect to the input vector at that place and E the input vectors of the vocabulary.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from stockade.defenses.adversarial.pairs import changeable_tokens
from stockade.defenses.adversarial.perturbable import perturbable_tokens
from stockade.models.input_vectors import input_variable
from stockade.training.objective import logits_of

if TYPE_CHECKING:
    from stockade.training.objective import Batch, Objective

_ROWS, _CANDIDATES = 1024, 512
"""So many places are compared with so many candidates at once: few enough that the products stay in the cache."""


@dataclass(frozen=True, slots=True, eq=False)
class FlipTraining:
    """Adds to each text of a batch a copy with tokens flipped in several rounds, then trains as `plain` does.

    `candidates` are either tokens that may come to any place, or a row for each token of those that may replace it.
    """

    network: Any
    tokenizer: Any
    plain: Objective
    candidates: Tensor
    rounds: int
    share: float

    def augment(self, batch: Batch) -> Batch:
        flipped = self.flipped(batch)
        both = {name: torch.cat([tensor, flipped[name]]) for name, tensor in batch.tensors.items()}
        doubled = replace(batch, inputs=batch.inputs * 2, labels=torch.cat([batch.labels, batch.labels]), tensors=both)
        return self.plain.augment(doubled)

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        return self.plain.loss(model, batch)

    def flipped(self, batch: Batch) -> dict[str, Tensor]:
        """The batch's tensors after all rounds of flips; each looks at the gradient anew."""
        found = dict(batch.tensors)
        may_flip = self._may_flip(batch)
        for _ in range(self.rounds):
            gradients = self._gradients(found, batch.labels)
            gains, best = self._best(gradients, found["input_ids"], may_flip)
            places = chosen_places(gains, may_flip, self.share)
            found["input_ids"] = torch.where(places, best, found["input_ids"])
        return found

    def _may_flip(self, batch: Batch) -> Tensor:
        special = torch.tensor(sorted(set(self.tokenizer.all_special_ids)), device=batch.labels.device)
        words = perturbable_tokens(batch.tensors, self.tokenizer) & ~torch.isin(batch.tensors["input_ids"], special)
        return words & changeable_tokens(batch.inputs, batch.tensors, self.tokenizer)

    def _gradients(self, tensors: Mapping[str, Tensor], labels: Tensor) -> Tensor:
        with input_variable(self.network) as seen:
            logits = logits_of(self.network(**tensors))
        (gradient,) = torch.autograd.grad(functional.cross_entropy(logits, labels, reduction="sum"), seen[0])
        return gradient.float()

    @torch.no_grad()
    def _best(self, gradients: Tensor, ids: Tensor, may_flip: Tensor) -> tuple[Tensor, Tensor]:
        """For each place the greatest gain of the loss and the token that brings it, the first one in a tie; a gain of
        0 where nothing may be flipped and where the loss does not depend on the token.
        """
        gains, best = gradients.new_zeros(ids.shape), ids.clone()
        looked_at = may_flip & gradients.any(2)
        slopes, now = gradients[looked_at], ids[looked_at]
        table = self.network.get_input_embeddings().weight.float()
        if self.candidates.dim() == 2:
            value, token = best_of_own(slopes, table, self.candidates[now])
        else:
            value, place = best_of_all(slopes, table[self.candidates])
            token = self.candidates[place]
        gains[looked_at] = value - (slopes * table[now]).sum(1)
        best[looked_at] = token
        return gains, best


def best_of_own(slopes: Tensor, table: Tensor, allowed: Tensor) -> tuple[Tensor, Tensor]:
    """For each place the greatest product with a vector of the tokens in its row, and that token."""
    parts = []
    for slope, row in zip(torch.split(slopes, _ROWS), torch.split(allowed, _ROWS), strict=True):
        value, place = torch.einsum("nw,ncw->nc", slope, table[row]).max(1)
        parts.append((value, row.gather(1, place.unsqueeze(1)).squeeze(1)))
    values, tokens = zip(*parts, strict=True)
    return torch.cat(values), torch.cat(tokens)


def best_of_all(slopes: Tensor, vectors: Tensor) -> tuple[Tensor, Tensor]:
    """For each place the greatest product with one of the vectors, and which one it is."""
    best = slopes.new_full((len(slopes),), -torch.inf)
    where = torch.zeros(len(slopes), dtype=torch.long, device=slopes.device)
    for first in range(0, len(slopes), _ROWS):
        rows = slice(first, first + _ROWS)
        for start in range(0, len(vectors), _CANDIDATES):
            value, place = (slopes[rows] @ vectors[start : start + _CANDIDATES].T).max(1)
            better = value > best[rows]
            best[rows] = torch.where(better, value, best[rows])
            where[rows] = torch.where(better, place + start, where[rows])
    return best, where


def chosen_places(gains: Tensor, may_flip: Tensor, share: float) -> Tensor:
    """The floor(share * length) places of each text with the greatest gain above 0; the length counts tokens that may
    be flipped.
    """
    worth = torch.where(may_flip & (gains > 0), gains, -torch.inf)
    order = worth.argsort(dim=1, descending=True, stable=True)
    rank = order.argsort(dim=1)
    allowed = (may_flip.sum(1).double() * share + 1e-9).floor()  # 0.29 * 100 must be 29
    return (rank < allowed.unsqueeze(1)) & worth.isfinite()
