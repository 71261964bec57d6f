"""Three models and four texts of which every transfer rate can be computed by hand.

Each text has one word that can be replaced, by one synonym; a text is adversarial if the synonym has the other sign.

    text          synonym    a           b            c
    great film    grand      fooled      fooled       right
    good film     fine       fooled      right        fooled
    dull film     slow       fooled      fooled       right
    poor film     bad        right       wrong before fooled

    from a (texts 0, 1, 2)    to b 2/3    to c 1/3    to its second training 2/3
    from b (texts 0, 2)       to a 1      to c 0
    from c (texts 1, 3)       to a 1/2    to b 1/2, and 0 of the one that b gets right before
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from stockade.core.protocols import Probabilities
from stockade.core.text import TextInput
from tests.toys import WeightVictim

ROWS = [("great film", 1), ("good film", 1), ("dull film", 0), ("poor film", 0)]
SYNONYMS = {"great": ["grand"], "good": ["fine"], "dull": ["slow"], "poor": ["bad"]}
Rates = list[list[float | None]]
RATES: Rates = [[2 / 3, 2 / 3, 1 / 3], [1, None, 0], [1 / 2, 1 / 2, None]]
CLEAN_RATES: Rates = [[2 / 3, 2 / 3, 1 / 3], [1, None, 0], [1 / 2, 0, None]]
"""Rows are sources; only a has a second training."""
_KNOWN = {"great": 1, "good": 1, "dull": -1, "poor": -1}
_WEIGHTS = {
    "a": {**_KNOWN, "grand": -1, "fine": -1, "slow": 1, "bad": -1},
    "a2": {**_KNOWN, "grand": -1, "fine": 1, "slow": 1, "bad": -1},
    "b": {**_KNOWN, "poor": 1, "grand": -1, "fine": 1, "slow": 1, "bad": 1},
    "c": {**_KNOWN, "grand": 1, "fine": -1, "slow": -1, "bad": 1},
}


def victim(name: str) -> WeightVictim:
    """A new copy of one of the models."""
    return WeightVictim(_WEIGHTS[name])


def models(names: str = "abc") -> dict[str, object]:
    return {name: victim(name) for name in names}


def predict_a(texts: Sequence[str]) -> Any:
    return victim("a").predict_proba(texts)


def predict_a2(texts: Sequence[str]) -> Any:
    return victim("a2").predict_proba(texts)


def predict_b(texts: Sequence[str]) -> Any:
    return victim("b").predict_proba(texts)


def predict_c(texts: Sequence[str]) -> Any:
    return victim("c").predict_proba(texts)


MODULE = "python:tests.studies.transfer.toys"
REFERENCES = {name: f"{MODULE}:predict_{name}" for name in "abc"}
SECOND = {"a": f"{MODULE}:predict_a2"}


class Mortal(WeightVictim):
    """Raises on every text with a word that kills it, as long as it is mortal."""

    def __init__(self, name: str, word: str) -> None:
        super().__init__(_WEIGHTS[name])
        self.word, self.mortal = word, True

    def predict_proba(self, inputs: Sequence[TextInput]) -> Probabilities:
        if self.mortal and any(self.word in str(item) for item in inputs):
            raise RuntimeError("out of luck")
        return super().predict_proba(inputs)


def few_synonyms(words: Sequence[str], indices: Sequence[int] | None = None) -> dict[int, Sequence[str]]:
    """Stands in for WordNet."""
    return {i: SYNONYMS.get(words[i], []) for i in (range(len(words)) if indices is None else indices)}


def use_few_synonyms(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("stockade.attacks.pwws.same_pos_synonyms", few_synonyms)
    patch.setattr("stockade.studies.transfer.word_importance.same_pos_synonyms", few_synonyms)
