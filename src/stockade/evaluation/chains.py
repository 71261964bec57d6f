"""The defenses of a grid: each column is a chain, written from the outside in, such as `five+fact`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from stockade.core.errors import OptionError
from stockade.core.protocols import Classifier
from stockade.defenses.chain import check_order, load_defenses, wrap
from stockade.defenses.registry import defenses, make_defense
from stockade.jobs import ModelOptions
from stockade.models.language import LanguageModels

NONE, OWN = "none", "own"
"""The bare model, and what the folder of a model says stands around it."""


@dataclass(frozen=True, slots=True)
class Chain:
    """One column: its name as it was written, and the defenses in it as `ModelOptions` takes them."""

    name: str
    references: tuple[str, ...]

    def around(
        self, bare: Classifier, model: object, options: ModelOptions, seed: int, language: LanguageModels
    ) -> Classifier:
        """The model inside the chain; what it lacks for that is an error of one sentence."""
        named = options.named_defenses(model)
        if self.name == OWN and not named:
            raise OptionError("the folder of the model names no defense (there is no defense.json)")
        return wrap(bare, named, seed=seed, language=language)


def parse_chains(given: Iterable[str], models: Sequence[object] = ()) -> tuple[Chain, ...]:
    """The columns of the grid, the bare model first; without any, what the folders of the models say as well, if
    that acts when the model is asked.
    """
    names = list(dict.fromkeys(given))
    folders = [Path(model) for model in models if isinstance(model, str | Path)]
    if not names and any(one.entry.answers for folder in folders for one in load_defenses(folder)):
        names = [OWN]
    return tuple(_parse(name) for name in dict.fromkeys([NONE, *names]))


def _parse(name: str) -> Chain:
    if name == NONE:
        return Chain(NONE, (NONE,))
    if name == OWN:
        return Chain(OWN, ())
    references = tuple(_split(name))
    if NONE in references or OWN in references or "" in references:
        raise OptionError(
            f'The chain "{name}" is not made of defenses, expected names with + between them, from the outside in, as '
            "in five+fact; none and own stand alone."
        )
    check_order([make_defense(reference) for reference in references])
    return Chain(name, references)


def _split(name: str) -> list[str]:
    """At each + in front of a defense; one inside the options of a defense separates values there."""
    known = "|".join(map(re.escape, sorted(defenses(), key=len, reverse=True)))
    begins = re.compile(rf"(?:{known})(?:[@:+]|$)")
    first, *others = name.split("+")
    parts = [first]
    for piece in others:
        if ":" in parts[-1] and not begins.match(piece):
            parts[-1] += f"+{piece}"
        else:
            parts.append(piece)
    return parts
