"""Thresholds of published filters for another sentence encoder than the one they were made for.

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

from collections.abc import Mapping
from dataclasses import dataclass

from stockade.attacks.similarity import Scale, from_cosine, to_cosine
from stockade.core.errors import unknown_name

_SAME = 1e-3
"""Cosines this near are one filter: 0.936 and 0.936338, angular 0.8408 and tf 0.5."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """A published filter, and what it becomes with another encoder."""

    attack: str
    scale: Scale
    threshold: float
    window: int
    encoder: str
    cosines: Mapping[str, float]
    """Share of the published edits -> the largest cosine that accepts it."""
    published_share: float
    """What the published number itself accepts of the published edits, with this encoder."""
    random_share: float
    """The same of random words of the same part of speech in their places."""
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
    """What a published threshold becomes for this encoder, on the same scale; None where nothing was measured.

    The filter may be written on any scale: tf 0.5 and angular 0.840845 are the same one. None also for whole texts
    (`window=None`): the logs tell nothing about filters on whole texts.
    """
    cosine = to_cosine(threshold, scale)
    for one in CALIBRATIONS:
        same = abs(to_cosine(one.threshold, one.scale) - cosine) < _SAME
        if same and (one.encoder, one.window) == (encoder, window):
            if share not in one.cosines:
                raise unknown_name("share of published edits", share, one.cosines)
            return from_cosine(one.cosines[share], scale)
    return None
