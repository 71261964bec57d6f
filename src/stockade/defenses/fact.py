"""FACT: train on every text together with alternatives of it in other words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from stockade.core.errors import OptionError
from stockade.core.registry import published
from stockade.defenses.switch import Switch, check_importance

if TYPE_CHECKING:
    from stockade.core.protocols import Classifier
    from stockade.training.objective import Objective, TrainingKit

_MNLI = {"perturb_words": 9, "multiplier": 12, "total_alternatives": 4}
_IMDB = {**_MNLI, "perturb_words": 23}


@published(
    "fact",
    paper="Mein et al. 2020, FireBERT, section 2.1.6",
    presets={"paper": _MNLI, "mnli": _MNLI, "imdb": _IMDB, "authors": {"importance": "half_sq_norm"}},
)
@dataclass(frozen=True, slots=True, kw_only=True)
class Fact(Switch):
    """Train on each text together with alternatives of it that have important words replaced (FACT).

    The alternatives are SWITCH's, whose options these are, with the text's label. The words that matter are found with
    the gradients of a model that the training does not touch: the one it starts from, or `reference_model`. Of each
    text `pool` alternatives are made when it is first seen, `total_alternatives` if not said otherwise; each step draws
    `total_alternatives` of them.

    Differences to the paper: those of SWITCH; alternatives are drawn from a pool, made once, so that later epochs cost
    no more than their rows (in one epoch, as published, it is the same).
    """

    adds_texts: ClassVar[bool] = True
    reference_model: str | None = None
    pool: int | None = None

    def __post_init__(self) -> None:
        Switch.__post_init__(self)
        if self.pool is not None and self.pool < self.total_alternatives:
            raise OptionError(
                f"pool is {self.pool}, expected at least total_alternatives ({self.total_alternatives}): so many "
                "alternatives cannot be drawn from fewer."
            )

    def objective(self, kit: TrainingKit) -> Objective:
        from stockade.defenses.co_tuning import AlternativePool, CoTuning

        pool = AlternativePool(self, self.model(kit), kit.seed)
        return CoTuning(kit.encoder, kit.plain, pool, self.total_alternatives)

    def model(self, kit: TrainingKit) -> Classifier:
        """The model whose gradients say which words matter."""
        if self.reference_model is None:
            if not kit.trained:
                raise OptionError(
                    "fact finds the words that matter with a trained model, and this training starts from an untrained "
                    "one: train one without fact first, then go on from it (--model models/m --defense fact), or name "
                    "it (--defense fact:reference_model=models/m)."
                )
            return kit.frozen()
        from stockade.models import load_model

        found = load_model(self.reference_model, device=str(kit.network.device))
        check_importance("fact", found)
        if len(found.labels) != len(kit.classes):
            raise OptionError(
                f"The reference model {self.reference_model} of fact has {len(found.labels)} classes, expected the "
                f"{len(kit.classes)} of the training data: name a model of the same task."
            )
        return found
