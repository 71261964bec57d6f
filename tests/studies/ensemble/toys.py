"""Victims that each read a few words, so that who is fooled by misspelt words can be told by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import stockade as st
from stockade.studies.ensemble.study import EnsembleResult
from stockade.studies.transferability.matrix import TransferMatrix
from tests.toys import WeightVictim

WORDS = ("good", "great", "fun")
ROWS = [(f"a {word} picture", "positive") for word in WORDS] + [("a film", "negative")]
"""Three texts with one word each that matters, and one that has none and cannot be made positive."""
CNN, LSTM, BERT, CHARACTERS = NAMES = ("CNN-W-Random-1", "LSTM-W-Random-1", "BERT", "CNN-C-Random-1")
READS = {CNN: WORDS, LSTM: WORDS[:2], BERT: WORDS[:1], CHARACTERS: ()}
"""The words that each model reads. Their log-odds of "positive" are 3 for each of them minus 1, so that a misspelt text
is negative; the last model says "positive" with log-odds of 0.5 whatever it reads.
"""
SMALL: dict[str, Any] = {"attacks": "deepwordbug", "sizes": (2, 3), "population": 10, "generations": 5}


def victims() -> dict[str, object]:
    return {name: WeightVictim(dict.fromkeys(words, 3.0), bias=-1.0 if words else 0.5) for name, words in READS.items()}


def toy_matrix() -> TransferMatrix:
    """The best pair is CNN and the characters (0.725); greedy begins with LSTM (0.45) and gets to 0.6."""
    rates = [
        [0.5, 0.9, 0.1, 0.0],
        [0.4, 0.4, 0.6, 0.4],
        [0.1, 0.1, 0.7, 0.2],
        [0.0, 0.0, 0.6, 0.9],
    ]
    return TransferMatrix(NAMES, NAMES, np.array(rates))


def save_matrix(folder: Path, matrix: TransferMatrix | None = None) -> Path:
    path = folder / "matrix.csv"
    (matrix or toy_matrix()).write(path)
    return path


def study(models: object, rows: object, **options: Any) -> EnsembleResult:
    result = st.study("ensemble", models, rows, **options)
    assert isinstance(result, EnsembleResult)
    return result
