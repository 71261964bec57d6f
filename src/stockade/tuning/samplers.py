"""How the next options are chosen: at random, or by one of optuna's samplers from what was found so far.

A random trial depends on the search's seed and its own number only. An optuna trial depends also on the trials before
its round; a round has as many trials as there are workers.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, get_args

from stockade.core.errors import OptionError, ResourceMissing
from stockade.core.seeds import derive_rng, derive_seed
from stockade.tuning.space import Numbers, Range, Space, Value, draw_options
from stockade.tuning.trials import Trial

SamplerName = Literal["random", "tpe", "gp"]
_OPTUNA = {"tpe": "TPESampler", "gp": "GPSampler"}
"""Those that choose from the finished trials alone; others keep a state of their own, which a resumed search lacks."""


class Sampler(Protocol):
    """Chooses options for trials of these numbers, all of one round, knowing those before."""

    def choose(self, numbers: Sequence[int], before: Sequence[Trial]) -> list[dict[str, Value]]: ...


def make_sampler(name: str, space: Space, seed: int) -> Sampler:
    if name not in get_args(SamplerName):
        raise OptionError(f'There is no sampler "{name}" (found: {", ".join(get_args(SamplerName))}).')
    if name == "random":
        return RandomSampler(space, seed)
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


@dataclass(frozen=True, slots=True)
class OptunaSampler:
    """Tells a new optuna study what was found and asks it for more, so that nothing but our trials has to be kept."""

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
        one = self.space[name]
        return one.short(value) if isinstance(one, Numbers) and isinstance(value, float) else value

    def _distribution(self, one: Range) -> Any:
        distributions = self.optuna.distributions
        if not isinstance(one, Numbers):
            return distributions.CategoricalDistribution(one.values)
        if one.whole:
            return distributions.IntDistribution(int(one.low), int(one.high), log=one.logarithmic)
        return distributions.FloatDistribution(one.low, one.high, log=one.logarithmic)
