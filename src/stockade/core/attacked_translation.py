"""A source sentence under attack: what the attacker wants of its translation, and what a run stores of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Literal, Protocol, runtime_checkable

from stockade.core.records import Outcome, Status
from stockade.core.text import Edit, Text

Task = Literal["classification", "translation"]
"""What a model does that an attack is made for."""


class Goal(Protocol):
    """What the attacker wants of a translation."""

    @property
    def keyword(self) -> str | None:
        """The word that is wanted, if it is a word."""

    @property
    def unchanged(self) -> str:
        """Why a sentence is skipped whose unchanged source reaches the goal already."""

    def reached(self, translation: str) -> bool:
        """Whether a translation is what the attacker wants."""

    def distance(self, translation: str) -> float:
        """How far a translation is from it; smaller is nearer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TranslationExample:
    """A source sentence to attack.

    Parameters
    ----------
    id
        The name of the pair in its data.
    text
        The source.
    reference
        Its translation by a human.
    translation
        Its translation by the model.
    keywords
        Words of the references of all sentences, from which a keyword may be drawn.
    language
        The language of the source, if the data say.
    goal
        What the attacker wants.
    visible
        The words that the model reads, if it cuts the source: changing another has no effect.
    """

    id: str
    text: Text
    reference: str
    translation: str = ""
    keywords: tuple[str, ...] = ()
    language: str | None = None
    goal: Goal | None = None
    visible: Sequence[int] | None = None

    @property
    def indices(self) -> Sequence[int]:
        """The words worth changing."""
        return self.text.indices if self.visible is None else self.visible


@runtime_checkable
class TranslationAttack(Protocol):
    """An attack on translators: a frozen dataclass of options, whose class has `task = "translation"`."""

    def goal_for(self, example: TranslationExample, rng: Random) -> Goal | None:
        """What is wanted of the translation of this sentence; None if there is nothing to want."""

    async def search(self, example: TranslationExample, rng: Random) -> Outcome:
        """Await requests such as `Translate` and return an `Outcome`: a source whose translation reaches the goal of
        the example; or a failure, with the source to end with, if it is not the original.
        """


@dataclass(frozen=True, slots=True)
class TranslationRecord:
    """A sentence under an attack, as stored and exported (docs/runs.md describes every field)."""

    id: str
    attack: str
    status: Status
    reason: str | None
    original: str
    adversarial: str | None
    reference: str
    original_translation: str | None
    adversarial_translation: str | None
    keyword: str | None
    queries: int
    rows: int
    edits: tuple[Edit, ...] = ()
    perturbed_percent: float | None = None
    similarity: float | None = None
    hit_rate: float | None = None
    """For randomised translators: the share of fresh translations that reach the goal."""
    truncated_words: int = 0
    """Words that the model read in the original and that longer words have pushed out of what it reads."""

    @property
    def changed_texts(self) -> tuple[tuple[str, str], ...]:
        """The source before and after; none where it was not changed."""
        return () if self.adversarial is None else ((self.original, self.adversarial),)

    @property
    def final_translation(self) -> str | None:
        """The translation that the attack ends with: that of the original where nothing was changed."""
        return self.original_translation if self.adversarial_translation is None else self.adversarial_translation
