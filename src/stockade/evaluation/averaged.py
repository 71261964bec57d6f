"""The mean of several answers of a randomised classifier: what an attacker sees who asks more than once.

Athalye et al. 2018, "Obfuscated Gradients Give a False Sense of Security", section 4.3, call it expectation over
randomness: a search that takes one draw for the truth follows noise, its mean is what the defense does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stockade.core.errors import OptionError
from stockade.core.example import Scores
from stockade.core.protocols import Classifier, Probabilities
from stockade.core.text import Text, TextInput
from stockade.defenses.defended import probabilities_of
from stockade.engine.requests import Score
from stockade.models.language import LanguageModels

DEFAULT_LANGUAGE = LanguageModels()


@dataclass(frozen=True, slots=True)
class Averaged:
    """A randomised classifier, asked `draws` times about each text; one answer costs an attack one query."""

    inner: Classifier
    draws: int
    language: LanguageModels = DEFAULT_LANGUAGE

    def __post_init__(self) -> None:
        if self.draws < 1:
            raise OptionError(f"An expectation is over {self.draws} draws, expected at least 1.")

    @property
    def labels(self) -> tuple[str, ...]:
        return self.inner.labels

    @property
    def deterministic(self) -> bool:
        return self.inner.deterministic

    async def answer(self, text: Text, draw: int) -> Scores:
        """The random choices are those of the search inside, which is named by `draw`."""
        rows = await Score([text] * self.draws)
        return Scores(tuple(np.mean([row.probabilities for row in rows], axis=0).tolist()))

    def predict_proba(self, inputs: Sequence[TextInput]) -> Probabilities:
        """Class probabilities of each text; the same text has the same answer whatever else is asked with it."""
        return probabilities_of(self, inputs, self.language, "averaged")
