"""Victims whose answers a person can compute."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from stockade.core.protocols import Probabilities
from stockade.core.text import Text, TextInput


def words_of(item: TextInput) -> tuple[str, ...]:
    return Text.parse(item if isinstance(item, str) else item[1]).words


@dataclass
class WeightVictim:
    """Two classes; the log-odds of "positive" are the sum of its words' weights (plus a bias). Remembers what it was
    asked.
    """

    weights: Mapping[str, float]
    bias: float = 0.0
    labels: tuple[str, ...] = ("negative", "positive")
    deterministic: bool = True
    asked: list[TextInput] = field(default_factory=list)
    batches: list[int] = field(default_factory=list)

    def predict_proba(self, inputs: Sequence[TextInput]) -> Probabilities:
        self.asked += inputs
        self.batches.append(len(inputs))
        rows = []
        for item in inputs:
            odds = self.bias + sum(self.weights.get(word.lower(), 0.0) for word in words_of(item))
            positive = 1 / (1 + math.exp(-odds))
            rows.append((1 - positive, positive))
        return np.array(rows)


@dataclass
class RandomVictim:
    """Any number of classes; each text gets probabilities from a hash of it: no structure for a search to rely on."""

    seed: int = 0
    classes: int = 3
    deterministic: bool = True

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(str(i) for i in range(self.classes))

    def predict_proba(self, inputs: Sequence[TextInput]) -> Probabilities:
        rows = []
        for item in inputs:
            digest = hashlib.sha256(repr((self.seed, item)).encode("utf-8", "surrogatepass")).digest()
            raw = np.frombuffer(digest[: 4 * self.classes], dtype=np.uint32).astype(float) + 1
            rows.append(raw / raw.sum())
        return np.array(rows)
