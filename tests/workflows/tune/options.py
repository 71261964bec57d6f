"""The options of a toy defense, one of each type."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Options:
    rate: float = 0.3
    copies: int = 100
    how: Literal["a", "b"] = "a"
    loud: bool = False
    mask: str = "[MASK]"
    curriculum: float | None = None
    large: float = 3.0
    seed: int = 5
    draws: Literal["fresh", "fixed"] = "fresh"
    stop_words: Literal["none", "nltk"] = "none"
