"""How the next options are chosen: at random, all there are, or by one of optuna's samplers from the trials so far.

A random trial depends on the search's seed and its own number only. An optuna trial depends also on the trials before
its round; a round has as many trials as there are workers.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal, Protocol, get_args

from stockade.core.errors import OptionError, ResourceMissing
from stockade.core.seeds import derive_rng, derive_seed
from stockade.workflows.tune.ranges import Numbers, Range, Space, Value, draw_options
from stockade.workflows.tune.trials import Trial

SamplerName = Literal["random", "grid", "tpe", "gp"]
_OPTUNA = {"tpe": "TPESampler", "gp": "GPSampler"}
"""Those that choose from the finished trials alone; others keep a state of their own, which a resumed search lacks."""


class Sampler(Protocol):
    """Chooses options for trials of these numbers, all of one round, from the trials before."""

    def choose(self, numbers: Sequence[int], before: Sequence[Trial]) -> list[dict[str, Value]]: ...


def check_sampler(name: str) -> str:
    """The name of a sampler, if there is one of that name."""
    if name not in get_args(SamplerName):
        raise OptionError(f'There is no sampler "{name}" (found: {", ".join(get_args(SamplerName))}).')
    return name


def make_sampler(name: str, space: Space, seed: int) -> Sampler:
    """The sampler of that name.

    Parameters
    ----------
    name
        `random`, `grid`, or optuna's `tpe` and `gp`.
    space
        What to choose from.
    seed
        Of the search.
    """
    check_sampler(name)
    if name == "random":
        return RandomSampler(space, seed)
    if name == "grid":
        return GridSampler(grid(space))
    try:
        optuna = importlib.import_module("optuna")
    except ImportError:
        raise ResourceMissing(
            f'The sampler {name} is optuna\'s, which is not installed: pip install "stockade[tune]", or search with '
            "--sampler random."
        ) from None
    return OptunaSampler(space, seed, _OPTUNA[name], optuna)


@dataclass(frozen=True, slots=True)
class RandomSampler:
    """Every trial drawn apart from all others."""

    space: Space
    seed: int

    def choose(self, numbers: Sequence[int], before: Sequence[Trial]) -> list[dict[str, Value]]:
        return [draw_options(self.space, derive_rng(self.seed, "tune", number)) for number in numbers]


def grid(space: Space) -> list[dict[str, Value]]:
    """Every choice that a space of listed values has, the last option turning fastest; a range of numbers has no end.

    Parameters
    ----------
    space
        What to choose from.
    """
    names = sorted(space)
    lists = []
    for name in names:
        values = space[name]
        if isinstance(values, Numbers):
            raise OptionError(
                f"A grid tries every value, and {name} has the range {values}: list its values, as in --range "
                f'"{name}=A|B|C", or choose another --sampler.'
            )
        lists.append(tuple(dict.fromkeys(values.values)))
    return [dict(zip(names, chosen, strict=True)) for chosen in product(*lists)]


@dataclass(frozen=True, slots=True)
class GridSampler:
    """Every choice once, in order."""

    choices: Sequence[dict[str, Value]]

    def choose(self, numbers: Sequence[int], before: Sequence[Trial]) -> list[dict[str, Value]]:
        return [self.choices[number % len(self.choices)] for number in numbers]


@dataclass(frozen=True, slots=True)
class OptunaSampler:
    """Tells a new optuna study the finished trials and asks it for more, so that nothing but our trials is stored."""

    space: Space
    seed: int
    kind: str
    optuna: Any

    def choose(self, numbers: Sequence[int], before: Sequence[Trial]) -> list[dict[str, Value]]:
        optuna = self.optuna
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        sampler = getattr(optuna.samplers, self.kind)(seed=derive_seed(self.seed, "tune", numbers[0]) % 2**32)
        study = optuna.create_study(direction="maximize", sampler=sampler)
        distributions = {name: self._distribution(self.space[name]) for name in sorted(self.space)}
        for trial in before:
            if trial.objective is not None:
                params = {name: trial.options[name] for name in distributions}
                study.add_trial(
                    optuna.trial.create_trial(params=params, distributions=distributions, value=trial.objective)
                )
        return [
            {name: self._short(name, value) for name, value in study.ask(distributions).params.items()} for _ in numbers
        ]

    def _short(self, name: str, value: Value) -> Value:
        """With as many digits as a random draw has: the best options are there to be pasted."""
        values = self.space[name]
        return values.short(value) if isinstance(values, Numbers) and isinstance(value, float) else value

    def _distribution(self, values: Range) -> Any:
        distributions = self.optuna.distributions
        if not isinstance(values, Numbers):
            return distributions.CategoricalDistribution(values.values)
        if values.whole:
            return distributions.IntDistribution(int(values.low), int(values.high), log=values.logarithmic)
        return distributions.FloatDistribution(values.low, values.high, log=values.logarithmic)
