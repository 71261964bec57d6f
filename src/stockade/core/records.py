"""What a search returns and what a run stores of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from stockade.core.text import Edit, Text

Status = Literal["success", "failed", "skipped", "error"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a search returns: a text it believes to be adversarial, or the reason why there is none.

    Such a text is a claim. It becomes a success when it fools the model again, sent to it alone.
    """

    text: Text | None
    reason: str | None = None
    flip_share: float | None = None
    """For attacks that only draw at random: the share of their draws that fool the model."""

    @classmethod
    def found(cls, text: Text, *, flip_share: float | None = None) -> Outcome:
        """An adversarial text."""
        return cls(text, flip_share=flip_share)

    @classmethod
    def failed(cls, reason: str, closest: Text | None = None, *, flip_share: float | None = None) -> Outcome:
        """No adversarial text; `closest` is the best candidate, for the curious."""
        return cls(closest, reason, flip_share)

    @property
    def is_found(self) -> bool:
        """Whether there is an adversarial text."""
        return self.reason is None


@dataclass(frozen=True, slots=True)
class Record:
    """An example under an attack, as stored and exported (docs/runs.md describes every field)."""

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
    tried: int | None = None
    """How many candidates the search scored; with none, a failure says nothing about the model. None in old folders."""
    failed_queries: int = 0
    """How many queries the model failed on; the search went on without those texts."""
    truncated_words: int = 0
    """Words that the model read in the original and that longer or inserted words have pushed out of its window."""
    decision_based: bool = False
    """Whether the search followed labels alone, because the model has no scores."""

    @property
    def untried(self) -> bool:
        """Whether the text was not fooled because the attack found nothing to try on it."""
        return self.status == "failed" and self.tried == 0
