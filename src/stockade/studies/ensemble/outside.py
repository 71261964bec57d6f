"""How often texts that fool an ensemble fool the models outside it, with intervals and tests by resampled texts.

A text was attacked on many ensembles and shown to many models, so texts are drawn with replacement
(`transferability/resampling.py`), and all rates are computed anew from each draw. Two ensembles are compared on the
models that are in neither.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from stockade.experiment.store import ResultStore
from stockade.report.numbers import Interval
from stockade.studies.transferability.cross_scoring import PREDICTIONS, Predictions
from stockade.studies.transferability.resampling import (
    Flags,
    centred_interval,
    differs_from_zero,
    resampled_shares,
    shares,
)

ANSWERS = "answers"
"""The part of a store that holds what each model said of the texts of each ensemble."""
Answers = Mapping[tuple[str, str], Predictions]
"""What a model said, by its name and that of the ensemble whose texts it was shown."""


def unanswered(store: ResultStore, target: str, names: Iterable[str]) -> list[str]:
    """The ensembles, among some, whose texts a model has said nothing of yet."""
    answered = store.ids(ANSWERS)
    return [name for name in names if _key(target, name) not in answered]


def add_answer(store: ResultStore, target: str, name: str, predictions: Predictions) -> None:
    """Keep what a model said of the texts of an ensemble."""
    store.add(ANSWERS, _key(target, name), {"target": target, "texts": name, **PREDICTIONS.encode(predictions)})


def read_answers(store: ResultStore) -> Answers:
    """What all models said."""
    return {(row["target"], row["texts"]): PREDICTIONS.read(row) for row in store.documents(ANSWERS)}


@dataclass(frozen=True, slots=True)
class Difference:
    """How much more often one kind of ensemble transfers than another, on `targets` that are in neither."""

    targets: int
    difference: Interval
    p: float | None


class Transfer:
    """How often the texts of ensembles fool targets, with the same of resampled texts.

    Parameters
    ----------
    ensembles
        The members of each ensemble, by its name.
    targets
        The models that were shown the texts.
    fooled, counted
        Whether a target gets a text of an ensemble wrong, and whether it was asked; ensembles, targets, texts.
    seed
        Which draws.
    """

    def __init__(
        self,
        ensembles: Mapping[str, Sequence[str]],
        targets: Sequence[str],
        fooled: Flags,
        counted: Flags,
        seed: int = 0,
    ) -> None:
        self._places = {name: place for place, name in enumerate(ensembles)}
        self._fooled, self._counted, self._seed = fooled, counted, seed
        self._outside = np.array([[target not in members for target in targets] for members in ensembles.values()])
        self._targets, self._rates = tuple(targets), shares(fooled, counted)

    @classmethod
    def of(
        cls,
        ensembles: Mapping[str, Sequence[str]],
        targets: Sequence[str],
        answers: Answers,
        *,
        originals: str = "",
        seed: int = 0,
    ) -> Self:
        """The rates that follow from what the targets said.

        Parameters
        ----------
        ensembles, targets, seed
            As above.
        answers
            What each target said of the texts of each ensemble.
        originals
            Under which name the answers to the original texts are: only texts that a target gets right before then
            count. All count if empty.
        """
        ids = {id: None for name in ensembles for target in targets for id in _wrong(answers, target, name)}
        place = {id: index for index, id in enumerate(ids)}
        fooled, counted = np.zeros((2, len(ensembles), len(targets), len(place)), dtype=np.bool_)
        for column, target in enumerate(targets):
            before = _wrong(answers, target, originals)
            for row, name in enumerate(ensembles):
                for id, wrong in _wrong(answers, target, name).items():
                    fooled[row, column, place[id]] = wrong
                    counted[row, column, place[id]] = not originals or before.get(id) is False
        return cls(ensembles, targets, fooled, counted, seed)

    def __contains__(self, ensemble: str) -> bool:
        return ensemble in self._places

    def mean(self, ensemble: str, among: Collection[str] | None = None) -> Interval:
        """The mean rate of an ensemble over the targets outside it, or those of them that are `among` some."""
        targets = self._outside[self._places[ensemble]]
        if among is not None:
            targets = targets & np.array([target in among for target in self._targets])
        interval = centred_interval(*self._means(ensemble, targets))
        # Laid around the measured value, the ends may leave what a share can be.
        return {part: None if end is None else min(1.0, max(0.0, end)) for part, end in interval.items()}

    def difference(self, pairs: Sequence[tuple[str, str]]) -> Difference:
        """How much more often the first of each pair of ensembles transfers, as a mean over the pairs.

        Pairs that have no target outside of both are left out.
        """
        return _difference(*self._pooled(pairs))

    def contrast(self, first: Sequence[tuple[str, str]], second: Sequence[tuple[str, str]]) -> Difference:
        """How much larger the difference of some pairs is than that of others."""
        (value, drawn, targets), (other, other_drawn, other_targets) = self._pooled(first), self._pooled(second)
        return _difference(value - other, drawn - other_drawn, min(targets, other_targets))

    @cached_property
    def _resamples(self) -> NDArray[np.floating]:
        return resampled_shares(self._fooled, self._counted, seed=self._seed)

    def _means(self, ensemble: str, targets: NDArray[np.bool_]) -> tuple[float, NDArray[np.floating]]:
        place = self._places[ensemble]
        with warnings.catch_warnings():  # a mean of nothing is NaN, which is what it should be
            warnings.simplefilter("ignore", RuntimeWarning)
            drawn: NDArray[np.floating] = np.nanmean(self._resamples[:, place, targets], axis=1)
            return float(np.nanmean(self._rates[place, targets])), drawn

    def _pooled(self, pairs: Sequence[tuple[str, str]]) -> tuple[float, NDArray[np.floating], int]:
        """The mean difference of pairs, measured and resampled, and the fewest targets that one rests on."""
        compared = [entry for entry in (self._compare(*pair) for pair in pairs) if entry[2]]
        if not compared:
            return float("nan"), np.full(1, np.nan), 0
        values, draws, targets = zip(*compared, strict=True)
        return float(np.mean(values)), np.mean(draws, axis=0), min(targets)

    def _compare(self, first: str, second: str) -> tuple[float, NDArray[np.floating], int]:
        """Over the targets that are in neither."""
        targets = self._outside[self._places[first]] & self._outside[self._places[second]]
        (value, drawn), (other, other_drawn) = self._means(first, targets), self._means(second, targets)
        return value - other, drawn - other_drawn, int(targets.sum())


def _difference(value: float, drawn: NDArray[np.floating], targets: int) -> Difference:
    return Difference(targets, centred_interval(value, drawn), differs_from_zero(value, drawn))


def _wrong(answers: Answers, target: str, name: str) -> Mapping[str, bool]:
    """Whether a target is wrong, for each text that it was shown."""
    target_answers = answers.get((target, name))
    return {} if target_answers is None else target_answers.wrong


def _key(target: str, name: str) -> str:
    return f"{target} {name}"
