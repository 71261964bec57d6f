"""What decides the results of an attack on a translator."""

from __future__ import annotations

from typing import ClassVar

from pydantic import field_validator

from stockade.attacks.registry import NamedAttack
from stockade.core.errors import OptionError
from stockade.experiment.spec import Count, ModelSpec, Reference, TranslationAttacks


class TranslationSpec(ModelSpec):
    """A translator, parallel sentences, attacks, and every option that decides what they find.

    Parameters
    ----------
    model
        A reference or the translator itself.
    attacks
        The attacks, each with every option.
    budget
        The most queries per sentence.
    similarity
        Whether the similarity of each changed source to its original is measured.
    neighbours
        A table of word neighbours, or vectors, of the user's own: its words are what black boxes are attacked with.
    """

    kind: ClassVar[str] = "translation"

    model: Reference
    attacks: TranslationAttacks
    budget: Count | None = None
    similarity: bool = True
    neighbours: str | None = None

    @field_validator("attacks")
    @classmethod
    def _some_attack(cls, attacks: tuple[NamedAttack, ...]) -> tuple[NamedAttack, ...]:
        if not attacks:
            raise OptionError("No attack was named. List them with: stockade ls attacks")
        return attacks

    @property
    def similarity_scale(self) -> str | None:
        """How a similarity is to be read; None if none is measured."""
        return f"cosine, {self.language.encoder_name}" if self.similarity else None
