"""A victim that shows its inside and can be computed by hand, and a small table of neighbours."""

from __future__ import annotations

import math
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from stockade.core.errors import SearchStopped
from stockade.core.protocols import (
    Classifier,
    ImportanceObjective,
    NoisedCopies,
    Probabilities,
    SentenceEncoder,
    TokenScores,
)
from stockade.core.text import Text
from stockade.engine.language import EmbeddingService
from stockade.engine.scheduler import Scheduler, Search
from stockade.engine.scoring import ScoringService
from stockade.lexicon.neighbours import write_neighbours
from stockade.lexicon.vectors import WordVectors
from tests.toys import BagEncoder, WeightVictim

Result = TypeVar("Result")
ANGLES = {
    "great": (0, 0),
    "good": (0, 5),
    "fine": (0, 12),
    "film": (1, 0),
    "movie": (1, 5),
    "picture": (1, 12),
    "plot": (2, 0),
    "story": (2, 5),
}
"""Words in planes of their own, at an angle: neighbours are those of the same plane, by their angle."""


def write_table(folder: Path) -> str:
    vectors = np.zeros((len(ANGLES), 6), dtype=np.float32)
    for row, (plane, degrees) in zip(vectors, ANGLES.values(), strict=True):
        row[2 * plane : 2 * plane + 2] = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    path = folder / "neighbours.npz"
    write_neighbours(WordVectors(tuple(ANGLES), vectors), path, {})
    return str(path)


@dataclass
class OpenVictim(WeightVictim):
    """A word is one token and matters as much as its weight; noise on a word takes its weight away."""

    looked: list[Text] = field(default_factory=list)
    noised: list[NoisedCopies] = field(default_factory=list)

    def token_importance(self, texts: Sequence[Text], objective: ImportanceObjective) -> list[TokenScores]:
        self.looked += texts
        return [tuple((abs(self.weights.get(word.lower(), 1e-9)),) for word in text.words) for text in texts]

    def predict_noised(self, requests: Sequence[NoisedCopies]) -> Probabilities:
        self.noised += requests
        rows = []
        for request in requests:
            left = [word for index, word in enumerate(request.text.words) if (index, 0) not in request.tokens]
            odds = self.bias + sum(self.weights.get(word.lower(), 0.0) for word in left)
            rows += [(1 - sigmoid(odds), sigmoid(odds))] * request.copies
        return np.array(rows)


def sigmoid(odds: float) -> float:
    return 1 / (1 + math.exp(-odds))


def log_odds(row: Sequence[float] | Probabilities) -> float:
    return math.log(row[1] / row[0])


def run(
    victim: Classifier, *coroutines: Coroutine[Any, Any, Result], encoder: SentenceEncoder | None = None
) -> list[Any]:
    """What the coroutines return, in order, with everything they ask answered together."""
    embedding = EmbeddingService(lambda: encoder or BagEncoder())
    scheduler = Scheduler.for_classifier(ScoringService(victim), embedding=embedding)
    searches = [Search(lambda coroutine=coroutine: coroutine) for coroutine in coroutines]  # type: ignore[misc]
    results = {id(finished.search): finished.result for finished in scheduler.run(searches)}
    for result in results.values():
        assert not isinstance(result, SearchStopped), result
    return [results[id(search)] for search in searches]
