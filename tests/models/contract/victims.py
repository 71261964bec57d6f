"""Functions that a `python:` reference can name."""

from __future__ import annotations

import math
from collections.abc import Sequence


def _odds(text: str | tuple[str, str]) -> float:
    string = text if isinstance(text, str) else text[1]
    words = string.lower().split()
    return 2.0 * words.count("great") - 2.0 * words.count("bad") - 0.1


def predict(texts: Sequence[str | tuple[str, str]]) -> list[float]:
    return [1 / (1 + math.exp(-_odds(text))) for text in texts]


def predict_otherwise(texts: Sequence[str | tuple[str, str]]) -> list[float]:
    return [1 / (1 + math.exp(-2 * _odds(text))) for text in texts]


def name(texts: Sequence[str | tuple[str, str]]) -> list[str]:
    return ["positive" if _odds(text) > 0 else "negative" for text in texts]


def name_otherwise(texts: Sequence[str | tuple[str, str]]) -> list[str]:
    return ["positive" if _odds(text) > 1 else "negative" for text in texts]
