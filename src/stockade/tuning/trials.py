"""Trials: what was tried, what came of it, and the file that keeps them, one line each."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stockade.core.errors import OptionError, RunError
from stockade.core.files import write_text
from stockade.tuning.space import Value

FILE_NAME = "trials.jsonl"


@dataclass(frozen=True, slots=True)
class Goal:
    """What a search makes larger: robust accuracy plus a share of clean accuracy.

    With `least_clean`, options that cost more clean texts than that are worse than all others, the nearer to it the
    better.
    """

    clean_weight: float = 0.0
    least_clean: float | None = None

    def __post_init__(self) -> None:
        if self.least_clean is not None and not 0 <= self.least_clean <= 1:
            raise OptionError(f"--least-clean is {self.least_clean}, expected a share from 0 to 1, such as 0.8.")
        if self.clean_weight < 0:
            raise OptionError(f"--clean-weight is {self.clean_weight}, expected 0 or more: clean texts are no harm.")

    def value(self, clean: float, robust: float) -> float:
        if self.least_clean is not None and clean < self.least_clean:
            return clean - self.least_clean - 1
        return robust + self.clean_weight * clean


@dataclass(frozen=True, slots=True)
class Trial:
    """One choice of options with its accuracies and what they are worth; `error` is why there are none."""

    number: int
    options: dict[str, Value]
    n: int = 0
    clean: float | None = None
    robust: float | None = None
    objective: float | None = None
    seconds: float = 0.0
    error: str | None = None


class TrialFile:
    """The finished trials of a search, each written when it ends; a line that a crash cut short is forgotten."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE_NAME

    def read(self) -> list[Trial]:
        """All trials in the order of their numbers."""
        found: dict[int, Trial] = {}
        lines = self.path.read_text(encoding="utf-8").splitlines() if self.path.exists() else []
        for at, line in enumerate(lines):
            try:
                trial = Trial(**json.loads(line))
            except (ValueError, TypeError) as error:
                if at == len(lines) - 1:
                    break
                raise RunError(
                    f"{self.path} cannot be read: line {at + 1} is no trial ({error}). Delete that line."
                ) from None
            found[trial.number] = trial
        return [found[number] for number in sorted(found)]

    def begin(self) -> list[Trial]:
        """The trials so far; the file is made whole, so that new lines can follow."""
        trials = self.read()
        write_text(self.path, "".join(map(_line, trials)))  # a crash here must not cost the trials so far
        return trials

    def add(self, trial: Trial) -> None:
        with self.path.open("a", encoding="utf-8") as stream:
            stream.write(_line(trial))


def best_of(trials: Iterable[Trial]) -> Trial | None:
    """The trial of the largest objective, of equals the one of more clean accuracy, then the first; None if none is
    rated, or all cost more clean texts than the goal allows (objectives below zero).
    """
    rated = [
        ((trial.objective, trial.clean or 0.0, -trial.number), trial)
        for trial in trials
        if trial.objective is not None and trial.objective >= 0
    ]
    return max(rated, key=lambda one: one[0], default=(None, None))[1]


def reference(name: str, preset: str, fixed: dict[str, Any], options: dict[str, Value]) -> str:
    """A defense with these options, as `--defense` takes it."""
    together = {**fixed, **options}
    written = ",".join(f"{key}={_written(value)}" for key, value in sorted(together.items()))
    named = name if preset == "paper" else f"{name}@{preset}"
    return f"{named}:{written}" if written else named


def missing_numbers(trials: Sequence[Trial], wanted: int) -> list[int]:
    done = {trial.number for trial in trials}
    return [number for number in range(wanted) if number not in done]


def _written(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) or value is None else str(value)


def _line(trial: Trial) -> str:
    return json.dumps(dataclasses.asdict(trial)) + "\n"
