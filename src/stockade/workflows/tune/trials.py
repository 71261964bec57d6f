"""Trials: what was tried, what came of it, and which is the best."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from stockade.core.errors import OptionError
from stockade.core.named import CUSTOM
from stockade.defenses.registry import DEFENSES
from stockade.experiment.store import Codec
from stockade.workflows.tune.ranges import Value


@dataclass(frozen=True, slots=True)
class Goal:
    """What a search maximises: robust accuracy, accuracy on pre-made texts, and a share of clean accuracy.

    Parameters
    ----------
    clean_weight
        What clean accuracy counts for.
    least_clean
        Options with less clean accuracy are worse than all others, the nearer to it the better.
    premade_weight
        What accuracy on pre-made texts counts for.
    """

    clean_weight: float = 0.0
    least_clean: float | None = None
    premade_weight: float = 1.0

    def __post_init__(self) -> None:
        if self.least_clean is not None and not 0 <= self.least_clean <= 1:
            raise OptionError(f"--least-clean is {self.least_clean}, expected a share from 0 to 1, such as 0.8.")
        if self.clean_weight < 0:
            raise OptionError(f"--clean-weight is {self.clean_weight}, expected 0 or more: clean texts are no harm.")
        if self.premade_weight <= 0:
            raise OptionError(
                f"--premade-weight is {self.premade_weight}, expected more than 0. Leave out --premade if those texts "
                "are to count for nothing."
            )

    def value(self, clean: float, robust: float | None, premade: float | None = None) -> float:
        """The objective of options with these accuracies; what was not measured counts for nothing."""
        if self.least_clean is not None and clean < self.least_clean:
            return clean - self.least_clean - 1
        return (robust or 0.0) + self.premade_weight * (premade or 0.0) + self.clean_weight * clean

    def certified(self, clean: float, median_radius: int | None) -> float:
        """The objective of options with this MCB; fewer than half of the texts certified is worse than any."""
        if self.least_clean is not None and clean < self.least_clean:
            return clean - self.least_clean - 2
        return -1.0 if median_radius is None else float(median_radius)


@dataclass(frozen=True, slots=True)
class Trial:
    """One choice of options with its accuracies and what they are worth.

    Parameters
    ----------
    number
        From 0.
    options
        What was chosen.
    n
        How many texts count.
    clean, robust
        Accuracy on the clean texts, and under attack; not robust where nothing is attacked. A randomised defense is
        fooled by what fools half of its answers.
    objective
        What they are worth; None if there are none.
    seconds
        How long it took.
    error
        Why there are no accuracies.
    first_flip_robust
        For a randomised defense: accuracy under attack where one wrong answer is enough, as papers count.
    premade
        The mean accuracy on the pre-made sets; None without any.
    median_radius
        How many words may change in at least half of the texts (MCB); None if fewer are certified, or none was to be.
    """

    number: int
    options: Mapping[str, Value]
    n: int = 0
    clean: float | None = None
    robust: float | None = None
    objective: float | None = None
    seconds: float = 0.0
    error: str | None = None
    first_flip_robust: float | None = None
    premade: float | None = None
    median_radius: int | None = None

    def described(self) -> dict[str, Any]:
        """As plain values; the first flip only where both rules of success are known."""
        values = asdict(self)
        if self.first_flip_robust is None:
            del values["first_flip_robust"]
        return values


CODEC: Codec[Trial] = Codec(Trial.described, lambda document: Trial(**document))


def best_of(trials: Iterable[Trial]) -> Trial | None:
    """The trial of the largest objective, of equals the one of more clean accuracy, then the first; None if none is
    rated, or all cost more clean texts than the goal allows (objectives below zero).
    """
    rated = [
        ((trial.objective, trial.clean or 0.0, -trial.number), trial)
        for trial in trials
        if trial.objective is not None and trial.objective >= 0
    ]
    return max(rated, key=lambda pair: pair[0], default=(None, None))[1]


def missing_numbers(trials: Sequence[Trial], wanted: int) -> list[int]:
    """The numbers of the trials that are still to be made."""
    done = {trial.number for trial in trials}
    return [number for number in range(wanted) if number not in done]


def written_options(options: Mapping[str, Value]) -> str:
    """Options as text: `copies=5, rate=0.3`."""
    return ", ".join(f"{name}={value}" for name, value in options.items())


def reference(name: str, preset: str, options: Mapping[str, Value]) -> str:
    """A defense with these options, as `--defense` takes it."""
    written = ",".join(f"{key}={_written(value)}" for key, value in sorted(options.items()))
    named = name if _is_default(name, preset) else f"{name}@{preset}"
    return f"{named}:{written}" if written else named


def _is_default(name: str, preset: str) -> bool:
    """Whether a reference need not name the preset: the default of the defense, or that of an object without one."""
    return preset == CUSTOM or (name in DEFENSES and preset == DEFENSES[name].default_preset)


def _written(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) or value is None else str(value)
