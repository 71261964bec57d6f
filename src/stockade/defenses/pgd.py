"""PGD-K: train on texts whose input vectors are moved uphill K times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from stockade.core.errors import OptionError
from stockade.core.registry import published

if TYPE_CHECKING:
    from torch import Tensor, nn

    from stockade.defenses.embedding_perturbation import VectorPerturbation
    from stockade.defenses.freelb import FreeLb
    from stockade.training.objective import Batch, Objective, TrainingKit

Norm = Literal["auto", "absolute", "relative"]


@published(
    "pgd",
    paper="Madry et al. 2018, section 2; on word vectors as in Zeng et al. 2021, RanMASK, section 4.3",
    presets={
        "default": {},
        "paper": {"norm": "absolute"},
        "ranmask-authors": {"steps": 3, "norm": "absolute"},
    },
)
@dataclass(frozen=True, slots=True, kw_only=True)
class Pgd:
    """Train on the worst input vectors near each text: K steps up the loss, then one step of training.

    A text's perturbation begins at random and moves along the gradient of the loss. Norms are over all tokens of a text
    together. Padding is not moved, nor tokens that hide words. The numbers are those of RanMASK's code, for BERT and
    RoBERTa; the presets take them as they are.

    Differences to the papers: the ball is of the Frobenius norm, as in the code of RanMASK, which starts outside of it
    by default and is projected onto it by the first step. Without a preset, models of the zoo that are no transformers
    have norms relative to their own vectors, which the papers do not have.

    Parameters
    ----------
    steps
        K, the steps of the ascent.
    step_size
        The length of each step.
    start_norm
        About the norm of the random perturbation that the ascent begins with.
    max_norm
        The radius of the ball that the perturbation is projected onto; 0 for no limit.
    norm
        What `step_size`, `start_norm` and `max_norm` are. `absolute`: lengths, as published for BERT. `relative`:
        lengths for vectors as long as BERT's, which are multiplied by the mean length of this model's input vectors
        over that of BERT's (1.4). `auto`: relative for models of the zoo that are no transformers, else absolute.
    """

    steps: int = 10
    step_size: float = 0.3
    start_norm: float = 0.5
    max_norm: float = 0.05
    norm: Norm = "auto"

    def __post_init__(self) -> None:
        check_ascent("pgd", self)

    def objective(self, kit: TrainingKit) -> Objective:
        from stockade.defenses.embedding_perturbation import VectorPerturbation

        return PgdTraining(kit.plain, VectorPerturbation.of("pgd", self, kit))


@dataclass(frozen=True, slots=True, eq=False)
class PgdTraining:
    """Ascends, then trains on where the ascent has ended, and on nothing else."""

    ascends_vectors: ClassVar[bool] = True
    plain: Objective
    vectors: VectorPerturbation

    def measured(self) -> dict[str, Any]:
        return self.vectors.measured()

    def augment(self, batch: Batch) -> Batch:
        return self.plain.augment(batch)

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        import torch

        vectors = self.vectors
        moved, perturbation = vectors.start(batch)
        for _ in range(vectors.ascent.steps):
            perturbation.requires_grad_()
            loss = vectors.loss(self.plain, vectors.network, batch, perturbation)
            (gradient,) = torch.autograd.grad(loss, perturbation)
            perturbation = vectors.ascent.ascended(perturbation.detach(), gradient, moved)
        return vectors.loss(self.plain, model, batch, perturbation)


def check_ascent(name: str, options: Pgd | FreeLb) -> None:
    """Refuse options of an ascent that make no sense, in one sentence."""
    if options.steps < 1:
        raise OptionError(f"The steps of {name} are {options.steps}, expected a whole number from 1 up.")
    for option in ("step_size", "start_norm", "max_norm"):
        value = getattr(options, option)
        if not 0 <= value < float("inf"):
            raise OptionError(f"The {option} of {name} is {value}, expected a number from 0 up.")
    if not options.step_size and not options.start_norm:
        raise OptionError(f"{name} has a step_size and a start_norm of 0 and would perturb nothing; raise one of them.")
