"""What decides the results of an attack."""

from __future__ import annotations

from typing import Annotated, ClassVar, Self

from pydantic import Field, field_validator, model_validator

from stockade.attacks.registry import NamedAttack
from stockade.core.errors import OptionError
from stockade.core.pairs import Sides
from stockade.experiment.spec import Attacks, Count, Defenses, ModelSpec, Reference


class AttackSpec(ModelSpec):
    """A model, data, attacks, and every option that decides what they find.

    Parameters
    ----------
    model
        A reference or the model itself.
    attacks
        The attacks, each with every option.
    defenses
        What stands around the model, from the outside in; None: what its folder records; (): nothing.
    budget
        The most queries per text.
    targeted
        Succeed only when the model predicts this class.
    sides
        Which sides of a pair are edited: the hypothesis, the premise or both. Single texts have one side.
    unlabelled
        The data have no labels: the model's own predictions are attacked.
    similarity
        Whether the similarity of each success to its original is measured.
    neighbours
        A table of word neighbours, or vectors, of the user's own.
    view
        What the searches query if it is not the model itself: a cell of an evaluation (see `evaluate`).
    eot_samples
        How many answers a view averages.
    """

    kind: ClassVar[str] = "attack"

    model: Reference
    attacks: Attacks
    defenses: Defenses = None
    budget: Count | None = None
    targeted: str | None = None
    sides: Sides = "hypothesis"
    unlabelled: bool = False
    similarity: bool = True
    neighbours: str | None = None
    view: str | None = None
    eot_samples: Annotated[int, Field(ge=1)] | None = None

    @field_validator("attacks")
    @classmethod
    def _some_attack(cls, attacks: tuple[NamedAttack, ...]) -> tuple[NamedAttack, ...]:
        if not attacks:
            raise OptionError("No attack was named. List them with: stockade ls attacks")
        return attacks

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.unlabelled and (self.data_options.label_column or self.data_options.label_map):
            raise OptionError("The data are said to have no labels: leave out --label-column and --label-map.")
        if self.unlabelled and self.targeted is not None:
            raise OptionError(
                "--targeted needs to know which texts have that class already, and the data are said to have no "
                "labels: leave out one of the two."
            )
        return self

    @property
    def similarity_scale(self) -> str | None:
        """How a similarity is to be read; None if none is measured."""
        return f"cosine, {self.language.encoder_name}" if self.similarity else None
