"""FreeLB: train on every step that the input vectors are moved uphill."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stockade.defenses.pgd import check_ascent
from stockade.defenses.registry import register

if TYPE_CHECKING:
    from stockade.training.kit import TrainingKit
    from stockade.training.objective import Objective


@register(
    "freelb",
    paper="Zhu et al. 2020, FreeLB: Enhanced Adversarial Training for Natural Language Understanding, algorithm 1",
    presets={
        "paper": {},
        "mnli": {"start_norm": 0.15, "max_norm": 0.25},
        "albert-sst2": {"start_norm": 0.6, "max_norm": 0.0},
        "albert-mnli": {"steps": 3, "step_size": 0.04, "start_norm": 0.08, "max_norm": 0.0},
        "ranmask-authors": {"steps": 3, "step_size": 0.3, "start_norm": 0.5, "max_norm": 0.05},
    },
)
@dataclass(frozen=True, slots=True)
class FreeLb:
    """Train on perturbed input vectors, with every step of the search for the worst ones adding to the gradient.

    `steps` is K: each back-propagates a K-th of the loss into the weights and moves the perturbation on; then the
    weights move once. The other options are those of `pgd`. With a `start_norm` above 0 the clean text is never seen.
    The defaults suit RoBERTa on SST-2 (middle of the published ranges).

    All K passes of a text drop the same numbers, as in the paper (section 3.3); the code of RanMASK draws anew.
    Differences to the paper: tokens that hide words are not moved.
    """

    steps: int = 2
    step_size: float = 0.1
    start_norm: float = 0.75
    max_norm: float = 0.5

    def __post_init__(self) -> None:
        check_ascent("freelb", self.steps, self.step_size, self.start_norm, self.max_norm)

    def objective(self, kit: TrainingKit) -> Objective:
        from stockade.defenses.adversarial.embedding_perturbation import Ascent, FreeLbTraining, refuse_nesting

        refuse_nesting("freelb", kit)
        ascent = Ascent(self.steps, self.step_size, self.start_norm, self.max_norm)
        return FreeLbTraining(kit.network, kit.tokenizer, kit.plain, ascent)
