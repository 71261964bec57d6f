"""Perturbations of a text's input vectors that ascend the loss: what PGD and FreeLB share.

The perturbation d of a text has a vector for each of its tokens, and its norm is that over all of them together:

    start    d = U(-1, 1) * start_norm / sqrt(tokens * width)
    ascend   d = d + step_size * g / |g|,  g = the gradient of the loss with respect to d
    project  d = d * max_norm / |d|  if that is shorter; no limit at max_norm = 0

Needs torch, so defenses import it when they train.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from random import Random
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from stockade.core.errors import OptionError
from stockade.defenses.changeable import perturbable_tokens
from stockade.models.input_vectors import altered_vectors

if TYPE_CHECKING:
    from stockade.defenses.freelb import FreeLb
    from stockade.defenses.pgd import Pgd
    from stockade.training.objective import Batch, Objective, TrainingKit


@dataclass(frozen=True, slots=True, kw_only=True)
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
        """The perturbation, shortened to `max_norm` where it is longer."""
        if not self.max_norm:
            return perturbation
        length = _norms(perturbation)
        return torch.where(length > self.max_norm, perturbation * (self.max_norm / length), perturbation)


@dataclass(frozen=True, slots=True, eq=False)
class VectorPerturbation:
    """Perturbs the input vectors of a network, as an ascent says."""

    network: Any
    tokenizer: Any
    ascent: Ascent

    @classmethod
    def of(cls, name: str, options: Pgd | FreeLb, kit: TrainingKit) -> VectorPerturbation:
        """The perturbation of a defense; one that stands around another such search is refused."""
        refuse_nesting(name, kit)
        return cls(kit.network, kit.tokenizer, Ascent(**asdict(options)))

    def start(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Which tokens of a batch may move, and their first perturbation."""
        moved = perturbable_tokens(batch.tensors, self.tokenizer)
        return moved, self.ascent.start(moved, vector_width(self.network), batch.rng)

    def loss(self, plain: Objective, model: nn.Module, batch: Batch, perturbation: Tensor) -> Tensor:
        """The loss of `plain` with the perturbation added to the input vectors.

        `model` is what is called: the network, or what stands around it where several processes train together.
        """
        with altered_vectors(self.network, lambda vectors: vectors + perturbation.to(vectors.dtype)):
            return plain.loss(model, batch)


def refuse_nesting(name: str, kit: TrainingKit) -> None:
    """Refuse to search for the worst input vectors inside another such search (an objective that `ascends_vectors`)."""
    inside: Any = kit.plain
    while inside is not None:
        if getattr(inside, "ascends_vectors", False):
            raise OptionError(
                f"{name} and another defense of pgd, freelb and hull were named; each looks for the worst input "
                "vectors itself, so train with one of them."
            )
        inside = getattr(inside, "plain", None)


def vector_width(network: Any) -> int:
    """How many numbers an input vector of the network has."""
    return int(network.get_input_embeddings().weight.shape[-1])


def replayed_dropout(device: torch.device) -> Callable[[], None]:
    """A function that puts torch's generators back to their present state, so that later passes drop the same."""
    states: list[tuple[Callable[[Tensor], None], Tensor]] = [(torch.set_rng_state, torch.get_rng_state())]
    if device.type == "cuda":
        states.append((lambda state: torch.cuda.set_rng_state(state, device), torch.cuda.get_rng_state(device)))
    elif device.type == "mps":
        states.append((torch.mps.set_rng_state, torch.mps.get_rng_state()))

    def put_back() -> None:
        for put, state in states:
            put(state)

    return put_back


def _norms(vectors: Tensor) -> Tensor:
    """The norm of each text's vectors together, in a shape that divides them."""
    norms: Tensor = torch.linalg.vector_norm(vectors, dim=(1, 2), keepdim=True)
    return norms
