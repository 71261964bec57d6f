"""FuSE: ask about a text and about alternatives of it in other words, take what they say together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from random import Random

import numpy as np

from stockade.core.example import Scores
from stockade.core.protocols import Classifier
from stockade.core.registry import published
from stockade.core.text import Text
from stockade.defenses.combine import Combination, Draws, combine
from stockade.defenses.replacements import table_resources
from stockade.defenses.switch import Switch, check_importance
from stockade.engine.requests import Score

_MNLI = {"perturb_words": 2, "multiplier": 14, "total_alternatives": 14, "combine": "logit"}
_IMDB = {"perturb_words": 3, "multiplier": 17, "total_alternatives": 12, "combine": "probability"}


@published(
    "fuse",
    paper="Mein et al. 2020, FireBERT, section 2.1.4",
    presets={"paper": _MNLI, "mnli": _MNLI, "imdb": _IMDB, "authors": {"importance": "half_sq_norm"}},
)
@dataclass(frozen=True, slots=True, kw_only=True)
class Fuse(Switch):
    """Answer with what a text and alternatives of it, with important words replaced, say together (FuSE).

    The alternatives are SWITCH's, whose options these are; the text counts as much as each of them. The words that
    matter are found with the gradients of the very model that is defended. `combine` is how the answers become one.
    With `draws=fixed` a text always has the same alternatives. Preset `authors` has the released code's defaults.

    Differences to the paper: those of SWITCH. The collapse on clean IMDB texts that the paper reports does not exist
    here: every alternative is made from the text that is asked about.
    """

    combine: Combination = "logit"
    draws: Draws = "fresh"

    @property
    def randomised(self) -> bool:
        return self.draws == "fresh"

    def check(self, inner: Classifier) -> None:
        check_importance("fuse", inner)

    def resources(self) -> Mapping[str, str]:
        return table_resources(self.neighbours)

    def twin(self) -> Fuse:
        return replace(self, combine="probability")

    async def answer(self, text: Text, rng: np.random.Generator) -> Scores:
        alternatives = await self.alternatives(text, Random(int(rng.integers(2**63))))
        scores = await Score([text, *alternatives])
        return combine(np.array([one.probabilities for one in scores]), self.combine)
