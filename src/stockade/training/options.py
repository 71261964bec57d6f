"""Every number that decides how a model is trained, checked when it is given."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, Literal, get_args, get_type_hints

from stockade.core.errors import OptionError, unknown_name

Schedule = Literal["linear", "cosine", "constant"]
Precision = Literal["auto", "float32", "bfloat16", "float16"]
ScheduleUnit = Literal["batches", "texts"]
ClassWeights = Literal["none", "balanced"] | tuple[float, ...]

FREE_ON_RESUME = ("checkpoint_minutes",)
"""Options that do not change the weights, so a resumed training may have others."""


@dataclass(frozen=True, slots=True)
class TrainingOptions:
    """How a model is trained.

    `warm_up` is the share of all steps in which the rate rises from zero. `clip` bounds the norm of the gradient,
    `clip_value` each of its numbers; None leaves it alone. `patience` is the number of epochs without a better
    validation score before the training stops; None trains all epochs. `max_length` cuts texts to that many tokens;
    None cuts where the model must. `word_dropout` turns that share of the tokens into the unknown one at every step,
    so that unknown words mean something. `schedule_unit` "texts" reproduces code that counts texts where it means
    batches, after which the rate has hardly decayed.
    """

    epochs: int = 8
    batch: int = 32
    learning_rate: float = 1e-3
    weight_decay: float = 0.01
    schedule: Schedule = "linear"
    schedule_unit: ScheduleUnit = "batches"
    warm_up: float = 0.0
    clip: float | None = 1.0
    clip_value: float | None = None
    patience: int | None = None
    class_weights: ClassWeights = "none"
    max_length: int | None = None
    seed: int = 0
    precision: Precision = "auto"
    epsilon: float = 1e-8
    checkpoint_minutes: float = 10.0
    word_dropout: float = 0.0

    def __post_init__(self) -> None:
        _whole(self, "epochs", 1)
        _whole(self, "batch", 1)
        _whole(self, "patience", 1)
        _whole(self, "max_length", 2)
        _whole(self, "seed", 0)
        for name in ("learning_rate", "clip", "clip_value", "epsilon"):
            _number(self, name, above=0.0)
        for name in ("weight_decay", "checkpoint_minutes"):
            _number(self, name, least=0.0)
        for name in ("warm_up", "word_dropout"):
            _number(self, name, least=0.0, below=1.0)
        for name, kind in (("schedule", Schedule), ("precision", Precision), ("schedule_unit", ScheduleUnit)):
            if getattr(self, name) not in get_args(kind):
                raise unknown_name(name.replace("_", " "), str(getattr(self, name)), get_args(kind))
        _check_weights(self.class_weights)

    def described(self) -> dict[str, Any]:
        """The options as they are written into files."""
        found = dataclasses.asdict(self)
        weights = self.class_weights
        return {**found, "class_weights": list(weights) if isinstance(weights, tuple) else weights}

    def changed(self, **options: Any) -> TrainingOptions:
        """The same options but for those that are given; text from a command line or file is read as the field's
        type.
        """
        types = get_type_hints(TrainingOptions)
        for name in options:
            if name not in types:
                raise unknown_name("training option", name, types)
        return dataclasses.replace(self, **{name: _read(name, types[name], value) for name, value in options.items()})


def read_class_weights(text: str) -> ClassWeights:
    """`none`, `balanced`, or one number per class separated by commas."""
    if text == "balanced":
        return "balanced"
    if text == "none":
        return "none"
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise OptionError(
            f'The class weights "{text}" cannot be read; expected none, balanced, or a number per class such as 1,2.5.'
        ) from None


def _read(name: str, declared: Any, value: Any) -> Any:
    if name == "class_weights":
        return read_class_weights(value) if isinstance(value, str) else tuple(value)
    if not isinstance(value, str):
        return value
    allowed = get_args(declared) or (declared,)
    if value.lower() == "none" and type(None) in allowed:
        return None
    for kind in (int, float):
        if kind in allowed:
            try:
                return kind(value)
            except ValueError:
                raise OptionError(f'The training option {name} is "{value}", expected a number.') from None
    return value


def _whole(options: TrainingOptions, name: str, least: int) -> None:
    value = getattr(options, name)
    if value is None and name in ("patience", "max_length"):
        return
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise OptionError(f"The training option {name} is {value}, expected a whole number from {least} up.")


def _number(
    options: TrainingOptions,
    name: str,
    *,
    least: float = -math.inf,
    above: float = -math.inf,
    below: float = math.inf,
) -> None:
    value = getattr(options, name)
    if value is None and name in ("clip", "clip_value"):
        return
    sound = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not sound or value < least or value <= above or value >= below:
        bound = f"above {above:g}" if above > -math.inf else f"from {least:g} up"
        end = "" if below == math.inf else f" and below {below:g}"
        raise OptionError(f"The training option {name} is {value}, expected a number {bound}{end}.")


def _check_weights(weights: ClassWeights) -> None:
    if weights in ("none", "balanced"):
        return
    sound = isinstance(weights, tuple) and all(
        isinstance(weight, int | float) and math.isfinite(weight) and weight >= 0 for weight in weights
    )
    if not sound or not any(weights):
        raise OptionError(
            f"The class weights are {weights}, expected none, balanced, or a number of at least 0 per class."
        )
