"""What decides the trials of a search."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, PlainSerializer, ValidationInfo, field_validator, model_validator

from stockade.core.errors import OptionError
from stockade.core.options import option_defaults, parse_options, validated
from stockade.defenses.registry import DEFENSES, NamedDefense, make_defense
from stockade.experiment.spec import Count, ModelSpec, OptionalAttacks, Reference
from stockade.workflows.evaluate.spec import Premade
from stockade.workflows.tune.ranges import Choices, Numbers, Range, Value, default_ranges, read_ranges
from stockade.workflows.tune.samplers import check_sampler, grid
from stockade.workflows.tune.trials import Goal, reference


@dataclass(frozen=True, slots=True)
class SearchedDefense:
    """A defense whose options are searched.

    Parameters
    ----------
    named
        The defense with its fixed options.
    fixed
        The options that stay as they are.
    """

    named: NamedDefense
    fixed: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.named.name

    @property
    def fixed_options(self) -> dict[str, Value]:
        """The options that stay as they are, with their values."""
        return {name: self.named.options[name] for name in self.fixed}

    def with_options(self, options: Mapping[str, Value]) -> NamedDefense:
        """The defense with some options set, which are checked."""
        values = validated(self.name, type(self.named.defense), options)
        return replace(self.named, method=replace(self.named.defense, **values))

    def reference(self, options: Mapping[str, Value]) -> str:
        """The defense with these options and the fixed ones, as `--defense` takes it."""
        return reference(self.name, self.named.preset, {**self.fixed_options, **options})

    def described(self) -> dict[str, Any]:
        """As the manifest records it."""
        return {**self.named.described(), "fixed": list(self.fixed)}


def _defense(value: object, info: ValidationInfo) -> SearchedDefense:
    if isinstance(value, SearchedDefense):
        return value
    if isinstance(value, Mapping):
        trust = bool((info.context or {}).get("trust"))
        return SearchedDefense(NamedDefense.from_description(value, trust=trust), tuple(value["fixed"]))
    named = make_defense(value)
    if isinstance(value, str):
        fixed = tuple(parse_options("--defense", named.name, value.partition(":")[2]))
    else:
        named, fixed = _fixed_of_object(named)
    return SearchedDefense(named, fixed)


def _fixed_of_object(named: NamedDefense) -> tuple[NamedDefense, tuple[str, ...]]:
    """Of an object those options are fixed that are not the default."""
    kind = type(named.defense)
    entry = DEFENSES.get(named.name)
    if entry is not None:
        named = replace(named, preset=entry.default_preset)
    preset = {} if entry is None else validated(named.name, kind, entry.presets[entry.default_preset])
    defaults = {**option_defaults(kind), **preset}
    return named, tuple(name for name, default in defaults.items() if getattr(named.defense, name) != default)


def _ranges(value: object, info: ValidationInfo) -> dict[str, Range]:
    defense: SearchedDefense = info.data["defense"]
    name, kind = defense.name, type(defense.named.defense)
    if isinstance(value, Mapping):
        written = [f"{option}={values}" for option, values in value.items()]
    elif isinstance(value, str):
        written = [value]
    elif isinstance(value, list | tuple) and all(isinstance(item, str) for item in value):
        written = list(value)
    else:
        raise OptionError(f"ranges is {value!r}, expected texts such as rate=0.1..0.9.")
    ranges = read_ranges(written, name, kind) or default_ranges(name, kind, defense.fixed_options)
    both = sorted(set(ranges) & set(defense.fixed))
    if both:
        raise OptionError(f"{', '.join(both)} of {name} is fixed and has a range: leave one of them out.")
    if not ranges:
        raise OptionError(f"{name} has no option with a natural range: name one, as in --range rate=0.1..0.9.")
    return ranges


Searched = Annotated[SearchedDefense, BeforeValidator(_defense), PlainSerializer(SearchedDefense.described)]
Ranges = Annotated[
    dict[str, Numbers | Choices],
    BeforeValidator(_ranges),
    PlainSerializer(lambda ranges: {name: str(values) for name, values in sorted(ranges.items())}),
]


class TuneSpec(ModelSpec):
    """A model, texts, attacks, a defense, and what is searched among its options.

    Parameters
    ----------
    model
        A reference or the model itself, without defenses.
    defense
        The defense with its fixed options.
    attacks
        What a text must survive to count as robust; none where pre-made texts alone decide.
    premade
        Adversarial texts that exist already, by name.
    premade_weight
        What accuracy on them counts for in the objective.
    train_data
        Texts that each trial trains the model on, with the defense; None where nothing is trained.
    train_options
        Every option of those trainings.
    ranges
        What is searched, by option; the natural ranges of the defense if none is named.
    trials
        How many choices of options to try; may grow when a search is resumed.
    sampler
        How options are chosen: `random`, `grid` (every choice of listed values once), or optuna's `tpe` and `gp`.
    objective
        `robust`: accuracies, as below; `mcb`: how many words may change in at least half of the texts, certified.
    method
        The certificate behind `mcb`; None: the one for the defense.
    clean_weight, least_clean
        The objective is robust accuracy + `premade_weight` × accuracy on pre-made texts + `clean_weight` × clean
        accuracy, of which those count that are measured; options with less clean accuracy than `least_clean` lose to
        all others.
    budget
        The most queries per text.
    eot_samples
        How many answers of a randomised defense a search averages; 1 leaves that view out.
    """

    kind: ClassVar[str] = "tune"
    free: ClassVar[frozenset[str]] = frozenset({"model_options", "trials"})

    model: Reference
    defense: Searched
    attacks: OptionalAttacks = ()
    ranges: Annotated[Ranges, Field(validate_default=True)] = Field(default_factory=dict)
    limit: Count | None = 100
    trials: Count = 20
    sampler: str = "random"
    clean_weight: float = 0.0
    least_clean: float | None = None
    budget: Count | None = None
    eot_samples: Count = 3
    premade: Premade = Field(default_factory=dict)
    premade_weight: float = 1.0
    train_data: Reference = None
    train_options: Mapping[str, Any] = Field(default_factory=dict)
    objective: Literal["robust", "mcb"] = "robust"
    method: str | None = None

    @field_validator("sampler")
    @classmethod
    def _known_sampler(cls, sampler: str) -> str:
        return check_sampler(sampler)

    @model_validator(mode="after")
    def _can_be_tried(self) -> Self:
        Goal(self.clean_weight, self.least_clean, self.premade_weight)
        if self.objective == "mcb" and (self.attacks or self.premade or self.clean_weight):
            raise OptionError(
                "--objective mcb rates options by what is certified alone: leave out --attack, --premade and "
                "--clean-weight."
            )
        if self.objective != "mcb" and self.method is not None:
            raise OptionError("--method certifies texts for --objective mcb: add that, or leave it out.")
        if self.sampler == "grid":
            grid(self.ranges)
        if self.objective != "mcb" and not self.attacks and not self.premade:
            raise OptionError(
                "No attack was named, and no adversarial texts with --premade: nothing would tell good options from "
                "bad ones. List attacks with: stockade ls attacks"
            )
        name, extremes = self.defense.name, self.extremes()
        if self.train_data is None and not any(defense.entry.answers for defense in extremes):
            raise OptionError(
                f"{name} with these options only changes how a model is trained, so each trial must train one: give "
                "texts to train on, as in --train-data reviews.csv, or tune a defense that acts when a model is asked."
            )
        if self.train_data is not None and not any(defense.entry.trains for defense in extremes):
            raise OptionError(f"{name} does not change how a model is trained: leave out --train-data.")
        return self

    @classmethod
    def decisive(cls, described: Mapping[str, Any]) -> dict[str, Any]:
        """What must be the same for a search to be resumed; searches of before there were others do not say it."""
        decisive = super().decisive(described)
        defaults = {
            "premade": {},
            "premade_weight": 1.0,
            "train_data": None,
            "train_options": {},
            "objective": "robust",
            "method": None,
        }
        return {name: value for name, value in decisive.items() if name not in defaults or value != defaults[name]}

    @property
    def goal(self) -> Goal:
        """What is maximised."""
        return Goal(self.clean_weight, self.least_clean, self.premade_weight)

    def extremes(self) -> list[NamedDefense]:
        """The defense at the ends of each range: a value that cannot be is an error before anything is written."""
        return [
            self.defense.with_options({name: value}) for name, values in self.ranges.items() for value in values.ends
        ]
