"""Hull: train on the worst convex combinations of the vectors of words of like meaning, and ask about random ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from stockade.core.errors import ModelError, OptionError
from stockade.core.example import Scores
from stockade.core.protocols import Classifier, MixingClassifier
from stockade.core.registry import published
from stockade.core.text import Text
from stockade.defenses.combine import Combination, Draws, combine
from stockade.defenses.mixtures import word_hulls
from stockade.defenses.replacements import neighbour_table, table_resources
from stockade.engine.requests import Mixed, Score, Vocabulary

if TYPE_CHECKING:
    from stockade.training.objective import Objective, TrainingKit

Start = Literal["normal", "dirichlet"]


@published(
    "hull",
    paper="Dong et al. 2021, Towards Robustness Against Natural Language Word Substitutions (ASCC); Zhou et "
    "al. 2021, Defense against Synonym Substitution-based Adversarial Attacks via Dirichlet Neighborhood Ensemble",
    presets={
        "paper": {},
        "ascc": {},
        "dne": {"start": "dirichlet", "steps": 3, "sparsity": 0.0, "clean": 0.0, "copies": 16},
    },
)
@dataclass(frozen=True, slots=True)
class Hull:
    """Train on the worst mixtures of each word's input vector with those of its synonyms.

    Every token that is a whole word is mixed with at most `count` others of a cosine of at least `min_cosine`. The
    weights of the mixture begin at random (`start`) and ascend the loss in `steps` of `step_size`; `sparsity` is how
    much a mixture of many words is held against it. A share `clean` of the loss is that of the text as it is.

    With `copies` the model is also asked about so many copies whose words are mixtures, with weights of the Dirichlet
    law of `concentration`; `combine` is how they become one answer. With `copies=0` the trained model is asked as it
    is, as ASCC does. Of a pair only words of the hypothesis are mixed. `neighbours` is a table of one's own.

    Differences to the papers: synonyms are single tokens of the vocabulary, from the table of neighbours; every word's
    scores move by the same length in a step; ASCC's divergence from the clean prediction is the plain loss here; DNE
    weighs the answers to its copies by how sure they are, here all count alike.
    """

    innermost: ClassVar[bool] = True
    independent_copies: ClassVar[bool] = True
    alters_texts: ClassVar[bool] = False
    count: int = 8
    min_cosine: float = 0.7
    steps: int = 10
    step_size: float = 1.0
    sparsity: float = 1.0
    start: Start = "normal"
    concentration: float = 1.0
    clean: float = 0.5
    copies: int = 0
    combine: Combination = "probability"
    draws: Draws = "fresh"
    neighbours: str | None = None

    def __post_init__(self) -> None:
        if self.count < 1 or self.steps < 0 or self.copies < 0:
            raise OptionError(
                f"hull has a count of {self.count} neighbours, {self.steps} steps and {self.copies} copies, expected "
                "at least 1, 0 and 0."
            )
        for option in ("step_size", "sparsity"):
            if not 0 <= getattr(self, option) < float("inf"):
                raise OptionError(f"The {option} of hull is {getattr(self, option)}, expected a number from 0 up.")
        if not 0 < self.concentration < float("inf"):
            raise OptionError(f"The concentration of hull is {self.concentration}, expected a number above 0.")
        if not 0 <= self.clean < 1:
            raise OptionError(f"The clean share of hull is {self.clean}, expected one from 0 up to below 1.")

    @property
    def asked(self) -> bool:
        return self.copies > 0

    @property
    def randomised(self) -> bool:
        return self.draws == "fresh"

    def check(self, inner: Classifier) -> None:
        if not isinstance(inner, MixingClassifier):
            raise ModelError(
                "hull mixes the model's input vectors, and this model does not let it: give a Hugging Face model or a "
                "built-in one, or use safer, which changes words."
            )
        if not inner.word_vocabulary().words:
            raise ModelError(
                "hull mixes the input vectors of words, and this model reads characters or bytes: use safer, which "
                "changes words."
            )

    def resources(self) -> Mapping[str, str]:
        return table_resources(self.neighbours)

    def twin(self) -> Hull:
        return replace(self, combine="probability")

    async def answer(self, text: Text, rng: np.random.Generator) -> Scores:
        hulls = word_hulls(await Vocabulary(), neighbour_table(self.neighbours), self.count, self.min_cosine)
        mixed = hulls.drawn(text, self.concentration, self.copies, rng)
        if mixed is None:
            return combine(np.array([(await Score([text]))[0].probabilities]), self.combine)
        return combine(await Mixed(mixed), self.combine)

    def objective(self, kit: TrainingKit) -> Objective:
        import torch

        from stockade.defenses.adversarial.embedding_perturbation import refuse_nesting
        from stockade.defenses.adversarial.hull_training import HullAscent, HullTraining
        from stockade.defenses.adversarial.vocabulary import neighbour_tokens

        refuse_nesting("hull", kit)
        table = neighbour_table(self.neighbours)
        device = kit.network.get_input_embeddings().weight.device
        found = torch.from_numpy(neighbour_tokens(kit.tokenizer, table, self.count, self.min_cosine))
        concentration = self.concentration if self.start == "dirichlet" else None
        ascent = HullAscent(self.steps, self.step_size, self.sparsity, concentration)
        return HullTraining(kit.network, kit.tokenizer, kit.plain, found.to(device), ascent, self.clean)
