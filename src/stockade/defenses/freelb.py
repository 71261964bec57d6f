"""FreeLB: train on every step that the input vectors are moved uphill."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from stockade.core.registry import published
from stockade.defenses.pgd import Norm, check_ascent

if TYPE_CHECKING:
    from torch import Tensor, nn

    from stockade.defenses.embedding_perturbation import VectorPerturbation
    from stockade.training.objective import Batch, Objective, TrainingKit

_ABSOLUTE: dict[str, Any] = {"norm": "absolute"}


@published(
    "freelb",
    paper="Zhu et al. 2020, FreeLB: Enhanced Adversarial Training for Natural Language Understanding, algorithm 1",
    presets={
        "default": {},
        "paper": _ABSOLUTE,
        "mnli": {"start_norm": 0.15, "max_norm": 0.25, **_ABSOLUTE},
        "albert-sst2": {"start_norm": 0.6, "max_norm": 0.0, **_ABSOLUTE},
        "albert-mnli": {"steps": 3, "step_size": 0.04, "start_norm": 0.08, "max_norm": 0.0, **_ABSOLUTE},
        "ranmask-authors": {"steps": 3, "step_size": 0.3, "start_norm": 0.5, "max_norm": 0.05, **_ABSOLUTE},
    },
)
@dataclass(frozen=True, slots=True, kw_only=True)
class FreeLb:
    """Train on perturbed input vectors, with every step of the search for the worst ones adding to the gradient.

    Each of the K steps back-propagates a K-th of the loss into the weights and moves the perturbation; then the weights
    move once. With a `start_norm` above 0 the clean text is never trained on. The defaults suit RoBERTa on SST-2
    (middle of the published ranges).

    All K passes of a text drop the same numbers, as in the paper (section 3.3); the code of RanMASK draws anew.
    Differences to the paper: tokens that hide words are not moved. Without a preset, models of the zoo that are no
    transformers have norms relative to their own vectors, which the paper does not have.

    Parameters
    ----------
    steps, step_size, start_norm, max_norm, norm
        As in `Pgd`; `steps` is K.
    """

    steps: int = 2
    step_size: float = 0.1
    start_norm: float = 0.75
    max_norm: float = 0.5
    norm: Norm = "auto"

    def __post_init__(self) -> None:
        check_ascent("freelb", self)

    def objective(self, kit: TrainingKit) -> Objective:
        from stockade.defenses.embedding_perturbation import VectorPerturbation

        return FreeLbTraining(kit.plain, VectorPerturbation.of("freelb", self, kit))


@dataclass(frozen=True, slots=True, eq=False)
class FreeLbTraining:
    """Trains on every step of the ascent: each adds its share of the gradient to the weights.

    All steps drop the same numbers, so that they ascend one function.
    """

    ascends_vectors: ClassVar[bool] = True
    plain: Objective
    vectors: VectorPerturbation

    def measured(self) -> dict[str, Any]:
        return self.vectors.measured()

    def augment(self, batch: Batch) -> Batch:
        return self.plain.augment(batch)

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        import torch

        from stockade.defenses.embedding_perturbation import replayed_dropout

        vectors, steps = self.vectors, self.vectors.ascent.steps
        moved, perturbation = vectors.start(batch)
        same_dropout = replayed_dropout(moved.device)
        before = torch.zeros((), device=moved.device)
        for _ in range(steps - 1):
            perturbation.requires_grad_()
            part = vectors.loss(self.plain, model, batch, perturbation) / steps
            batch.backward(part)
            assert perturbation.grad is not None
            perturbation = vectors.ascent.ascended(perturbation.detach(), perturbation.grad, moved)
            before = before + part.detach()
            same_dropout()
        part = vectors.loss(self.plain, model, batch, perturbation) / steps
        return part + before  # the earlier parts are in the weights' gradients already; here they only count
