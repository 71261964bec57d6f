"""How copies of a text are made at random, and so which share of them d changes can alter at most."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from stockade.certificates.bounds import deletion_losses, masking_losses, synonym_losses
from stockade.core.masks import antithetic_group_size
from stockade.core.partitions import deletion_group_size

Losses = tuple[Fraction, ...] | tuple[float, ...]
"""For d = 0, 1, …: the largest share of the copies of a text that d changes can alter."""

INSERTIONS = 1000
"""More inserted words than these are not counted."""


class SmoothingDistribution(Protocol):
    """How copies of a text are made at random, as far as a certificate needs to know."""

    def losses(self) -> Losses: ...


@dataclass(frozen=True, slots=True)
class MaskingDistribution:
    """`kept` of the words stay, every choice of them as likely as any other; the others are hidden in their places."""

    words: int
    kept: int

    def losses(self) -> Losses:
        return masking_losses(self.words, self.kept)

    @property
    def copies_per_round(self) -> int:
        """How many copies a deal makes."""
        return antithetic_group_size(self.words, self.kept)


@dataclass(frozen=True, slots=True)
class DeletionDistribution:
    """Each word stays with this chance, whatever becomes of the others; the others are taken out."""

    words: int
    kept_chance: float

    def losses(self) -> Losses:
        return deletion_losses(self.kept_chance, self.words)

    @property
    def copies_per_round(self) -> int:
        """How many copies a deal makes."""
        return deletion_group_size(self.kept_chance)


@dataclass(frozen=True, slots=True)
class SynonymDistribution:
    """Each word that has synonyms is drawn from its set; `overlaps` are what such sets have in common, at worst."""

    overlaps: tuple[float, ...]

    def losses(self) -> Losses:
        return synonym_losses(self.overlaps)


AntitheticDistribution = MaskingDistribution | DeletionDistribution
"""Those whose copies show a part of the words, so that the words can be dealt to several at once."""
