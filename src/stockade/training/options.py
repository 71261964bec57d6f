"""How a model is trained: every option, checked when it is set, and the presets that go with models and papers."""

from __future__ import annotations

import dataclasses
import math
import re
from dataclasses import dataclass
from typing import Any, Literal, Self, get_args, get_type_hints

from stockade.core.errors import OptionError, unknown_name
from stockade.core.shares import at_most

Schedule = Literal["linear", "cosine", "constant", "inverse-sqrt"]
Task = Literal["classification", "translation"]
Precision = Literal["auto", "float32", "bfloat16", "float16"]
ScheduleUnit = Literal["batches", "texts"]
ClassWeights = Literal["none", "balanced"] | tuple[float, ...]

OPTIONAL = ("patience", "max_length", "clip", "clip_value", "dropout")
"""Options that may be None."""
FREE_ON_RESUME = ("checkpoint_minutes",)
"""Options that do not change the weights, so a resumed training may have others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingOptions:
    """Hyperparameters of a training; every one is recorded in its folder.

    Parameters
    ----------
    epochs
        Passes over the training texts.
    batch
        Texts per step, over all processes together.
    learning_rate, weight_decay, epsilon
        Of AdamW.
    schedule
        How the learning rate falls after the warm-up: linear, cosine, inverse-sqrt or not at all (constant).
    schedule_unit
        "texts" reproduces code that counts texts where it means batches, so that the rate hardly decays.
    warm_up
        The share of all steps in which the learning rate rises from zero.
    clip, clip_value
        Upper bounds of the gradient's norm and of each of its numbers; None for no bound.
    patience
        Epochs without a better validation score before the training stops; None trains all epochs.
    class_weights
        What mistakes cost: none, balanced, or a number per class.
    max_length
        Texts are cut to that many tokens; None cuts where the model must.
    seed
        Decides all random choices.
    precision
        The number format of the forward passes; auto is bfloat16 on GPUs that have it, else float32.
    checkpoint_minutes
        Minutes between two checkpoints within an epoch.
    word_dropout
        The share of tokens that each step turns into the unknown token, so that unknown words mean something.
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
        check_whole(self, "epochs", 1)
        check_whole(self, "batch", 1)
        check_whole(self, "patience", 1)
        check_whole(self, "max_length", 2)
        check_whole(self, "seed", 0)
        for name in ("learning_rate", "clip", "clip_value", "epsilon"):
            check_number(self, name, above=0.0)
        for name in ("weight_decay", "checkpoint_minutes"):
            check_number(self, name, least=0.0)
        for name in ("warm_up", "word_dropout"):
            check_number(self, name, least=0.0, below=1.0)
        for name, kind in (("schedule", Schedule), ("precision", Precision), ("schedule_unit", ScheduleUnit)):
            if getattr(self, name) not in get_args(kind):
                raise unknown_name(name.replace("_", " "), str(getattr(self, name)), get_args(kind))
        _check_weights(self.class_weights)

    def described(self) -> dict[str, Any]:
        """The options as they are written into files."""
        weights = self.class_weights
        plain = list(weights) if isinstance(weights, tuple) else weights
        return {**dataclasses.asdict(self), "class_weights": plain}

    def warm_up_length(self, steps: int) -> int:
        """In how many of so many steps the learning rate rises."""
        return at_most(self.warm_up, steps)

    @property
    def adam(self) -> dict[str, Any]:
        """The arguments of the optimiser besides the weights."""
        return {"lr": self.learning_rate, "weight_decay": self.weight_decay, "eps": self.epsilon}

    def changed(self, **options: Any) -> Self:
        """A copy with some options changed; strings, as from a command line, are converted to the option's type."""
        types = get_type_hints(type(self))
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


def check_whole(options: TrainingOptions, name: str, least: int) -> None:
    """Refuse an option that is no whole number from `least` up."""
    value = getattr(options, name)
    if value is None and name in OPTIONAL:
        return
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise OptionError(f"The training option {name} is {value}, expected a whole number from {least} up.")


def check_number(
    options: TrainingOptions,
    name: str,
    *,
    least: float = -math.inf,
    above: float = -math.inf,
    below: float = math.inf,
) -> None:
    """Refuse an option that is no finite number within the bounds."""
    value = getattr(options, name)
    if value is None and name in OPTIONAL:
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


_WORD = TrainingOptions(
    epochs=8, batch=50, learning_rate=1e-3, weight_decay=0.01, patience=3, word_dropout=0.05, max_length=512
)
_CHARACTER = TrainingOptions(epochs=12, batch=50, learning_rate=1e-3, weight_decay=0.01, warm_up=0.03, patience=4)
_TRANSFORMER = TrainingOptions(
    epochs=4, batch=32, learning_rate=2e-5, weight_decay=0.01, warm_up=0.06, patience=2, max_length=256
)
_MINILM = TrainingOptions(
    epochs=4, batch=32, learning_rate=1e-4, weight_decay=0.01, warm_up=0.06, patience=2, max_length=256
)
_SCRATCH = TrainingOptions(
    epochs=12, batch=32, learning_rate=3e-4, weight_decay=0.01, warm_up=0.1, patience=4, max_length=256
)
_BILM = TrainingOptions(epochs=10, batch=32, learning_rate=1e-3, weight_decay=0.0, warm_up=0.03, patience=2)
_RANMASK = TrainingOptions(
    epochs=20, batch=32, learning_rate=5e-5, weight_decay=1e-6, schedule="cosine", clip=1.0, max_length=128
)
_FIREBERT = TrainingOptions(
    epochs=5, batch=32, learning_rate=2e-5, weight_decay=0.0, epsilon=1e-8, clip=1.0, max_length=128
)
_FACT = _FIREBERT.changed(epochs=1, batch=7, schedule_unit="texts")

PRESETS: dict[str, tuple[TrainingOptions, str]] = {
    "zoo-word": (_WORD, "word-level CNNs and LSTMs"),
    "zoo-character": (_CHARACTER, "models that read characters"),
    "minilm": (_MINILM, "MiniLM, all weights"),
    "transformer": (_TRANSFORMER, "BERT, RoBERTa and their kin"),
    "scratch": (_SCRATCH, "transformers that begin at random weights"),
    "bilm": (_BILM, "a two-way language model"),
    "ranmask": (_RANMASK, "RanMASK as its text says (Zeng et al. 2023); IMDB: max length 256"),
    "ranmask-authors": (_RANMASK.changed(epochs=10), "RanMASK as its code does: 10 epochs"),
    "firebert": (_FIREBERT, "the re-tuned baseline of FireBERT (MNLI); IMDB: batch 20, length 256"),
    "fact": (_FACT, "FireBERT's co-tuning (MNLI)"),
    "fact-imdb": (_FACT.changed(batch=2, max_length=256), "FireBERT's co-tuning (IMDB)"),
}

_BY_NAME = (
    (r"bilm", "bilm"),
    (r"minilm", "minilm"),
    (r"nopt", "scratch"),
    (r"bert|electra|xlnet|deberta", "transformer"),
    (r"-(w?c)-|char", "zoo-character"),
    (r"cnn|lstm|gru", "zoo-word"),
)


def preset(name: str) -> TrainingOptions:
    """The training options of a preset, by its name."""
    if name not in PRESETS:
        raise unknown_name("training preset", name, PRESETS)
    return PRESETS[name][0]


def preset_for(architecture: str) -> str:
    """The name of the preset that suits a model, from its name in the zoo or the `model_type` of its config."""
    for pattern, name in _BY_NAME:
        if re.search(pattern, architecture.lower()):
            return name
    return "transformer"
