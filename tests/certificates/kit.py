"""Smoothed toys: models whose smoothed answers can be computed by trying every copy."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations, product
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from stockade.certificates.run import CertificateRun
from stockade.certificates.store import FILE_NAME
from stockade.core.example import Scores
from stockade.core.masks import kept_words, masks_by_number
from stockade.core.protocols import Classifier
from stockade.core.text import Text
from stockade.defenses.combine import combine
from stockade.engine.requests import Masked

Words = tuple[int, ...]
Array = NDArray[np.int64]

ROWS = [
    ("a good and rather moving film", "positive"),
    ("a bad and rather dull film", "negative"),
    ("good fun for all of us", "positive"),
    ("bad from the very first scene", "negative"),
    ("neither good nor bad but long", "negative"),
    ("good", "positive"),
]


@dataclass(frozen=True, slots=True)
class EveryMask:
    """The exact smoothed classifier: every mask of a text is asked, and each has one vote."""

    innermost: ClassVar[bool] = True
    randomised: ClassVar[bool] = False
    rate: float = 0.7

    def check(self, inner: Classifier) -> None:
        """Any model will do."""

    async def answer(self, text: Text, rng: np.random.Generator) -> Scores:
        words = str(text).split()
        return combine(await Masked(words, text.premise, every_mask(len(words), self.rate)), "vote")


def every_mask(words: int, rate: float) -> np.ndarray:  # type: ignore[type-arg]
    kept = kept_words(words, rate)
    number = len(list(combinations(range(words), kept)))
    return masks_by_number(np.arange(number), words, kept)


def every_change(words: list[str], changes: int, vocabulary: list[str]) -> list[str]:
    """All texts with at most so many words replaced by words of a vocabulary."""
    found = []
    for places in combinations(range(len(words)), changes):
        for chosen in product(vocabulary, repeat=changes):
            other = list(words)
            for place, word in zip(places, chosen, strict=True):
                other[place] = word
            found.append(" ".join(other))
    return found


def tampered(folder: Path, change: Callable[[dict[str, Any]], object]) -> CertificateRun:
    """The run with its first certificate changed in the file."""
    connection = sqlite3.connect(folder / FILE_NAME)
    rowid, text = connection.execute("SELECT rowid, certificate FROM certificates ORDER BY rowid").fetchone()
    content = json.loads(text)
    change(content)
    connection.execute("UPDATE certificates SET certificate = ? WHERE rowid = ?", (json.dumps(content), rowid))
    connection.commit()
    connection.close()
    return CertificateRun(folder)


def skewed(rng: np.random.Generator, size: int, classes: int, errors: float) -> Array:
    return np.where(rng.random(size) < errors, rng.integers(0, classes, size), 0)


def rank(radius: int | None) -> int:
    return -1 if radius is None else radius
