"""Sentence similarity as numbers: three scales that are constantly confused, the window rule, calibrated thresholds.

With c the cosine of two sentence vectors:

    cosine   c
    angular  1 - arccos(c) / pi       the Universal Sentence Encoder's own definition, 0 to 1
    tf       1 - arccos(c)            what the code of TextFooler and those who copied it computes, 1 - pi to 1

The same "0.8" is three different filters. Every recipe here states its scale.

Papers state thresholds for the Universal Sentence Encoder (USE); with another encoder the same number is another
filter. A calibrated threshold accepts a stated share of edits that published attacks made, and that USE therefore
accepted, when both encoders look at the same window of 15 words. tools/calibrate_similarity.py measures it on public
logs of TextAttack attacks on BERT (github.com/bangawayoo/adversarial-examples-in-text-classification, attack_results);
docs/similarity.md has the whole table.

What it is not: USE's scores and the edits USE refused are in no log. So it says how strict a filter may be before it
loses edits like the published ones, not what else it lets pass: `random_share` is high. Each entry is for the edits
that one attack proposes, and there is nothing between entries to interpolate.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from stockade.core.errors import unknown_name

Scale = Literal["cosine", "angular", "tf"]
_SAME = 1e-3
"""Cosines this near are one filter: 0.936 and 0.936338, angular 0.8408 and tf 0.5."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """A published filter, and what it becomes with another encoder.

    Parameters
    ----------
    attack : str
        Whose edits were measured.
    scale, threshold, window
        The published filter.
    encoder : str
        The other encoder.
    cosines : Mapping
        For a share of the published edits, the largest cosine that accepts it.
    published_share : float
        What the published number accepts of the published edits, with this encoder.
    random_share : float
        The same of random words of the same part of speech in their places.
    edits, texts : int
        How many were measured.
    """

    attack: str
    scale: Scale
    threshold: float
    window: int
    encoder: str
    cosines: Mapping[str, float]
    published_share: float
    random_share: float
    edits: int
    texts: int


CALIBRATIONS = (
    Calibration(
        attack="textfooler",
        scale="angular",
        threshold=0.840845057,
        window=15,
        encoder="all-MiniLM-L6-v2",
        cosines={"99%": 0.7181, "95%": 0.8161, "90%": 0.8485},
        published_share=0.837,
        random_share=0.738,
        edits=1083,
        texts=572,
    ),
    Calibration(
        attack="bae",
        scale="cosine",
        threshold=0.936338,
        window=15,
        encoder="all-MiniLM-L6-v2",
        cosines={"99%": 0.7146, "95%": 0.7882, "90%": 0.8406},
        published_share=0.592,
        random_share=0.589,
        edits=1327,
        texts=298,
    ),
)


def calibrated(
    encoder: str, scale: Scale, threshold: float, *, window: int | None = 15, share: str = "95%"
) -> float | None:
    """What a published threshold becomes for another encoder, on the same scale; None where nothing was measured.

    Parameters
    ----------
    encoder : str
        The sentence encoder.
    scale, threshold
        The published filter, on any scale: tf 0.5 and angular 0.840845 are the same.
    window : int, optional
        The words that are compared. None, the whole text, was not measured: the logs say nothing about it.
    share : str
        The share of published edits that the threshold must accept.
    """
    cosine = to_cosine(threshold, scale)
    for entry in CALIBRATIONS:
        same = abs(to_cosine(entry.threshold, entry.scale) - cosine) < _SAME
        if same and (entry.encoder, entry.window) == (encoder, window):
            if share not in entry.cosines:
                raise unknown_name("share of published edits", share, entry.cosines)
            return from_cosine(entry.cosines[share], scale)
    return None
