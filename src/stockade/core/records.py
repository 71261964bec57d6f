"""What a search returns and what a run stores of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from stockade.core.pairs import Side
from stockade.core.text import Edit, Text, TextInput

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
    """For randomised models: the share of draws that the adversarial text fools or, where there is none, the text that
    was found and fooled most of them.
    """
    flip_share: float | None = None
    """For the attack `random`: the share of its draws that fool the model."""
    tried: int | None = None
    """How many candidates the search scored; with none, a failure says nothing about the model. None in old folders."""
    failed_queries: int = 0
    """How many queries the model failed on; the search went on without those texts."""
    truncated_words: int = 0
    """Words that the model read in the original and that longer or inserted words have pushed out of its window."""
    adversarial_premise: str | None = None
    """The premise of the adversarial text, if it was edited; None if it is as it was."""
    hits: int | None = None
    draws: int | None = None
    """For randomised models: `hit_rate` is hits / draws; a sequential test decides how many draws there are."""
    dismissed: int | None = None
    """For randomised models: how many texts fooled the model once, but not half of the time; the search went on."""
    first_flip: bool | None = None
    """For randomised models: whether one wrong answer is enough for a success, as in the papers. None for others."""
    first_flip_text: str | None = None
    first_flip_premise: str | None = None
    """What fooled the model first; its premise, if that was edited."""
    first_flip_query: int | None = None
    """The number of the query that the text fooled; None where the search had queried another model."""
    first_flip_queries: int | None = None
    """How many queries the search had used by then; all, if there was no flip."""
    last_attempt: str | None = None
    """The text that a failed search ended with; None if it had changed nothing, or there was none."""
    last_attempt_premise: str | None = None
    """The premise that it ended with, if it was edited."""
    decision_based: bool = False
    """Whether the search followed labels alone, because the model has no scores."""

    @property
    def original_input(self) -> TextInput:
        """What the model was asked about before the attack."""
        return self.original if self.premise is None else (self.premise, self.original)

    @property
    def adversarial_input(self) -> TextInput | None:
        """The adversarial text, or the adversarial pair; None if there is none."""
        return self._input(self.adversarial, self.adversarial_premise)

    @property
    def first_flip_input(self) -> TextInput | None:
        """The text or pair that fooled a randomised model first; None if there is none."""
        return self._input(self.first_flip_text, self.first_flip_premise)

    def _input(self, text: str | None, premise: str | None) -> TextInput | None:
        if text is None or self.premise is None:
            return text
        return self.premise if premise is None else premise, text

    def edits_of(self, side: Side) -> tuple[Edit, ...]:
        """The edits in one side of a pair; those of a single text, and of records without sides, are the
        hypothesis's.
        """
        return tuple(edit for edit in self.edits if (edit.side or "hypothesis") == side)

    @property
    def changed_texts(self) -> tuple[tuple[str, str], ...]:
        """Before and after: the text, or each side of a pair that was edited; none where nothing was."""
        if self.adversarial is None:
            return ()
        hypothesis = (self.original, self.adversarial)
        if self.premise is None or self.adversarial_premise is None:
            return (hypothesis,)
        premise = (self.premise, self.adversarial_premise)
        return (premise, hypothesis) if self.original != self.adversarial else (premise,)

    @property
    def untried(self) -> bool:
        """Whether the text was not fooled because the attack found nothing to try on it."""
        return self.status == "failed" and self.tried == 0
