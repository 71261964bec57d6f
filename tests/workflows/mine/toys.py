"""Models for mining whose logits a person can compute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from stockade.core.protocols import Probabilities
from stockade.core.text import TextInput
from stockade.models.answers import softmax
from tests.toys import words_of


@dataclass(frozen=True)
class Words:
    """A text as the toy reads it."""

    words: tuple[str, ...]

    @property
    def key(self) -> tuple[str, ...]:
        return self.words

    def __len__(self) -> int:
        return len(self.words)


@dataclass
class MeanVictim:
    """The logit of a class is the mean of what its words weigh for that class; other words weigh nothing."""

    weights: Mapping[str, Sequence[float]]
    labels: tuple[str, ...] = ("negative", "positive")
    deterministic: bool = True
    batches: list[int] = field(default_factory=list)
    refused: str = "\0"
    """A word that the model cannot read."""

    def encode(self, inputs: Sequence[TextInput]) -> list[Words]:
        return [Words(tuple(word.lower() for word in words_of(item))) for item in inputs]

    def logits_encoded(self, batch: Sequence[Words]) -> Probabilities:
        self.batches.append(len(batch))
        nothing = (0.0,) * len(self.labels)
        if any(self.refused in text.words for text in batch):
            raise ValueError("cannot read this")
        rows = [np.mean([self.weights.get(word, nothing) for word in text.words], axis=0) for text in batch]
        return np.array(rows, dtype=np.float64).reshape(len(batch), len(self.labels))

    def predict_encoded(self, batch: Sequence[Words]) -> Probabilities:
        return softmax(self.logits_encoded(batch))

    def predict_proba(self, inputs: Sequence[TextInput]) -> Probabilities:
        return self.predict_encoded(self.encode(inputs))
