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

from stockade.defenses.adversarial.perturbable import perturbable_tokens
from stockade.models.input_vectors import input_variable
from stockade.training.objective import logits_of

if TYPE_CHECKING:
    from stockade.training.objective import Batch, Objective

_ROWS = 1024
"""So many places are compared with the whole vocabulary at once."""


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
        flipped = self.flipped(batch.tensors, batch.labels)
        both = {name: torch.cat([tensor, flipped[name]]) for name, tensor in batch.tensors.items()}
        doubled = replace(batch, inputs=batch.inputs * 2, labels=torch.cat([batch.labels, batch.labels]), tensors=both)
        return self.plain.augment(doubled)

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        return self.plain.loss(model, batch)

    def flipped(self, tensors: Mapping[str, Tensor], labels: Tensor) -> dict[str, Tensor]:
        """The batch after all rounds of flips; each looks at the gradient anew."""
        found = dict(tensors)
        special = torch.tensor(sorted(set(self.tokenizer.all_special_ids)), device=labels.device)
        may_flip = perturbable_tokens(tensors, self.tokenizer) & ~torch.isin(tensors["input_ids"], special)
        for _ in range(self.rounds):
            gradients = self._gradients(found, labels)
            gains, best = self._best(gradients, found["input_ids"])
            places = chosen_places(gains, may_flip, self.share)
            found["input_ids"] = torch.where(places, best, found["input_ids"])
        return found

    def _gradients(self, tensors: Mapping[str, Tensor], labels: Tensor) -> Tensor:
        with input_variable(self.network) as seen:
            logits = logits_of(self.network(**tensors))
        (gradient,) = torch.autograd.grad(functional.cross_entropy(logits, labels, reduction="sum"), seen[0])
        return gradient.float()

    @torch.no_grad()
    def _best(self, gradients: Tensor, ids: Tensor) -> tuple[Tensor, Tensor]:
        """For each place the greatest gain of the loss and the token that brings it; the first one in a tie."""
        table, tokens = self.network.get_input_embeddings().weight.float(), self.candidates
        now = (gradients * table[ids]).sum(2)
        if tokens.dim() == 2:
            allowed = tokens[ids]
            products = torch.einsum("btw,btcw->btc", gradients, table[allowed])
            value, place = products.max(2)
            return value - now, allowed.gather(2, place.unsqueeze(2)).squeeze(2)
        vectors = table[tokens]
        parts = [(rows @ vectors.T).max(1) for rows in torch.split(gradients.flatten(0, 1), _ROWS)]
        value, place = (torch.cat([part[which] for part in parts]).view(ids.shape) for which in (0, 1))
        return value - now, tokens[place]


def chosen_places(gains: Tensor, may_flip: Tensor, share: float) -> Tensor:
    """The floor(share * length) places of each text with the greatest gain above 0; the length counts tokens that may
    be flipped.
    """
    worth = torch.where(may_flip & (gains > 0), gains, -torch.inf)
    order = worth.argsort(dim=1, descending=True, stable=True)
    rank = order.argsort(dim=1)
    allowed = (may_flip.sum(1).double() * share + 1e-9).floor()  # 0.29 * 100 must be 29
    return (rank < allowed.unsqueeze(1)) & worth.isfinite()
