"""What an evaluation is asked for: everything that decides its results, told to the plan and told back by it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stockade.attacks.registry import NamedAttack, make_attack
from stockade.attacks.word_attack import check_max_changed
from stockade.core.errors import OptionError
from stockade.evaluation.chains import Chain, parse_chains
from stockade.jobs import DataOptions, ModelOptions, reference_of
from stockade.models.language import LanguageModels
from stockade.runs.attack import AttackSettings

_FREE = ("model_options",)
"""How models are loaded may differ when an evaluation is resumed (another device, say); their fingerprints may not."""
_TUPLES = ("names", "attacks", "defenses")


@dataclass(frozen=True, slots=True)
class EvaluationRequest:
    """Models, data and options as they were given."""

    models: tuple[object, ...]
    names: tuple[str, ...]
    data: object
    attacks: tuple[str, ...]
    defenses: tuple[str, ...] = ()
    premade: tuple[object, ...] = ()
    limit: int | None = None
    seed: int = 0
    seeds: int = 1
    """How many seeds; the texts are those of the first, the random choices each seed's own."""
    expectation: int = 5
    budget: int | None = None
    max_changed: float | None = None
    constraint: str | None = None
    preset: str | None = None
    max_words: int = 5_000
    mlm: str | None = None
    encoder: str | None = None
    data_options: DataOptions = field(default_factory=DataOptions)
    model_options: ModelOptions = field(default_factory=ModelOptions)
    transfer_from: object = None
    """The model whose adversarial texts are tried on all others; None: that way is left out."""

    def __post_init__(self) -> None:
        for name in ("seeds", "expectation"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise OptionError(f"--{name} is {value}, expected a whole number from 1 up.")
        check_max_changed(self.max_changed)

    @property
    def language(self) -> LanguageModels:
        return LanguageModels(self.mlm, self.encoder)

    @property
    def all_seeds(self) -> tuple[int, ...]:
        return tuple(range(self.seed, self.seed + self.seeds))

    def chains(self) -> tuple[Chain, ...]:
        return parse_chains(self.defenses, self.models)

    def named_attacks(self) -> tuple[NamedAttack, ...]:
        """The attacks, under the same limits; settings that no run could have are an error here."""
        shared = {"max_changed": self.max_changed, "constraint": self.constraint}
        named = tuple(make_attack(reference, self.preset, **shared) for reference in self.attacks)
        AttackSettings(named, self.seed, self.budget, self.max_words)
        return named

    def described(self) -> dict[str, Any]:
        """As the plan records it."""
        plain = {one.name: getattr(self, one.name) for one in dataclasses.fields(self)}
        return {
            **plain,
            "models": [reference_of(model) for model in self.models],
            "data": reference_of(self.data),
            "premade": [reference_of(one) for one in self.premade],
            "transfer_from": None if self.transfer_from is None else reference_of(self.transfer_from),
            "data_options": {**dataclasses.asdict(self.data_options), "label_map": dict(self.data_options.label_map)},
            "model_options": dataclasses.asdict(self.model_options),
        }

    def decisive(self) -> dict[str, Any]:
        return {name: value for name, value in self.described().items() if name not in _FREE}

    @classmethod
    def from_description(cls, described: Mapping[str, Any]) -> EvaluationRequest:
        """Models and data are then known by their references only."""
        read = dict(described)
        for name in (*_TUPLES, "models", "premade"):
            read[name] = tuple(read[name])
        read["data_options"] = DataOptions(**read["data_options"])
        read["model_options"] = ModelOptions(**read["model_options"])
        return cls(**read)


def premade_names(given: tuple[object, ...]) -> tuple[str, ...]:
    """Short names of the pre-made sets, each its own."""
    names: list[str] = []
    for one in given:
        short = Path(str(one)).name.partition(".")[0] if isinstance(one, str | Path) else "pre-made"
        number = 1
        while (name := short if number == 1 else f"{short}-{number}") in names:
            number += 1
        names.append(name)
    return tuple(names)
