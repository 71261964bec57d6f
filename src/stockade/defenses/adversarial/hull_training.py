"""Training on convex combinations of the input vectors of words of like meaning, the worst that can be found.

The input vector of a token becomes sum_j w_j E_j over the token and its neighbours, w = softmax(z). The scores z begin
at random and ascend the loss; each word's scores move by the same length in each step. Where sparseness counts, the
entropy of w is taken off what is ascended, so that a combination ends near one of the words that an attacker could
write.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from stockade.defenses.adversarial.dirichlet import dirichlet_scores
from stockade.defenses.adversarial.pairs import changeable_tokens
from stockade.models.input_vectors import altered_vectors

if TYPE_CHECKING:
    from stockade.training.objective import Batch, Objective


@dataclass(frozen=True, slots=True)
class HullAscent:
    """How the scores begin and move. With a `concentration` the first weights are Dirichlet draws, otherwise the first
    scores are normal.
    """

    steps: int
    step_size: float
    sparsity: float
    concentration: float | None

    def start(self, columns: Tensor, rng: np.random.Generator) -> Tensor:
        """The first scores; `columns` says which entries of each row are words."""
        shape = tuple(columns.shape)
        if self.concentration is None:
            drawn = rng.standard_normal(shape)
        else:
            drawn = dirichlet_scores(rng, self.concentration, shape)
        scores = torch.from_numpy(drawn).to(columns.device, torch.float32)
        return scores.masked_fill(~columns, -torch.inf)

    def ascended(self, scores: Tensor, gradient: Tensor) -> Tensor:
        gradient = torch.nan_to_num(gradient, 0.0, 0.0, 0.0)
        return scores + self.step_size * functional.normalize(gradient, dim=1, eps=1e-30)


@dataclass(frozen=True, slots=True, eq=False)
class Hulls:
    """The places of a batch whose word has neighbours: `texts`, `tokens` are where, `words` what may be combined there,
    `columns` which of those are not repetitions.
    """

    texts: Tensor
    tokens: Tensor
    words: Tensor
    columns: Tensor

    @classmethod
    def of(cls, ids: Tensor, changeable: Tensor, neighbours: Tensor) -> Hulls:
        """Those of token ids that may change; padding and what hides words have no neighbours, so they are never among
        them.
        """
        has_some = neighbours[:, 1] != neighbours[:, 0]
        texts, tokens = torch.nonzero(has_some[ids] & changeable, as_tuple=True)
        words = neighbours[ids[texts, tokens]]
        columns = words != words[:, :1]
        columns[:, 0] = True
        return cls(texts, tokens, words, columns)

    def combined(self, vectors: Tensor, table: Tensor, weights: Tensor) -> Tensor:
        """The vectors of a batch with those of the places replaced by the combinations."""
        mixed = torch.einsum("nc,ncw->nw", weights.to(table.dtype), functional.embedding(self.words, table))
        return vectors.index_put((self.texts, self.tokens), mixed.to(vectors.dtype))

    def entropy(self, weights: Tensor) -> Tensor:
        """The sum over texts of the mean entropy of their words' weights."""
        entropies = -(weights * weights.clamp(min=1e-30).log()).sum(1)
        number = torch.bincount(self.texts).clamp(min=1)
        return (entropies / number[self.texts]).sum()


@dataclass(frozen=True, slots=True, eq=False)
class HullTraining:
    """Trains on the worst combinations found, of pairs those of the hypothesis, and with the share `clean` on the texts
    as they are.
    """

    network: Any
    tokenizer: Any
    plain: Objective
    neighbours: Tensor
    ascent: HullAscent
    clean: float

    def augment(self, batch: Batch) -> Batch:
        return self.plain.augment(batch)

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        ids = batch.tensors["input_ids"]
        hulls = Hulls.of(ids, changeable_tokens(batch.inputs, batch.tensors, self.tokenizer), self.neighbours)
        scores = self.ascent.start(hulls.columns, np.random.default_rng(batch.rng.getrandbits(64)))
        if not len(hulls.texts):
            return self.plain.loss(model, batch)
        for _ in range(self.ascent.steps):
            scores.requires_grad_()
            raised = len(ids) * self._combined_loss(self.network, batch, hulls, scores)
            if self.ascent.sparsity:
                raised = raised - self.ascent.sparsity * hulls.entropy(scores.softmax(1))
            (gradient,) = torch.autograd.grad(raised, scores)
            scores = self.ascent.ascended(scores.detach(), gradient)
        before = torch.zeros((), device=ids.device)
        if self.clean:
            part = self.clean * self.plain.loss(model, batch)
            batch.backward(part)
            before = part.detach()
        return (1 - self.clean) * self._combined_loss(model, batch, hulls, scores) + before

    def _combined_loss(self, model: nn.Module, batch: Batch, hulls: Hulls, scores: Tensor) -> Tensor:
        table, weights = self.network.get_input_embeddings().weight, scores.softmax(1)
        with altered_vectors(self.network, lambda vectors: hulls.combined(vectors, table, weights)):
            return self.plain.loss(model, batch)
