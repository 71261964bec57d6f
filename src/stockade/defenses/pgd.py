"""PGD-K: train on texts whose input vectors are moved uphill K times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stockade.core.errors import OptionError
from stockade.defenses.registry import register

if TYPE_CHECKING:
    from stockade.training.kit import TrainingKit
    from stockade.training.objective import Objective


@register(
    "pgd",
    paper="Madry et al. 2018, section 2; on word vectors as in Zeng et al. 2021, RanMASK, section 4.3",
    presets={"paper": {}, "ranmask-authors": {"steps": 3}},
)
@dataclass(frozen=True, slots=True)
class Pgd:
    """Train on the worst input vectors near each text: K steps up the loss, then one step of training.

    `steps` is K. A text's perturbation begins at random with about `start_norm`, moves by `step_size` in each step and
    is kept within `max_norm` (0: no limit); norms are over all tokens of a text together. Padding is not moved, nor
    tokens that hide words.

    Differences to the papers: the ball is of the Frobenius norm, as in the code of RanMASK, which starts outside of it
    by default and is projected onto it by the first step.
    """

    steps: int = 10
    step_size: float = 0.3
    start_norm: float = 0.5
    max_norm: float = 0.05

    def __post_init__(self) -> None:
        check_ascent("pgd", self.steps, self.step_size, self.start_norm, self.max_norm)

    def objective(self, kit: TrainingKit) -> Objective:
        from stockade.defenses.adversarial.embedding_perturbation import Ascent, PgdTraining, refuse_nesting

        refuse_nesting("pgd", kit)
        ascent = Ascent(self.steps, self.step_size, self.start_norm, self.max_norm)
        return PgdTraining(kit.network, kit.tokenizer, kit.plain, ascent)


def check_ascent(name: str, steps: int, step_size: float, start_norm: float, max_norm: float) -> None:
    """Say what is wrong with the options of an ascent, if anything is."""
    if steps < 1:
        raise OptionError(f"The steps of {name} are {steps}, expected a whole number from 1 up.")
    for option, value in (("step_size", step_size), ("start_norm", start_norm), ("max_norm", max_norm)):
        if not 0 <= value < float("inf"):
            raise OptionError(f"The {option} of {name} is {value}, expected a number from 0 up.")
    if not step_size and not start_norm:
        raise OptionError(f"{name} has a step_size and a start_norm of 0 and would perturb nothing; raise one of them.")
