"""Which models make the best ensemble, judged by a transfer matrix alone.

    fitness(v) = mean over all targets t of max over s in v of r(s, t)          (equation 1 of the transfer paper)

A target counts with the member that transfers best to it. This is the objective of facility location: a member more
never lowers it, and adds the less the more members there are. It is monotone and submodular, so the greedy search
reaches at least 1 - (1 - 1/m)^m, more than 63 %, of the best ensemble of m members (Nemhauser, Wolsey and Fisher 1978),
and what the best members would add to any ensemble at most bounds the optimum from above (Leskovec et al. 2007).

    greedy        add the model that raises the fitness most
    exhaustive    look at every ensemble: 595,665 of 4 among 63 models take about a second
    genetic       as published: random ensembles, parents by fitness, children from the union of both, mutation

The fitness is a proxy: it is made of the rates of single sources, not of an ensemble that was attacked.

Differences to the paper: population, generations and the rate of mutation are not in it; the best two ensembles of a
generation live on. Rates that were not measured count as 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from stockade.core.errors import OptionError, unknown_name
from stockade.core.seeds import derive_seed
from stockade.studies.transferability.matrix import TransferMatrix

MOST_SUBSETS = 5_000_000
"""An exhaustive search looks at no more ensembles than these, which takes about ten seconds."""


@dataclass(frozen=True, slots=True)
class GeneticOptions:
    """How the genetic search is run.

    Parameters
    ----------
    population
        Ensembles in a generation.
    generations
        After how many it ends.
    mutation
        The chance that a child has one member replaced by a random model.
    elitism
        How many of the best ensembles live on unchanged.
    """

    population: int = 100
    generations: int = 200
    mutation: float = 0.2
    elitism: int = 2

    def __post_init__(self) -> None:
        if not 0 <= self.mutation <= 1:
            raise OptionError(f"--mutation is {self.mutation}, expected a probability between 0 and 1.")
        if not 0 <= self.elitism < self.population:
            raise OptionError(
                f"--elitism is {self.elitism}, expected fewer than the population of {self.population} and not less "
                "than 0."
            )


@dataclass(frozen=True, slots=True)
class Choice:
    """An ensemble and its fitness, its members in the order of the matrix."""

    members: tuple[str, ...]
    fitness: float


class EnsembleSearch:
    """Looks for ensembles of high fitness.

    Parameters
    ----------
    matrix
        The rates.
    candidates
        The sources that may be members; all of them if None.
    """

    def __init__(self, matrix: TransferMatrix, candidates: Iterable[str] | None = None) -> None:
        wanted = set(matrix.sources if candidates is None else candidates)
        chosen = [index for index, name in enumerate(matrix.sources) if name in wanted]
        self.names = tuple(matrix.sources[index] for index in chosen)
        self._rates = np.nan_to_num(matrix.rates[chosen], nan=0.0)

    def choice(self, members: Iterable[str]) -> Choice:
        """The ensemble of these members."""
        indices = []
        for member in members:
            if member not in self.names:
                raise unknown_name("source in this transfer matrix", member, self.names)
            indices.append(self.names.index(member))
        return self._choice(indices)

    def greedy(self, size: int) -> tuple[Choice, ...]:
        """Ensembles of 1 to `size` members, each with the one more that raises the fitness most."""
        chosen: list[int] = []
        choices = []
        for _ in range(self._checked(size)):
            gains = self._gains(chosen)
            gains[chosen] = -1.0
            chosen.append(int(gains.argmax()))
            choices.append(self._choice(chosen))
        return tuple(choices)

    def upper_bound(self, size: int) -> float:
        """What no ensemble of that size can exceed, as the greedy ensembles prove it.

        An optimal ensemble adds to any other at most the sum of what its members add one by one, so at most the sum of
        the `size` largest gains. The least such bound over the greedy ensembles of up to `size` members is returned, or
        the one that follows from the greedy search's guarantee, if that is less.
        """
        choices = self.greedy(size)
        bounds = [choices[-1].fitness / (1 - (1 - 1 / size) ** size)]
        for members in ((), *(choice.members for choice in choices)):
            indices = [self.names.index(member) for member in members]
            base = self._choice(indices).fitness if indices else 0.0
            bounds.append(base + float(np.sort(self._gains(indices))[::-1][:size].sum()))
        return min(*bounds, float(self._rates.max(axis=0).mean()))

    def exhaustive(self, size: int) -> Choice | None:
        """The best ensemble of that size; None where there are too many to look at."""
        if math.comb(len(self.names), self._checked(size)) > MOST_SUBSETS:
            return None
        best: tuple[int, ...] = ()
        best_sum = -1.0
        for first in combinations(range(len(self.names)), size - 1):
            # All ensembles of these members and one more behind them at once: never more than one row per model.
            start = first[-1] + 1 if first else 0
            if start == len(self.names):
                continue
            covered = self._rates[list(first)].max(axis=0) if first else np.zeros(self._rates.shape[1])
            sums = np.maximum(self._rates[start:], covered).sum(axis=1)
            last = int(sums.argmax())
            if sums[last] > best_sum + 1e-12:
                best, best_sum = (*first, start + last), float(sums[last])
        return self._choice(best)

    def genetic(self, size: int, options: GeneticOptions, seed: int = 0) -> Choice:
        """The best ensemble that the genetic search meets.

        Parameters
        ----------
        size
            How many members.
        options
            How the search is run.
        seed
            Decides all its random choices.
        """
        rng = np.random.default_rng(derive_seed(seed, "genetic", self._checked(size)))
        everyone = np.ones((options.population, len(self.names)), dtype=np.bool_)
        population = _random_subsets(rng, everyone, size)
        for _ in range(options.generations):
            fitness = self._fitness_of(population)
            elite = population[np.argsort(-fitness, kind="stable")[: options.elitism]]
            children = options.population - options.elitism
            parents = rng.choice(options.population, size=(-(-children // 2), 2), p=_shares(fitness))
            union = population[parents[:, 0]] | population[parents[:, 1]]
            offspring = np.concatenate([_random_subsets(rng, union, size), _random_subsets(rng, union, size)])
            population = np.concatenate([elite, self._mutated(rng, offspring[:children], options.mutation)])
        best = int(self._fitness_of(population).argmax())
        return self._choice(np.flatnonzero(population[best]).tolist())

    def _mutated(self, rng: np.random.Generator, subsets: NDArray[np.bool_], probability: float) -> NDArray[np.bool_]:
        """Some of the subsets with one member replaced by a random other model."""
        rows = np.flatnonzero(rng.random(len(subsets)) < probability)
        size = int(subsets[0].sum()) if len(subsets) else 0
        if not len(rows) or size == len(self.names):
            return subsets
        changed = subsets.copy()
        leaving = _random_subsets(rng, subsets[rows], 1)
        coming = _random_subsets(rng, ~subsets[rows], 1)
        changed[rows] = (subsets[rows] & ~leaving) | coming
        return changed

    def _fitness_of(self, subsets: NDArray[np.bool_]) -> NDArray[np.float64]:
        """The fitness of each row of members."""
        members = np.nonzero(subsets)[1].reshape(len(subsets), -1)
        fitness: NDArray[np.float64] = self._rates[members].max(axis=1).mean(axis=1)
        return fitness

    def _gains(self, members: Sequence[int]) -> NDArray[np.float64]:
        """What each model would add to the fitness of an ensemble."""
        covered = self._rates[list(members)].max(axis=0) if members else np.zeros(self._rates.shape[1])
        gains: NDArray[np.float64] = (np.maximum(self._rates, covered) - covered).mean(axis=1)
        return gains

    def _choice(self, indices: Iterable[int]) -> Choice:
        members = sorted(indices)
        fitness = float(self._rates[members].max(axis=0).mean())
        return Choice(tuple(self.names[index] for index in members), round(fitness, 6))

    def _checked(self, size: int) -> int:
        if not 1 <= size <= len(self.names):
            raise OptionError(
                f"There is no ensemble of {size} among {len(self.names)} models, expected a size from 1 to "
                f"{len(self.names)}."
            )
        return size


def _random_subsets(rng: np.random.Generator, allowed: NDArray[np.bool_], size: int) -> NDArray[np.bool_]:
    """For each row a random subset of so many of the allowed columns, as a mask."""
    order = np.argsort(np.where(allowed, rng.random(allowed.shape), 2.0), axis=1)[:, :size]
    subsets = np.zeros_like(allowed)
    np.put_along_axis(subsets, order, True, axis=1)
    return subsets


def _shares(fitness: NDArray[np.float64]) -> NDArray[np.float64]:
    """The chance of each to be a parent: proportional to its fitness, the same for all if none has any."""
    total = fitness.sum()
    return fitness / total if total > 0 else np.full(len(fitness), 1 / len(fitness))
