"""FuSE: answer from a text and alternatives of it in other words."""

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
from stockade.defenses.neighbours import table_resources
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

    The alternatives are SWITCH's, whose options FuSE has too; the text counts as much as each of them. The gradients of
    the very model that is defended say which words are important. Preset `authors` has the released code's defaults.

    Differences to the paper: those of SWITCH. The collapse on clean IMDB texts that the paper reports does not exist
    here: every alternative is made from the text that is asked about.

    Parameters
    ----------
    perturb_words, candidates, match_pos, stop_words, leave_alone, random_out_of, similarity, scale, threshold, \
multiplier, total_alternatives, importance, neighbours
        As in `Switch`.
    combine
        How the answers become one.
    draws
        `fresh` for other alternatives with every question, `fixed` for always the same of a text.
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

    def surrogate(self) -> Fuse:
        return replace(self, combine="probability")

    async def answer(self, text: Text, rng: np.random.Generator) -> Scores:
        alternatives = await self.alternatives(text, Random(int(rng.integers(2**63))))
        answers = await Score([text, *alternatives])
        return combine(np.array([scores.probabilities for scores in answers]), self.combine)
