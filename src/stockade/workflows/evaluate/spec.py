"""What decides the results of an evaluation: models, chains of defenses, attacks, texts and seeds."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from pydantic import BeforeValidator, Field, PlainSerializer, ValidationInfo, model_validator

from stockade.core.errors import OptionError
from stockade.core.options import option_defaults
from stockade.defenses.chain import check_order, load_defenses
from stockade.defenses.registry import NamedDefense, defenses, make_defense
from stockade.experiment.inputs import models_by_name, reference_of, unique_names
from stockade.experiment.spec import Count, ModelSpec, OptionalAttacks

NONE, FROM_FOLDER = "none", "own"
"""The bare model, and what the folder of a model records around it."""


@dataclass(frozen=True, slots=True)
class DefenseChain:
    """Defenses around a model, from the outside in: a column of the grid.

    Parameters
    ----------
    name
        What the evaluation calls it, such as `five+fact`.
    defenses
        The defenses; none for the bare model, None for those that a model's folder records.
    """

    name: str
    defenses: tuple[NamedDefense, ...] | None

    def described(self) -> dict[str, Any]:
        """As the manifest records it."""
        recorded = None if self.defenses is None else [defense.described() for defense in self.defenses]
        return {"key": self.name, "defenses": recorded}

    @classmethod
    def read(cls, described: Mapping[str, Any], *, trust: bool) -> DefenseChain:
        """The chain that a manifest records; `trust` allows to import the modules of unregistered classes."""
        recorded = described["defenses"]
        if recorded is None:
            return cls(described["key"], None)
        made = (NamedDefense.from_description(defense, trust=trust) for defense in recorded)
        return cls(described["key"], tuple(made))


def make_chains(references: object, models: Iterable[object] = ()) -> tuple[DefenseChain, ...]:
    """The columns of a grid, the bare model first.

    Parameters
    ----------
    references
        A defense by name or as an object, a chain such as `"five+fact"`, or a list in which each entry is a column; a
        list inside it is a chain. A mapping names its columns. None, or nothing: what the folders of the models
        record, if that acts when the model is asked.
    models
        The models, for their folders.
    """
    folders = [Path(model) for model in models if isinstance(model, str | Path)]
    if isinstance(references, Mapping):
        named = [DefenseChain(str(name), _chain(chain).defenses) for name, chain in references.items()]
    elif isinstance(references, list | tuple):
        named = [_chain(chain) for chain in references]
    else:
        named = [] if references is None else [_chain(references)]
    if not named and any(map(records_defense, folders)):
        named = [DefenseChain(FROM_FOLDER, None)]
    bare = DefenseChain(NONE, ())
    chains = [bare]
    chains += [chain for at, chain in enumerate(named) if chain != bare and chain not in named[:at]]
    names = unique_names(chain.name for chain in chains)
    return tuple(DefenseChain(name, chain.defenses) for name, chain in zip(names, chains, strict=True))


def records_defense(model: object) -> bool:
    """Whether a model is a folder that records a defense which acts when the model is asked.

    Parameters
    ----------
    model
        A reference or an object.
    """
    is_folder = isinstance(model, str | Path)
    return is_folder and any(defense.entry.answers for defense in load_defenses(Path(str(model))))


def _chain(references: object) -> DefenseChain:
    if isinstance(references, str):
        return _from_name(references)
    several = list(references) if isinstance(references, list | tuple) else [references]
    if len(several) == 1 and isinstance(several[0], str):
        return _from_name(several[0])
    made = tuple(make_defense(reference) for reference in several)
    check_order(made)
    name = "+".join(
        reference if isinstance(reference, str) else _written(defense)
        for reference, defense in zip(several, made, strict=True)
    )
    return DefenseChain(name, made)


def _from_name(name: str) -> DefenseChain:
    if name == NONE:
        return DefenseChain(NONE, ())
    if name == FROM_FOLDER:
        return DefenseChain(FROM_FOLDER, None)
    references = _split(name)
    if NONE in references or FROM_FOLDER in references or "" in references:
        raise OptionError(
            f'The chain "{name}" is not made of defenses, expected names with + between them, from the outside in, as '
            "in five+fact; none and own stand alone."
        )
    made = tuple(make_defense(reference) for reference in references)
    check_order(made)
    return DefenseChain(name, made)


def _split(name: str) -> list[str]:
    """At each + in front of a defense; one inside the options of a defense separates values there."""
    names = "|".join(map(re.escape, sorted(defenses(), key=len, reverse=True)))
    begins = re.compile(rf"(?:{names})(?:[@:+]|$)")
    first, *others = name.split("+")
    parts = [first]
    for piece in others:
        if ":" in parts[-1] and not begins.match(piece):
            parts[-1] += f"+{piece}"
        else:
            parts.append(piece)
    return parts


def _written(defense: NamedDefense) -> str:
    """A defense that was given as an object, with the options that are not the default."""
    defaults = option_defaults(type(defense.defense))
    options = [f"{name}={value}" for name, value in defense.options.items() if value != defaults.get(name)]
    return f"{defense.key}:{','.join(options)}" if options else defense.key


def _models(value: object) -> dict[str, object]:
    if value is None or (isinstance(value, list | dict) and not value):
        raise OptionError("No model was named, as in: stockade evaluate MODEL DATA --attack pwws")
    return models_by_name(value)


def _premade(value: object) -> dict[str, object]:
    if isinstance(value, Mapping):
        return {str(name): references for name, references in value.items()}
    several = [] if value is None else list(value) if isinstance(value, list | tuple) else [value]
    stems = (Path(str(item)).name.partition(".")[0] if isinstance(item, str | Path) else "pre-made" for item in several)
    return dict(zip(unique_names(stems), several, strict=True))


def _chains(value: object, info: ValidationInfo) -> tuple[DefenseChain, ...]:
    trust = bool((info.context or {}).get("trust"))
    if isinstance(value, list) and value and all(isinstance(item, Mapping) for item in value):
        return tuple(DefenseChain.read(item, trust=trust) for item in value)
    if isinstance(value, tuple) and value and all(isinstance(item, DefenseChain) for item in value):
        return value
    return make_chains(value, info.data.get("models", {}).values())


def _references(values: Mapping[str, object]) -> dict[str, str]:
    return {name: reference_of(value) for name, value in values.items()}


Models = Annotated[dict[str, object], BeforeValidator(_models), PlainSerializer(_references)]
Premade = Annotated[dict[str, object], BeforeValidator(_premade), PlainSerializer(_references)]
Chains = Annotated[
    tuple[DefenseChain, ...],
    BeforeValidator(_chains),
    PlainSerializer(lambda chains: [chain.described() for chain in chains]),
]
OptionalReference = Annotated[object, PlainSerializer(lambda value: None if value is None else reference_of(value))]


class EvaluateSpec(ModelSpec):
    """Models in chains of defenses under attacks, and every option that decides what they find.

    Parameters
    ----------
    models
        References or objects by name.
    attacks
        The attacks, each with every option; there may be none where there are pre-made texts.
    defenses
        The columns of the grid, the bare model first.
    premade
        Adversarial texts that exist already, by name.
    seeds
        How many seeds: the texts are those of the first, the random choices are each seed's.
    eot_samples
        How many answers of a randomised model a search averages; 1 leaves that view out.
    budget
        The most queries per text.
    max_changed, constraint
        Limits of all attacks, recorded with the options of each as well.
    transfer_from
        The model whose adversarial texts are tried on all others; None leaves that view out.
    """

    kind: ClassVar[str] = "evaluate"
    by_key: ClassVar[tuple[str, ...]] = ("attacks", "defenses")

    models: Models
    attacks: OptionalAttacks = ()
    defenses: Annotated[Chains, Field(validate_default=True)] = ()
    premade: Premade = Field(default_factory=dict)
    seeds: Count = 1
    eot_samples: Count = 5
    budget: Count | None = None
    max_changed: float | None = None
    constraint: str | None = None
    transfer_from: OptionalReference = None

    @model_validator(mode="after")
    def _something_to_ask(self) -> Self:
        if not self.attacks and not self.premade:
            raise OptionError(
                "No attack was named, and no adversarial texts with --premade. List attacks with: stockade ls attacks"
            )
        return self

    @property
    def all_seeds(self) -> tuple[int, ...]:
        """The seeds, from the first on."""
        return tuple(range(self.seed, self.seed + self.seeds))
