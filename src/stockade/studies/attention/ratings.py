"""What human raters say of adversarial texts (the paper's Tables 3 and 4): sheets that come back, and both scores.

Readability of a method is the number of times it was preferred, divided by that of the method preferred most (100
against 40 votes: 1.0 and 0.4). Human accuracy is the share of labels that are the true ones. Intervals are 95 %
bootstrap intervals over texts, because the raters of one text are not independent.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter

from stockade.core.errors import DataError
from stockade.experiment.store import Codec
from stockade.report.numbers import Interval
from stockade.studies.attention.rating_sheet import KEY_CODEC, Item, Key
from stockade.studies.rating_sheet.filled import mark, one_of, rater_names, read_filled
from stockade.studies.rating_sheet.stored import RatingStore

_RESAMPLES = 2_000
_DIGITS = 6


@dataclass(frozen=True, slots=True)
class Rating:
    """What a rater said of a row."""

    preferred: bool
    label: str


@dataclass(frozen=True, slots=True)
class Ratings:
    """What each rater said of each row of a sheet, with the key to the sheet."""

    key: Key
    raters: Mapping[str, Mapping[str, Rating]]


RATINGS_CODEC: Codec[Ratings] = Codec(dataclasses.asdict, TypeAdapter(Ratings).validate_python)


@dataclass(frozen=True, slots=True)
class MethodScores:
    """How often a method was preferred, how readable that makes it, and how often its label was recognised."""

    votes: int
    readability: Interval
    accuracy: Interval


@dataclass(frozen=True, slots=True)
class RatedComparison:
    """The methods of a comparison, on so many texts that all of them fool."""

    texts: int
    methods: Mapping[str, MethodScores]


@dataclass(frozen=True, slots=True)
class RatingNumbers:
    """Tables 3 and 4: who rated, and the scores."""

    raters: tuple[str, ...]
    comparisons: tuple[RatedComparison, ...]


def read_sheets(paths: Sequence[Path], key: Key) -> Ratings:
    """Read filled sheets, one per rater and named after them; what cannot be meant is named by row and column.

    Parameters
    ----------
    paths
        The sheets.
    key
        What their rows are.
    """
    return Ratings(key, {name: read_sheet(path, key) for name, path in zip(rater_names(paths), paths, strict=True)})


def read_sheet(path: Path, key: Key) -> dict[str, Rating]:
    """The ratings of one sheet by row id: every row of the key exactly once, one preferred in each group."""
    filled = read_filled(path, key.items, {"preferred": mark, "label": one_of(key.labels)})
    ratings = {identity: Rating(**row.cells) for identity, row in filled.items()}
    _check_groups(path, key.items, ratings, {identity: row.line for identity, row in filled.items()})
    return ratings


RATINGS = RatingStore("attention", KEY_CODEC, RATINGS_CODEC, read_sheets)
"""Where the study keeps the key to its last sheet, and what raters said."""


def _check_groups(
    path: Path, items: Mapping[str, Item], ratings: Mapping[str, Rating], lines: Mapping[str, int]
) -> None:
    groups: dict[str, list[str]] = {}
    for identity, item in items.items():
        groups.setdefault(item.group, []).append(identity)
    for group, members in groups.items():
        marked = sum(ratings[identity].preferred for identity in members)
        if marked != 1:
            rows = ", ".join(str(lines[identity]) for identity in members)
            raise DataError(
                f'{path}, rows {rows}, column "preferred": group {group} has {marked} rows marked, expected one. '
                "Mark the most readable."
            )


def score_ratings(ratings: Ratings) -> RatingNumbers:
    """Both scores for every comparison."""
    comparisons = tuple(_score(methods, ratings) for methods in ratings.key.comparisons)
    return RatingNumbers(tuple(ratings.raters), comparisons)


def _score(methods: tuple[str, ...], ratings: Ratings) -> RatedComparison:
    items = {identity: item for identity, item in ratings.key.items.items() if item.comparison == methods}
    groups = list(dict.fromkeys(item.group for item in items.values()))
    votes, right = np.zeros((len(groups), len(methods))), np.zeros((len(groups), len(methods)))
    for identity, item in items.items():
        place = groups.index(item.group), methods.index(item.method)
        votes[place] = sum(rows[identity].preferred for rows in ratings.raters.values())
        right[place] = sum(rows[identity].label == item.gold for rows in ratings.raters.values())
    return RatedComparison(len(groups), score_methods(methods, votes, right, len(ratings.raters)))


def score_methods(
    methods: Sequence[str], votes: NDArray[np.float64], right: NDArray[np.float64], raters: int, seed: int = 0
) -> dict[str, MethodScores]:
    """Scores from counts.

    Parameters
    ----------
    methods
        The columns.
    votes, right
        How often each text was preferred, and given its true label: a row per text, a column per method.
    raters
        How many rated.
    seed
        Decides the bootstrap.
    """
    picks = np.random.default_rng(seed).integers(len(votes), size=(_RESAMPLES, len(votes))) if len(votes) > 1 else None
    readable, accurate = _readability(votes.sum(0)), right.sum(0) / max(1, raters * len(right))
    spread = None if picks is None else np.array([_readability(votes[pick].sum(0)) for pick in picks])
    shares = None if picks is None else right[picks].sum(1) / (raters * len(right))
    return {
        method: MethodScores(
            int(votes[:, column].sum()),
            _interval(readable[column], None if spread is None else spread[:, column]),
            _interval(accurate[column], None if shares is None else shares[:, column]),
        )
        for column, method in enumerate(methods)
    }


def _readability(votes: NDArray[np.float64]) -> NDArray[np.float64]:
    shares: NDArray[np.float64] = votes / max(1.0, float(votes.max()))
    return shares


def _interval(value: float, draws: NDArray[np.float64] | None) -> Interval:
    if draws is None:
        return {"value": round(float(value), _DIGITS), "low": None, "high": None}
    low, high = np.percentile(draws, [2.5, 97.5]).tolist()
    return {"value": round(float(value), _DIGITS), "low": round(low, _DIGITS), "high": round(high, _DIGITS)}
