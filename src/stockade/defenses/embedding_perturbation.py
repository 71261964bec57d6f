"""Perturbations of a text's input vectors that ascend the loss: what PGD and FreeLB share.

The perturbation d of a text has a vector for each of its tokens, and its norm is that over all of them together:

    start    d = U(-1, 1) * start_norm / sqrt(tokens * width)
    ascend   d = d + step_size * g / |g|,  g = the gradient of the loss with respect to d
    project  d = d * max_norm / |d|  if that is shorter; no limit at max_norm = 0

The published numbers are lengths for BERT, whose word vectors have a mean length of 1.4. In a model with vectors of
another length they are another share of a text: |x| is about v * sqrt(tokens) where v is the mean length of a vector.
Relative norms keep the share of BERT: all three lengths are multiplied by v / 1.4, so that for texts of equally many
tokens max_norm / |x| is the same in every model, and the published numbers themselves for BERT.

Needs torch, so defenses import it when they train.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from stockade.core.errors import ModelError, OptionError
from stockade.defenses.changeable import perturbable_tokens
from stockade.models.input_vectors import altered_vectors
from stockade.models.zoo.heads import ZooClassifier

if TYPE_CHECKING:
    from stockade.defenses.freelb import FreeLb
    from stockade.defenses.pgd import Pgd
    from stockade.training.objective import Batch, Objective, TrainingKit

BERT_VECTOR_NORM = 1.4
"""The mean length of the word vectors of BERT-base, before position, segment and layer norm are added."""
_DIGITS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Ascent:
    """How a perturbation begins and moves; norms are per text."""

    steps: int
    step_size: float
    start_norm: float
    max_norm: float

    @classmethod
    def of(cls, options: Pgd | FreeLb, scale: float = 1.0) -> Ascent:
        """The ascent of a defense with all its lengths multiplied by `scale`."""
        return cls(
            steps=options.steps,
            step_size=options.step_size * scale,
            start_norm=options.start_norm * scale,
            max_norm=options.max_norm * scale,
        )

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
    """Perturbs the input vectors of a network, as an ascent says.

    `name` is the defense's; `scale` is what the ascent's lengths were multiplied by, None where they are absolute, and
    `vector_norm` the mean length of the input vectors when the training began.
    """

    network: Any
    tokenizer: Any
    ascent: Ascent
    name: str
    vector_norm: float
    scale: float | None

    @classmethod
    def of(cls, name: str, options: Pgd | FreeLb, kit: TrainingKit) -> VectorPerturbation:
        """The perturbation of a defense; one that stands around another such search is refused."""
        refuse_nesting(name, kit)
        length = vector_norm(kit.network)
        relative = isinstance(kit.network, ZooClassifier) if options.norm == "auto" else options.norm == "relative"
        if relative and not length:
            raise ModelError(
                f"The input vectors of {type(kit.network).__name__} are all zero or not finite, so the norms of {name} "
                f"cannot be relative to them; use {name}:norm=absolute, or repair the model."
            )
        scale = _rounded(length / BERT_VECTOR_NORM) if relative else None
        ascent = Ascent.of(options, 1.0 if scale is None else scale)
        return cls(kit.network, kit.tokenizer, ascent, name, length, scale)

    def measured(self) -> dict[str, Any]:
        """What the manifest records: how long the vectors are, and the lengths that follow."""
        lengths = {name: _rounded(value) for name, value in asdict(self.ascent).items() if name != "steps"}
        norm = "absolute" if self.scale is None else "relative"
        return {self.name: {"norm": norm, "vector_norm": self.vector_norm, "scale": self.scale or 1.0, **lengths}}

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


def vector_norm(network: Any) -> float:
    """The mean length of a network's input vectors; those of length 0, such as padding's, do not count.

    To six digits, so that it is the same on every machine. 0 if there are no others, or if they are not finite.
    """
    table = network.get_input_embeddings().weight.detach().float().cpu().numpy()
    lengths = np.linalg.norm(table.astype(np.float64), axis=1)
    lengths = lengths[lengths != 0]
    if not len(lengths) or not np.isfinite(lengths).all():
        return 0.0
    return _rounded(float(lengths.mean()))


def _rounded(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")


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
