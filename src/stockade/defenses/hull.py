"""Hull training: train on the worst convex combinations of the vectors of words of like meaning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from stockade.core.errors import OptionError
from stockade.defenses.registry import register

if TYPE_CHECKING:
    from stockade.training.kit import TrainingKit
    from stockade.training.objective import Objective

Start = Literal["normal", "dirichlet"]


@register(
    "hull",
    paper="Dong et al. 2021, Towards Robustness Against Natural Language Word Substitutions (ASCC); Zhou et "
    "al. 2021, Defense against Synonym Substitution-based Adversarial Attacks via Dirichlet Neighborhood Ensemble",
    presets={
        "paper": {},
        "ascc": {},
        "dne": {"start": "dirichlet", "steps": 3, "sparsity": 0.0, "clean": 0.0},
    },
)
@dataclass(frozen=True, slots=True)
class Hull:
    """Train on the worst mixtures of each word's input vector with those of its synonyms.

    Every token that is a whole word is mixed with at most `count` others of a cosine of at least `min_cosine`. The
    weights of the mixture begin at random (`start`) and ascend the loss in `steps` of `step_size`; `sparsity` is how
    much a mixture of many words is held against it. A share `clean` of the loss is that of the text as it is.

    Differences to the papers: synonyms are single tokens of the vocabulary, from the table of neighbours; every word's
    scores move by the same length in a step; ASCC's divergence from the clean prediction is the plain loss here. DNE
    also averages over mixtures when it predicts; that is not done, the trained model is asked as it is.
    """

    count: int = 8
    min_cosine: float = 0.7
    steps: int = 10
    step_size: float = 1.0
    sparsity: float = 1.0
    start: Start = "normal"
    concentration: float = 1.0
    clean: float = 0.5

    def __post_init__(self) -> None:
        if self.count < 1 or self.steps < 0:
            raise OptionError(
                f"hull has a count of {self.count} neighbours and {self.steps} steps, expected at least 1 and 0."
            )
        for option in ("step_size", "sparsity"):
            if not 0 <= getattr(self, option) < float("inf"):
                raise OptionError(f"The {option} of hull is {getattr(self, option)}, expected a number from 0 up.")
        if not 0 < self.concentration < float("inf"):
            raise OptionError(f"The concentration of hull is {self.concentration}, expected a number above 0.")
        if not 0 <= self.clean < 1:
            raise OptionError(f"The clean share of hull is {self.clean}, expected one from 0 up to below 1.")

    def objective(self, kit: TrainingKit) -> Objective:
        import torch

        from stockade.defenses.adversarial.embedding_perturbation import refuse_nesting
        from stockade.defenses.adversarial.hull_training import HullAscent, HullTraining
        from stockade.defenses.adversarial.vocabulary import neighbour_tokens
        from stockade.lexicon import load_neighbours

        refuse_nesting("hull", kit)
        device = kit.network.get_input_embeddings().weight.device
        found = torch.from_numpy(neighbour_tokens(kit.tokenizer, load_neighbours(), self.count, self.min_cosine))
        concentration = self.concentration if self.start == "dirichlet" else None
        ascent = HullAscent(self.steps, self.step_size, self.sparsity, concentration)
        return HullTraining(kit.network, kit.plain, found.to(device), ascent, self.clean)
