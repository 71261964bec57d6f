"""What the toy studies of BAE are about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.toys import WeightVictim

ROWS = [
    ("a great film with a good heart", 1),
    ("a dull film with a poor story", 0),
    ("great fun", 1),
    ("a dull picture", 1),
]
"""The last is one that the victim gets wrong."""
VICTIM = WeightVictim({"great": 2, "good": 1, "fun": 1, "dull": -2, "poor": -1, "weak": -4, "fine": 4}, bias=0.1)
REFERENCE = "python:tests.studies.bae.toys:predict"
PROPOSED = ("film", "weak", "fine")
"""What the masked LM puts everywhere: a harmless word, one that makes a text negative, one that makes it positive."""


def predict(texts: Sequence[str]) -> Any:
    return VICTIM.predict_proba(texts)


class AlikeEncoder:
    """Finds all texts alike."""

    name = "alike"

    def embed(self, texts: Sequence[str]) -> Any:
        return np.ones((len(texts), 1), dtype=np.float32)
