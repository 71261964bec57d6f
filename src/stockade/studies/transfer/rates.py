"""Transfer rates from what targets said of texts, with the rates of resampled texts, and statistics of both.

`Outcomes` holds the single answers: source by target by text. `Resampled` has the rates that follow, and the same rates
for a thousand resamples of the texts, so that any mean, difference or effect has its interval and test.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from stockade.core.records import Record
from stockade.report.numbers import Interval
from stockade.studies.transferability.cross_scoring import CLEAN, Predictions, cell, second
from stockade.studies.transferability.matrix import TransferMatrix
from stockade.studies.transferability.resampling import (
    SHARE,
    Flags,
    Shares,
    centred_interval,
    differs_from_zero,
    exchanged_shares,
    resampled_shares,
    shares,
)

Mask = NDArray[np.bool_]
Drawn = NDArray[np.floating]
"""A statistic of each resample."""
Samples = Mapping[str, Sequence[Record]]
"""The sampled adversarial texts of one attack, by source."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """A difference of two means of rates, with its interval and p by resampled texts; `cells` counts both sides."""

    difference: Interval
    first: float | None
    second: float | None
    p: float | None
    cells: tuple[int, int]


@dataclass(frozen=True, eq=False)
class Outcomes:
    """What every target said of the sampled adversarial texts of every source, for one attack.

    Parameters
    ----------
    models
        Sources and targets, in the order of the first two axes.
    ids
        The texts, in the order of the last axis.
    fooled, scored
        Whether the target gets the text wrong, and whether it was asked. The diagonal is about second trainings.
    right
        Whether the target (on the diagonal the second training) gets the original right.
    knows
        Whether each model itself gets each original right.
    """

    models: tuple[str, ...]
    ids: tuple[str, ...]
    fooled: Flags
    scored: Flags
    right: Flags
    knows: Flags

    @classmethod
    def of(
        cls,
        models: Sequence[str],
        attack: str,
        samples: Samples,
        predictions: Mapping[str, Mapping[str, Predictions]],
    ) -> Outcomes:
        """Lay out predictions as arrays.

        Parameters
        ----------
        models
            Sources and targets.
        attack
            Which attack.
        samples
            The adversarial texts of each source.
        predictions
            What every model, and every second training, said of the originals and of each source's texts.
        """
        ids = next((by_source[CLEAN].ids for by_source in predictions.values() if CLEAN in by_source), ())
        place = {id: number for number, id in enumerate(ids)}
        shape = (len(models), len(models), len(ids))
        fooled, scored, right = (np.zeros(shape, dtype=np.bool_) for _ in range(3))
        knows = np.zeros(shape[1:], dtype=np.bool_)
        for column, target in enumerate(models):
            _mark(knows[column], predictions.get(target, {}).get(CLEAN), place, wrong=False)
            for row, source in enumerate(models):
                by_source = predictions.get(second(target) if row == column else target, {})
                answers = by_source.get(cell(attack, source)) if source in samples else None
                if answers is not None:
                    _mark(fooled[row, column], answers, place, wrong=True)
                    scored[row, column, [place[id] for id in answers.wrong]] = True
                    _mark(right[row, column], by_source.get(CLEAN), place, wrong=False)
        return cls(tuple(models), tuple(ids), fooled, scored, right, knows)


def _mark(flags: Flags, predictions: Predictions | None, place: Mapping[str, int], *, wrong: bool) -> None:
    """Set the flags of the texts that a model gets wrong, or right."""
    for id, is_wrong in (predictions.wrong if predictions is not None else {}).items():
        flags[place[id]] = is_wrong == wrong


class Resampled:
    """The rates of one attack with those of resampled texts, and statistics of both.

    Parameters
    ----------
    outcomes
        What the targets said.
    clean
        Whether only texts count that the target gets right before.
    seed
        Which draws.

    Attributes
    ----------
    matrix
        The rates.
    hits, counts
        How many texts fool the target, of how many, for each source and target.
    """

    def __init__(self, outcomes: Outcomes, *, clean: bool = False, seed: int = 0) -> None:
        self.models = outcomes.models
        counted = outcomes.scored & outcomes.right if clean else outcomes.scored
        self._hits, self._counted, self._seed = outcomes.fooled, counted, seed
        self.hits: NDArray[np.int64] = (outcomes.fooled & counted).sum(-1)
        self.counts: NDArray[np.int64] = counted.sum(-1)
        self.matrix = TransferMatrix(self.models, self.models, shares(outcomes.fooled, counted))

    @cached_property
    def resamples(self) -> Shares:
        """The rates of each resample."""
        return resampled_shares(self._hits, self._counted, seed=self._seed)

    @property
    def off_diagonal(self) -> Mask:
        """The cells of two different models."""
        return ~np.eye(len(self.models), dtype=np.bool_)

    def among(self, belongs: Callable[[str], bool]) -> NDArray[np.bool_]:
        """Which models a condition holds for."""
        return np.array([belongs(name) for name in self.models], dtype=np.bool_)

    def cells(self, sources: NDArray[np.bool_], targets: NDArray[np.bool_], *, own: bool = True) -> Mask:
        """The cells from some models to others, with those of a model to itself or not."""
        mask: Mask = sources[:, None] & targets[None, :]
        return mask if own else mask & self.off_diagonal

    def mean(self, mask: Mask) -> tuple[float, Drawn]:
        """The mean rate over cells, measured and resampled."""
        return mean_of(self.matrix.rates[mask]), mean_of_rows(self.resamples[:, mask])

    def mean_interval(self, mask: Mask) -> Interval:
        """The mean rate over cells with its interval."""
        return centred_interval(*self.mean(mask), SHARE)

    def compare(self, first: Mask, second: Mask) -> Comparison:
        """The mean over some cells against that over others."""
        (value, drawn), (other, other_drawn) = self.mean(first), self.mean(second)
        difference, differences = value - other, drawn - other_drawn
        measured = np.isfinite(self.matrix.rates)
        return Comparison(
            centred_interval(difference, differences),
            number_or_none(value),
            number_or_none(other),
            differs_from_zero(difference, differences),
            (int((first & measured).sum()), int((second & measured).sum())),
        )

    def exchanged(self) -> Shares:
        """The rates after sources and targets have changed places on random halves of the texts."""
        return exchanged_shares(self._hits, self._counted, seed=self._seed)


def mean_of(values: NDArray[np.floating]) -> float:
    """The mean of the numbers that there are."""
    measured = values[np.isfinite(values)]
    return float(measured.mean(dtype=np.float64)) if measured.size else float("nan")


def mean_of_rows(values: NDArray[np.floating]) -> NDArray[np.floating]:
    """The mean of each row over the numbers that there are."""
    measured = np.isfinite(values)
    with np.errstate(invalid="ignore"):
        means: NDArray[np.floating] = np.where(measured, values, 0).sum(1) / measured.sum(1)
    return means


def number_or_none(value: float) -> float | None:
    """A number as a summary holds it."""
    return round(value, 6) if np.isfinite(value) else None
