"""Adv-HotFlip: train on texts together with copies whose tokens are flipped along the gradient.

Replacing token a at a place by b changes the loss, to first order, by g · (E_b - E_a), with g the gradient of the loss
with respect to the input vector at that place and E the input vectors of the vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from stockade.core.errors import OptionError
from stockade.core.registry import published
from stockade.core.shares import at_most
from stockade.defenses.neighbours import neighbour_tokens, word_tokens

if TYPE_CHECKING:
    from torch import Tensor, nn

    from stockade.training.objective import Batch, Objective, TrainingKit

Candidates = Literal["vocabulary", "neighbours"]
_ROWS, _CANDIDATES = 1024, 512
"""So many places are compared with so many candidates at once: few enough that the products stay in the cache."""


@published(
    "adv-hotflip",
    paper="Ebrahimi et al. 2018, HotFlip; as in Zeng et al. 2021, RanMASK, section 4.3",
    presets={
        "default": {},
        "paper": {"candidates": "neighbours"},
        "authors": {"candidates": "vocabulary"},
        "synonyms": {"candidates": "neighbours"},
    },
)
@dataclass(frozen=True, slots=True, kw_only=True)
class AdvHotFlip:
    """Train on each text and a copy of it in which tokens are flipped to raise the loss.

    In each round the tokens with the greatest first-order gain are replaced by their best candidate. Special tokens and
    those that hide words stay, and so does the premise of a pair.

    Differences to the paper: RanMASK's text speaks of synonyms, which is preset `paper` (`synonyms` is another name of
    it); its code allows the whole vocabulary, which is preset `authors` and the default. Synonyms are those of
    Stockade's table of neighbours. A flip that would not raise the loss is not made.

    Parameters
    ----------
    rounds
        Rounds of flips; each computes the gradient anew.
    share
        The share of tokens that a round flips, rounded down.
    candidates
        What may replace a token: any token of the `vocabulary` that is a whole word of letters, or its `neighbours`.
    count, min_cosine
        With `candidates=neighbours`, how many words of like meaning a token has at most, and their least cosine.
    """

    rounds: int = 3
    share: float = 0.2
    candidates: Candidates = "vocabulary"
    count: int = 50
    min_cosine: float = 0.5

    def __post_init__(self) -> None:
        if self.rounds < 1 or self.count < 1:
            raise OptionError(
                f"adv-hotflip has {self.rounds} rounds and a count of {self.count} neighbours, expected at least 1."
            )
        if not 0 < self.share <= 1:
            raise OptionError(f"The share of adv-hotflip is {self.share}, expected one above 0 and at most 1.")

    def objective(self, kit: TrainingKit) -> Objective:
        import torch

        from stockade.lexicon.neighbours import load_neighbours

        if self.candidates == "vocabulary":
            allowed = torch.tensor(sorted(word_tokens(kit.tokenizer)))
        else:
            rows = neighbour_tokens(kit.tokenizer, load_neighbours(), self.count, self.min_cosine)
            allowed = torch.from_numpy(rows)
        device = kit.network.get_input_embeddings().weight.device
        return FlipTraining(
            network=kit.network,
            tokenizer=kit.tokenizer,
            plain=kit.plain,
            candidates=allowed.to(device),
            rounds=self.rounds,
            share=self.share,
        )


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
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
        import torch

        flipped = self.flipped(batch)
        both = {name: torch.cat([tensor, flipped[name]]) for name, tensor in batch.tensors.items()}
        doubled = replace(batch, inputs=batch.inputs * 2, labels=torch.cat([batch.labels, batch.labels]), tensors=both)
        return self.plain.augment(doubled)

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        return self.plain.loss(model, batch)

    def flipped(self, batch: Batch) -> dict[str, Tensor]:
        """The batch's tensors after all rounds of flips."""
        tensors = dict(batch.tensors)
        may_flip = self._may_flip(batch)
        for _ in range(self.rounds):
            gradients = self._gradients(tensors, batch.labels)
            gains, best = self._best(gradients, tensors["input_ids"], may_flip)
            places = chosen_places(gains, may_flip, self.share)
            tensors["input_ids"] = best.where(places, tensors["input_ids"])
        return tensors

    def _may_flip(self, batch: Batch) -> Tensor:
        import torch

        from stockade.defenses.changeable import changeable_tokens, perturbable_tokens

        special = torch.tensor(sorted(set(self.tokenizer.all_special_ids)), device=batch.labels.device)
        words = perturbable_tokens(batch.tensors, self.tokenizer) & ~torch.isin(batch.tensors["input_ids"], special)
        return words & changeable_tokens(batch.inputs, batch.tensors, self.tokenizer)

    def _gradients(self, tensors: Mapping[str, Tensor], labels: Tensor) -> Tensor:
        """Of the summed loss with respect to the input vectors."""
        import torch
        from torch.nn import functional

        from stockade.models.input_vectors import input_variable
        from stockade.training.objective import logits_of

        with input_variable(self.network) as variables:
            logits = logits_of(self.network(**tensors))
        (gradient,) = torch.autograd.grad(functional.cross_entropy(logits, labels, reduction="sum"), variables[0])
        return gradient.float()

    def _best(self, gradients: Tensor, ids: Tensor, may_flip: Tensor) -> tuple[Tensor, Tensor]:
        """For each place the greatest gain of the loss and the token that brings it, the first one in a tie.

        The gain is 0 where nothing may be flipped and where the loss does not depend on the token.
        """
        import torch

        with torch.no_grad():
            gains, best = gradients.new_zeros(ids.shape), ids.clone()
            compared = may_flip & gradients.any(2)
            slopes, now = gradients[compared], ids[compared]
            table = self.network.get_input_embeddings().weight.float()
            if self.candidates.dim() == 2:
                value, token = best_of_rows(slopes, table, self.candidates[now])
            else:
                value, place = best_of_all(slopes, table[self.candidates])
                token = self.candidates[place]
            gains[compared] = value - (slopes * table[now]).sum(1)
            best[compared] = token
        return gains, best


def best_of_rows(slopes: Tensor, table: Tensor, allowed: Tensor) -> tuple[Tensor, Tensor]:
    """For each place the greatest product with a vector of the tokens in its row of `allowed`, and that token."""
    import torch

    parts = []
    for slope, row in zip(torch.split(slopes, _ROWS), torch.split(allowed, _ROWS), strict=True):
        value, place = torch.einsum("nw,ncw->nc", slope, table[row]).max(1)
        parts.append((value, row.gather(1, place.unsqueeze(1)).squeeze(1)))
    values, tokens = zip(*parts, strict=True)
    return torch.cat(values), torch.cat(tokens)


def best_of_all(slopes: Tensor, vectors: Tensor) -> tuple[Tensor, Tensor]:
    """For each place the greatest product with one of the vectors, and which one it is."""
    import torch

    best = slopes.new_full((len(slopes),), -math.inf)
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
    """The floor(share * length) places of each text with the greatest gain above 0.

    The length counts the tokens that may be flipped.
    """
    worth = gains.where(may_flip & (gains > 0), -math.inf)
    order = worth.argsort(dim=1, descending=True, stable=True)
    rank = order.argsort(dim=1)
    allowed = rank.new_tensor([at_most(share, length) for length in may_flip.sum(1).tolist()])
    return (rank < allowed.unsqueeze(1)) & worth.isfinite()
