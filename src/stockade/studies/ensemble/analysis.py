"""The numbers of the study of ensembles, from a transfer matrix and what models said of adversarial texts alone.

    selections    which models each search chooses for each size, and their fitness on the matrix
    bounds        what the greedy search proves of the best fitness there is
    published     the paper's lists (Table 8), scored on this matrix
    ensembles     Figure 1: how often texts that fool an ensemble fool the models outside it
    human, single, growth    differences that the paper makes claims about

Intervals and tests draw texts with replacement (`transferability/resampling.py`): a text was attacked on many
ensembles and shown to many models. Two ensembles are compared on the models that are in neither.

Differences to the paper: it gives no intervals, and averages each ensemble over the models outside that ensemble alone,
so that two ensembles are compared on different models; those averages are here as well.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stockade.report.numbers import Interval
from stockade.studies.ensemble.outside import Difference, Transfer
from stockade.studies.ensemble.published import HUMAN, PublishedEnsemble
from stockade.studies.ensemble.selection import EnsembleSearch, GeneticOptions
from stockade.studies.transferability.matrix import TransferMatrix, traits_of

SINGLE, GENETIC, GREEDY, EXHAUSTIVE = "single", "genetic", "greedy", "exhaustive"
METHODS = (GENETIC, GREEDY, EXHAUSTIVE, HUMAN)
LARGEST_EXHAUSTIVE = 4
SMALL, LARGE = 3, 5
"""Ensembles of up to 3 members are small, those from 5 on large."""
_FEWEST_POINTS = 4


@dataclass(frozen=True, slots=True)
class Selection:
    """What a search chose for a size."""

    method: str
    size: int
    members: tuple[str, ...]
    fitness: float

    @property
    def ensemble(self) -> str:
        """The name of the ensemble, whoever chose it."""
        return ensemble_name(self.members)


@dataclass(frozen=True, slots=True)
class Bound:
    """What the greedy search proves: no ensemble of the size has a fitness above `upper_bound`."""

    size: int
    greedy: float
    upper_bound: float
    optimum: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredEnsemble:
    """An ensemble that was attacked, and how often its adversarial texts fool models outside it.

    Parameters
    ----------
    members
        Its models.
    methods
        Who chose it.
    fitness
        On the matrix, over all its targets.
    outside_fitness
        The same over the targets that are not members: what the matrix predicts of `transfer`.
    attacked, succeeded, sampled
        How many texts were attacked, how many fool the ensemble, how many of those were shown to other models.
    mean_queries, mean_perturbed_percent
        Of the attack.
    targets
        How many models are outside.
    transfer, clean_transfer
        The mean rate over them; the second counts only texts that a model gets right before.
    families
        The mean rate over the models of each input form.
    """

    members: tuple[str, ...]
    methods: tuple[str, ...]
    fitness: float
    outside_fitness: float | None
    attacked: int
    succeeded: int
    sampled: int
    mean_queries: float | None
    mean_perturbed_percent: float | None
    targets: int
    transfer: Interval
    clean_transfer: Interval
    families: Mapping[str, float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class EnsembleNumbers:
    """Every number of the study; without models to attack there are only those of the searches.

    Parameters
    ----------
    sources, targets
        The size of the matrix.
    base_rate, pair_rate
        Means over the matrix: of the rates between two trainings of a model, and between different models.
    selections, bounds, published
        What was chosen, what is proved, and what the paper chose.
    ensembles
        What was measured, by the name of the ensemble.
    human, human_all, human_small
        The genetic search's ensembles against the human's by size, over all sizes, and how much larger that is for
        small ensembles than for large ones.
    single, single_all
        The genetic search's ensembles against the best single source.
    growth
        The genetic search's ensembles against those with one member less.
    rank_correlation
        Spearman's, between the fitness and the transfer of all ensembles that were measured.
    """

    sources: int
    targets: int
    base_rate: float | None
    pair_rate: float | None
    selections: tuple[Selection, ...]
    bounds: tuple[Bound, ...]
    published: tuple[PublishedEnsemble, ...]
    ensembles: Mapping[str, MeasuredEnsemble]
    human: Mapping[int, Difference]
    human_all: Difference | None
    human_small: Difference | None
    single: Mapping[int, Difference]
    single_all: Difference | None
    growth: Mapping[int, Difference]
    rank_correlation: float | None


def ensemble_name(members: Sequence[str]) -> str:
    """What the study calls an ensemble, as in `CNN-W-GloVe-1+BERT`."""
    return "+".join(members)


def select(
    search: EnsembleSearch,
    sizes: Sequence[int],
    methods: Collection[str],
    options: GeneticOptions,
    published: Sequence[PublishedEnsemble],
    seed: int = 0,
) -> tuple[Selection, ...]:
    """The ensembles to compare: those of each method and size that there are, and the best single source.

    Parameters
    ----------
    search
        The candidates and their rates.
    sizes
        How many members; sizes that there are not enough candidates for are left out.
    methods
        Some of `METHODS`.
    options, seed
        Of the genetic search.
    published
        Where the human's are taken from.
    """
    (single,) = search.greedy(1)
    selections = [Selection(SINGLE, 1, single.members, single.fitness)]
    for size in (size for size in sizes if size <= len(search.names)):
        if GENETIC in methods:
            choice = search.genetic(size, options, seed)
            selections.append(Selection(GENETIC, size, choice.members, choice.fitness))
        if GREEDY in methods:
            choice = search.greedy(size)[-1]
            selections.append(Selection(GREEDY, size, choice.members, choice.fitness))
        best = search.exhaustive(size) if EXHAUSTIVE in methods and size <= LARGEST_EXHAUSTIVE else None
        if best is not None:
            selections.append(Selection(EXHAUSTIVE, size, best.members, best.fitness))
        for entry in published if HUMAN in methods else ():
            there = entry.fitness is not None and set(entry.members) <= set(search.names)
            if there and (entry.selector, entry.size) == (HUMAN, size):
                choice = search.choice(entry.members)
                selections.append(Selection(HUMAN, size, choice.members, choice.fitness))
    return tuple(selections)


def prove_bounds(search: EnsembleSearch, selections: Sequence[Selection]) -> tuple[Bound, ...]:
    """What the greedy search proves for each size that it was run for."""
    optima = {entry.size: entry.fitness for entry in selections if entry.method == EXHAUSTIVE}
    return tuple(
        Bound(entry.size, entry.fitness, round(search.upper_bound(entry.size), 6), optima.get(entry.size))
        for entry in selections
        if entry.method == GREEDY
    )


def matrix_means(matrix: TransferMatrix) -> tuple[float | None, float | None]:
    """The two lines of Figure 1: the mean base rate, and the mean over all pairs of different models."""
    own = np.array([[source == target for target in matrix.targets] for source in matrix.sources], dtype=np.bool_)
    return _mean_or_none(matrix.rates[own]), _mean_or_none(matrix.rates[~own])


def compare_methods(transfer: Transfer, selections: Sequence[Selection]) -> dict[str, object]:
    """The differences that the paper makes claims about, as fields of `EnsembleNumbers`."""
    chosen = {(entry.method, entry.size): entry.ensemble for entry in selections if entry.ensemble in transfer}
    sizes = sorted(size for method, size in chosen if method == GENETIC)
    single = chosen.get((SINGLE, 1))
    human = {size: (chosen[GENETIC, size], chosen[HUMAN, size]) for size in sizes if (HUMAN, size) in chosen}
    alone = {size: (chosen[GENETIC, size], single) for size in sizes if single is not None}
    grown = {size: (chosen[GENETIC, size], chosen[GENETIC, size - 1]) for size in sizes if size - 1 in sizes}
    small = [pair for size, pair in human.items() if size <= SMALL]
    large = [pair for size, pair in human.items() if size >= LARGE]
    return {
        "human": {size: transfer.difference([pair]) for size, pair in human.items()},
        "human_all": transfer.difference(list(human.values())) if human else None,
        "human_small": transfer.contrast(small, large) if small and large else None,
        "single": {size: transfer.difference([pair]) for size, pair in alone.items()},
        "single_all": transfer.difference(list(alone.values())) if alone else None,
        "growth": {size: transfer.difference([pair]) for size, pair in grown.items()},
    }


def family_rates(transfer: Transfer, ensemble: str, targets: Sequence[str]) -> dict[str, float | None]:
    """The mean rate of an ensemble over the targets of each input form."""
    families: dict[str, list[str]] = {}
    for target in targets:
        families.setdefault(traits_of(target).form, []).append(target)
    return {family: transfer.mean(ensemble, among)["value"] for family, among in families.items()}


def outside_fitness(matrix: TransferMatrix, members: Sequence[str]) -> float | None:
    """The fitness over the targets that are not members: what the matrix predicts of an ensemble's transfer."""
    rows = np.nan_to_num(matrix.rates[[matrix.sources.index(member) for member in members]], nan=0.0)
    outside = [target not in members for target in matrix.targets]
    return _mean_or_none(rows.max(axis=0)[outside])


def rank_correlation(ensembles: Collection[MeasuredEnsemble]) -> float | None:
    """Spearman's between fitness and transfer; None for fewer than four ensembles, or where one does not vary."""
    from scipy.stats import spearmanr

    pairs = [(entry.fitness, entry.transfer["value"]) for entry in ensembles if entry.transfer["value"] is not None]
    fitness, transfer = [first for first, _ in pairs], [second for _, second in pairs]
    if len(pairs) < _FEWEST_POINTS or len(set(fitness)) == 1 or len(set(transfer)) == 1:
        return None
    return round(float(spearmanr(fitness, transfer).statistic), 4)


def _mean_or_none(values: NDArray[np.float64]) -> float | None:
    measured = values[np.isfinite(values)]
    return round(float(measured.mean()), 6) if measured.size else None
