"""Training on texts whose input vectors are moved to where the loss is higher: PGD and FreeLB.

The perturbation d of a text has a vector for each of its tokens, and its norm is that over all of them together:

    start    d = U(-1, 1) * start_norm / sqrt(tokens * width)
    ascend   d = d + step_size * g / |g|,  g = the gradient of the loss with respect to d
    project  d = d * max_norm / |d|  if that is shorter; no limit at max_norm = 0
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from stockade.core.errors import OptionError
from stockade.defenses.adversarial.perturbable import perturbable_tokens, replayed_dropout, vector_width
from stockade.models.input_vectors import altered_vectors

if TYPE_CHECKING:
    from stockade.training.kit import TrainingKit
    from stockade.training.objective import Batch, Objective


@dataclass(frozen=True, slots=True)
class Ascent:
    """How a perturbation begins and moves; norms are per text."""

    steps: int
    step_size: float
    start_norm: float
    max_norm: float

    def start(self, moved: Tensor, width: int, rng: Random) -> Tensor:
        """The first perturbation of a batch; `moved` says which tokens may move."""
        generator = torch.Generator().manual_seed(rng.getrandbits(63))
        noise = 2 * torch.rand((*moved.shape, width), generator=generator) - 1
        numbers = moved.sum(1).clamp(min=1) * width
        return noise.to(moved.device) * moved.unsqueeze(2) * (self.start_norm / numbers.sqrt()).view(-1, 1, 1)

    def ascended(self, perturbation: Tensor, gradient: Tensor, moved: Tensor) -> Tensor:
        """One step up the gradient, back into the ball; a text whose gradient is zero or not finite stays."""
        gradient = gradient * moved.unsqueeze(2)
        length = _norms(gradient)
        usable = (length > 0) & length.isfinite()
        direction = torch.where(usable, gradient / torch.where(usable, length, 1), 0)
        return self.projected(perturbation + self.step_size * direction)

    def projected(self, perturbation: Tensor) -> Tensor:
        if not self.max_norm:
            return perturbation
        length = _norms(perturbation)
        return torch.where(length > self.max_norm, perturbation * (self.max_norm / length), perturbation)


@dataclass(frozen=True, slots=True, eq=False)
class PgdTraining:
    """Ascends `steps` times, then trains on where that has led, and on nothing else."""

    network: Any
    tokenizer: Any
    plain: Objective
    ascent: Ascent

    def augment(self, batch: Batch) -> Batch:
        return self.plain.augment(batch)

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        moved = perturbable_tokens(batch.tensors, self.tokenizer)
        perturbation = self.ascent.start(moved, vector_width(self.network), batch.rng)
        for _ in range(self.ascent.steps):
            perturbation.requires_grad_()
            loss = perturbed_loss(self.plain, self.network, self.network, batch, perturbation)
            (gradient,) = torch.autograd.grad(loss, perturbation)
            perturbation = self.ascent.ascended(perturbation.detach(), gradient, moved)
        return perturbed_loss(self.plain, self.network, model, batch, perturbation)


@dataclass(frozen=True, slots=True, eq=False)
class FreeLbTraining:
    """Trains on every step of the ascent: each adds its share of the gradient to the weights while it moves the
    perturbation. All steps drop the same numbers, so that they ascend one function.
    """

    network: Any
    tokenizer: Any
    plain: Objective
    ascent: Ascent

    def augment(self, batch: Batch) -> Batch:
        return self.plain.augment(batch)

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        moved = perturbable_tokens(batch.tensors, self.tokenizer)
        perturbation = self.ascent.start(moved, vector_width(self.network), batch.rng)
        same_dropout = replayed_dropout(moved.device)
        before = torch.zeros((), device=moved.device)
        for _ in range(self.ascent.steps - 1):
            perturbation.requires_grad_()
            part = perturbed_loss(self.plain, self.network, model, batch, perturbation) / self.ascent.steps
            batch.backward(part)
            assert perturbation.grad is not None
            perturbation = self.ascent.ascended(perturbation.detach(), perturbation.grad, moved)
            before = before + part.detach()
            same_dropout()
        part = perturbed_loss(self.plain, self.network, model, batch, perturbation) / self.ascent.steps
        return part + before  # the earlier parts are in the weights' gradients already; here they only count


def perturbed_loss(plain: Objective, network: Any, model: nn.Module, batch: Batch, perturbation: Tensor) -> Tensor:
    """The loss of `plain` with the perturbation added to the input vectors. `model` is what is called: the network, or
    what stands around it where several processes train together.
    """
    with altered_vectors(network, lambda vectors: vectors + perturbation.to(vectors.dtype)):
        return plain.loss(model, batch)


def refuse_nesting(name: str, kit: TrainingKit) -> None:
    """Defenses that look for the worst input vectors cannot look inside each other."""
    from stockade.defenses.adversarial.hull_training import HullTraining

    inside: Any = kit.plain
    while inside is not None:
        if isinstance(inside, PgdTraining | FreeLbTraining | HullTraining):
            raise OptionError(
                f"{name} and another defense of pgd, freelb and hull were named; each looks for the worst input "
                "vectors itself, so train with one of them."
            )
        inside = getattr(inside, "plain", None)


def _norms(vectors: Tensor) -> Tensor:
    """The norm of each text's vectors together, in a shape that divides them."""
    norms: Tensor = torch.linalg.vector_norm(vectors, dim=(1, 2), keepdim=True)
    return norms
