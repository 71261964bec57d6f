"""Names, options and presets of the defenses; a new defense is one new file in this folder.

A defense is a frozen dataclass of options. It acts when the model is asked (`answer`, see `defended.py`), when it is
trained (`objective` or `rewrite`, see `stockade.training.kit`), or both. One that alters what the model reads says
`innermost`: no other defense may stand between it and the model. One whose options may leave out what it does when the
model is asked says so by `asked`. One that asks about `copies` of a text, each drawn at random by the same law and
without regard to the others, says `independent_copies`: their votes may be tested (`abstaining.py`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from stockade.attacks.options import chosen_options
from stockade.core.catalogue import Catalogue, Published
from stockade.core.errors import OptionError
from stockade.core.protocols import Classifier
from stockade.defenses.defended import AnsweringDefense, Defended
from stockade.models.language import LanguageModels


@dataclass(frozen=True, slots=True)
class DefenseEntry(Published):
    """One defense of the list, or one that was made of it; then `asked` is what its options say."""

    asked: bool = True

    @property
    def answers(self) -> bool:
        """Whether it acts when the model is asked."""
        return self.asked and hasattr(self.make, "answer")

    @property
    def trains(self) -> bool:
        """Whether it acts when the model is trained."""
        return hasattr(self.make, "objective") or hasattr(self.make, "rewrite")

    @property
    def alters_training_texts(self) -> bool:
        """Whether a model trained with it is trained, and judged, on the texts that it will be asked about."""
        return self.answers and self.trains and getattr(self.make, "alters_texts", True)

    @property
    def innermost(self) -> bool:
        """Whether no other defense may stand between it and the model."""
        return self.answers and getattr(self.make, "innermost", False)


@dataclass(frozen=True, slots=True)
class NamedDefense:
    """A defense ready to be used, with the name and preset it was asked for by."""

    name: str
    preset: str
    defense: Any
    entry: DefenseEntry

    @property
    def options(self) -> dict[str, Any]:
        """Every option, given or defaulted, as the manifest records it."""
        return {field.name: getattr(self.defense, field.name) for field in dataclasses.fields(self.defense)}

    def described(self) -> dict[str, Any]:
        return {"name": self.name, "preset": self.preset, "options": self.options}


_CATALOGUE = Catalogue("defense", "stockade.defenses", DefenseEntry)
register = _CATALOGUE.register
defenses = _CATALOGUE.all


def make_defense(reference: str, preset: str | None = None, **options: Any) -> NamedDefense:
    """A defense from `NAME[@PRESET][:option=value,…]`; options given by keyword win over those in the reference."""
    found = _CATALOGUE.find(reference, preset)
    made = found.entry.make(**chosen_options("--defense", found, options))
    entry = dataclasses.replace(found.entry, asked=getattr(made, "asked", True))
    return NamedDefense(entry.name, found.preset, made, entry)


def check_order(named: Sequence[NamedDefense]) -> None:
    """Defenses are named from the outside in: those that only train come last, nearest to the model."""
    for outer, inner in combinations(named, 2):
        right = (
            f"name defenses from the outside in, as in --defense {inner.name} --defense {outer.name} "
            f"(one column of evaluate: {inner.name}+{outer.name})."
        )
        if not outer.entry.answers and inner.entry.answers:
            raise OptionError(
                f"{outer.name} changes how the model is trained, so it cannot stand around {inner.name}: {right}"
            )
        if outer.entry.innermost and inner.entry.answers:
            alone = f"{outer.name} and {inner.name} cannot be combined: both alter what the model reads."
            raise OptionError(
                alone
                if inner.entry.innermost
                else f"{outer.name} alters what the model reads, so {inner.name} cannot stand between them: {right}"
            )


def wrap(
    classifier: Classifier,
    named: Sequence[NamedDefense],
    *,
    seed: int = 0,
    language: LanguageModels | None = None,
) -> Classifier:
    """The classifier inside those of the defenses that act when it is asked; the first is the outermost."""
    check_order(named)
    for one in reversed(named):
        if one.entry.answers and isinstance(one.defense, AnsweringDefense):
            classifier = Defended(one.name, one.defense, classifier, seed, language or LanguageModels())
    return classifier
