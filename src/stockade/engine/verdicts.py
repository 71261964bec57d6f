"""What a model's answer is worth: scores, or the reason why a text has none."""

from __future__ import annotations

import numpy as np

from stockade.core.errors import ModelError, ScoringFailed, SearchStopped
from stockade.core.example import Scores
from stockade.core.protocols import Probabilities

Verdict = Scores | ScoringFailed


def to_verdicts(answer: Probabilities, rows: int, classes: int) -> list[Verdict]:
    values = np.asarray(answer, dtype=np.float64)
    if values.shape != (rows, classes):
        raise ModelError(f"the model answered with shape {values.shape} for {rows} texts and {classes} classes")
    finite: list[bool] = np.logical_and.reduce(np.isfinite(values), axis=1).tolist()
    return [
        Scores(tuple(row)) if good else ScoringFailed("the model answered with NaN or infinite probabilities")
        for row, good in zip(values.tolist(), finite, strict=True)
    ]


def collected(verdicts: list[Verdict]) -> list[Scores] | SearchStopped:
    scores = []
    for verdict in verdicts:
        if isinstance(verdict, ScoringFailed):
            return verdict
        scores.append(verdict)
    return scores


def reason_of(error: Exception) -> str:
    if isinstance(error, ModelError):
        return str(error)
    return f"the model raised {type(error).__name__}: {error}".rstrip(": ")[:500]
