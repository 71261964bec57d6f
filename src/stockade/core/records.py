"""What a search returns and what a run keeps of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from stockade.core.text import Edit, Text

Status = Literal["success", "failed", "skipped", "error"]
FORMER_NAMES = {"pushed_out": "truncated_words"}
"""What fields of a `Record` were called in the folders of older versions, and what they are called now."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a search found: a text it believes to be adversarial, or the reason why there is none.

    A found text is a claim. It becomes a success when the model, given that text alone, is fooled again.
    """

    text: Text | None
    reason: str | None = None
    flip_share: float | None = None
    """For attacks that only draw at random: the share of their draws that fool the model."""

    @classmethod
    def found(cls, text: Text, *, flip_share: float | None = None) -> Outcome:
        return cls(text, flip_share=flip_share)

    @classmethod
    def failed(cls, reason: str, closest: Text | None = None, *, flip_share: float | None = None) -> Outcome:
        """No adversarial text; `closest` is the best one seen, kept for the curious."""
        return cls(closest, reason, flip_share)

    @property
    def is_found(self) -> bool:
        return self.reason is None


@dataclass(frozen=True, slots=True)
class Record:
    """One example under one attack, as stored and exported (docs/runs.md describes every field)."""

    id: str
    attack: str
    status: Status
    reason: str | None
    label: str
    original: str
    adversarial: str | None
    original_prediction: str | None
    adversarial_prediction: str | None
    original_scores: tuple[float, ...] | None
    adversarial_scores: tuple[float, ...] | None
    queries: int
    rows: int
    edits: tuple[Edit, ...] = ()
    perturbed_percent: float | None = None
    similarity: float | None = None
    premise: str | None = None
    hit_rate: float | None = None
    """For randomised models: the share of fresh draws that the adversarial text fools."""
    flip_share: float | None = None
    """For the attack `random`: the share of its draws that fool the model."""
    truncated_words: int = 0
    """Words that the model read in the original and that longer or inserted words have pushed out of its window."""
