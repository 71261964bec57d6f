"""Sentence similarity: three scales that are constantly confused, the window rule, and a filter made of them.

With c the cosine of two sentence vectors:

    cosine   c
    angular  1 - arccos(c) / pi       the Universal Sentence Encoder's own definition, 0 to 1
    tf       1 - arccos(c)            what the code of TextFooler and those who copied it computes, 1 - pi to 1

The same "0.8" is three different filters. Every recipe here states its scale.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from stockade.attacks.constraints import Constraint
from stockade.core.text import Text
from stockade.engine.requests import Embed

Scale = Literal["cosine", "angular", "tf"]
Reference = Literal["original", "previous"]


def from_cosine(cosine: float, scale: Scale) -> float:
    """A cosine on another scale. Rounding can bring a cosine of equal texts past 1: it is clamped, never NaN."""
    clamped = max(-1.0, min(1.0, cosine))
    if scale == "cosine":
        return clamped
    return 1 - math.acos(clamped) / (math.pi if scale == "angular" else 1.0)


def to_cosine(value: float, scale: Scale) -> float:
    """The cosine that a value on a scale means."""
    if scale == "cosine":
        return value
    return math.cos((1 - value) * (math.pi if scale == "angular" else 1.0))


def window_bounds(length: int, index: int, width: int) -> tuple[int, int]:
    """The words that TextFooler compares around an edited one: `width` of them, shifted inside the text at its ends."""
    half = (width - 1) // 2
    if length <= width:
        return 0, length
    start = min(max(index - half, 0), length - width)
    return start, start + width


@dataclass(frozen=True, slots=True)
class Similarity(Constraint):
    """How alike an edited text must stay: at least `threshold` on a scale, on the whole text or in a window around
    the edit.

    `reference` is the text it is compared with: the original, or the text just before this edit (then drift adds up).
    `short` is the threshold on the same scale for texts shorter than the window; None does not look at them at all.
    """

    name: ClassVar[str] = "similarity"
    costly: ClassVar[bool] = True
    scale: Scale
    threshold: float
    window: int | None = None
    reference: Reference = "original"
    short: float | None = None

    def limit(self, words: int) -> float | None:
        """The least cosine for a text of that many words; None where nothing is asked."""
        if self.window is not None and words < self.window:
            return None if self.short is None else to_cosine(self.short, self.scale)
        return to_cosine(self.threshold, self.scale)

    async def keep(self, candidates: Sequence[Text], before: Text, index: int) -> list[Text]:
        """The candidates that are similar enough; `index` is the edited word in `before` (the anchor of an
        insertion).
        """
        limit = self.limit(len(self._base(before)))
        cosines = await self.cosines(candidates, before, index)
        if limit is None or cosines is None:
            return list(candidates)
        return [text for text, cosine in zip(candidates, cosines, strict=True) if cosine >= limit - 1e-6]

    def _base(self, before: Text) -> Text:
        return before.original if self.reference == "original" else before

    async def cosines(self, candidates: Sequence[Text], before: Text, index: int) -> list[float] | None:
        """The cosine of each candidate with what it is compared with; None where nothing is compared."""
        base = self._base(before)
        if self.limit(len(base)) is None or not candidates:
            return None
        anchor = before.origins[index] if self.reference == "original" else index
        strings = [self._part(base, anchor if anchor is not None else index, 0)]
        strings += [self._part(text, index, len(text) - len(before)) for text in candidates]
        vectors = await Embed(strings)
        found: list[float] = np.clip(vectors[1:] @ vectors[0], -1.0, 1.0).tolist()
        return found

    def _part(self, text: Text, index: int, longer: int) -> str:
        if self.window is None:
            return str(text)
        start, end = window_bounds(len(text) - longer, min(index, len(text) - 1), self.window)
        return str(text.part(start, end + longer))
