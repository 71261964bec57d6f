"""How a translator is trained: the options of every training, some more, and presets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

from stockade.core.errors import OptionError, unknown_name
from stockade.training.options import Schedule, TrainingOptions, check_number, check_whole

ValidationMeasure = Literal["bleu", "loss"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TranslationOptions(TrainingOptions):
    """Hyperparameters of the training of a translator; the defaults suit some ten thousand short sentences.

    `batch` counts target tokens, not texts. `class_weights`, `word_dropout`, `schedule_unit` and `warm_up` are those of
    classifiers and cannot be set.

    Parameters
    ----------
    label_smoothing
        The share of the target's probability that is spread over all tokens.
    warm_up_steps
        The steps in which the learning rate rises from zero.
    beta2
        The decay of Adam's second moment.
    average
        The saved weights are the mean of those after so many epochs.
    validate
        What decides which epoch is the best: BLEU of greedy translations, or the loss, which needs no sacrebleu.
    dropout
        Dropout while training, in place of the architecture's; None keeps that.
    """

    epochs: int = 8
    batch: int = 4096
    learning_rate: float = 5e-3
    weight_decay: float = 0.0
    schedule: Schedule = "linear"
    label_smoothing: float = 0.1
    warm_up_steps: int = 300
    beta2: float = 0.98
    average: int = 1
    validate: ValidationMeasure = "bleu"
    dropout: float | None = None

    def __post_init__(self) -> None:
        TrainingOptions.__post_init__(self)
        check_whole(self, "warm_up_steps", 0)
        check_whole(self, "average", 1)
        for name in ("label_smoothing", "beta2", "dropout"):
            check_number(self, name, least=0.0, below=1.0)
        if self.validate not in get_args(ValidationMeasure):
            raise unknown_name("validation measure", str(self.validate), get_args(ValidationMeasure))
        for name in ("class_weights", "word_dropout", "schedule_unit", "warm_up"):
            default = TrainingOptions.__dataclass_fields__[name].default
            if getattr(self, name) != default:
                hint = " Set warm_up_steps." if name == "warm_up" else " Leave it out."
                raise OptionError(f"The training option {name} has no effect on a translator.{hint}")

    def warm_up_length(self, steps: int) -> int:
        """In how many of so many steps the learning rate rises; at most half of them."""
        return min(self.warm_up_steps, steps // 2)

    @property
    def adam(self) -> dict[str, Any]:
        """The arguments of the optimiser besides the weights."""
        return {**TrainingOptions.adam.fget(self), "betas": (0.9, self.beta2)}  # type: ignore[attr-defined]


TRANSLATION_PRESETS: dict[str, tuple[TranslationOptions, str]] = {
    "fast": (
        TranslationOptions(dropout=0.1),
        "8 epochs (bilstm-mt: 18): a quarter to half an hour of one core on Multi30k",
    ),
    "fine-tune": (
        TranslationOptions(epochs=3, learning_rate=1e-4, label_smoothing=0.1),
        "3 epochs at a low rate: for translators that are trained further",
    ),
    "study": (
        TranslationOptions(epochs=60, schedule="inverse-sqrt", average=10),
        "60 epochs, the last 10 averaged: four hours of one core on Multi30k",
    ),
}


_EPOCHS = {("fast", "bilstm-mt"): 18}
"""A recurrent decoder needs five epochs before its attention finds the words, and an epoch costs less."""


def translation_preset(name: str, architecture: str | None = None) -> TranslationOptions:
    """The training options of a preset for translators.

    Parameters
    ----------
    name
        The preset.
    architecture
        What is trained; some take more epochs.
    """
    if name not in TRANSLATION_PRESETS:
        raise unknown_name("training preset of a translator", name, TRANSLATION_PRESETS)
    options = TRANSLATION_PRESETS[name][0]
    epochs = _EPOCHS.get((name, architecture or ""))
    return options if epochs is None else options.changed(epochs=epochs)
