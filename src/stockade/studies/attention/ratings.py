"""What human raters say of adversarial texts (the paper's Tables 2 and 3): sheets that come back, and both scores.

Readability of a method is the number of times it was preferred, divided by that of the method preferred most (100
against 40 votes: 1.0 and 0.4). Human accuracy is the share of labels that are the true ones. Intervals are 95 %
bootstrap intervals over texts, because the raters of one text are not independent.
"""

from __future__ import annotations

import csv
import dataclasses
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter

from stockade.core.errors import DataError, OptionError
from stockade.experiment.store import Codec
from stockade.report.numbers import Interval
from stockade.studies.attention.rating_sheet import Item, Key

_YES, _NO = ("x", "1", "yes", "true"), ("", "0", "no", "false")
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
    """Tables 2 and 3: who rated, and the scores."""

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
    names = [path.stem for path in paths]
    if len(set(names)) < len(names):
        raise OptionError(f"Two rating sheets have the same name ({', '.join(names)}): call each after its rater.")
    return Ratings(key, {path.stem: read_sheet(path, key) for path in paths})


def read_sheet(path: Path, key: Key) -> dict[str, Rating]:
    """The ratings of one sheet by row id: every row of the key exactly once, one preferred in each group."""
    ratings: dict[str, Rating] = {}
    lines: dict[str, int] = {}
    for line, row in _rows(path):
        identity = (row["id"] or "").strip()
        if identity not in key.items:
            raise _wrong(path, line, "id", identity, "an id of the sheet that this study wrote")
        if identity in ratings:
            before = lines[identity]
            raise _wrong(path, line, "id", identity, f"each id once, but it stands in row {before} already")
        preferred = _preferred(path, line, row["preferred"])
        ratings[identity] = Rating(preferred, _label(path, line, row["label"], key.labels))
        lines[identity] = line
    missing = [identity for identity in key.items if identity not in ratings]
    if missing:
        raise DataError(
            f"{path} has no row for {len(missing)} of the {len(key.items)} ids of the sheet, the first {missing[0]}. "
            "Keep every row of the sheet."
        )
    _check_groups(path, key.items, ratings, lines)
    return ratings


def _rows(path: Path) -> list[tuple[int, dict[str, str]]]:
    """The rows with their numbers as a spreadsheet shows them: the header is row 1."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeError) as error:
        raise DataError(f"{path} cannot be read ({getattr(error, 'strerror', None) or error}).") from None
    header = text.partition("\n")[0]
    delimiter = ";" if header.count(";") > header.count(",") else ","  # as some spreadsheets save it
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter, restval="")
    columns = [(name or "").strip() for name in reader.fieldnames or ()]
    reader.fieldnames = columns
    for wanted in ("id", "preferred", "label"):
        if wanted not in columns:
            raise DataError(
                f'{path} has no column "{wanted}" (found: {", ".join(columns) or "nothing"}). Keep the header.'
            )
    return [(number, row) for number, row in enumerate(reader, 2) if any(map(_is_filled, row.values()))]


def _is_filled(cell: object) -> bool:
    return isinstance(cell, str) and bool(cell.strip())


def _preferred(path: Path, line: int, cell: str) -> bool:
    mark = cell.strip().lower()
    if mark not in (*_YES, *_NO):
        raise _wrong(path, line, "preferred", cell, "x or nothing")
    return mark in _YES


def _label(path: Path, line: int, cell: str, labels: Sequence[str]) -> str:
    written = cell.strip()
    matching = [label for label in labels if label.lower() == written.lower()]
    if not matching:
        raise _wrong(path, line, "label", written, f"one of {', '.join(labels)}")
    return matching[0]


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


def _wrong(path: Path, line: int, column: str, content: str, expected: str) -> DataError:
    shown = f'"{content}"' if content else "nothing"
    return DataError(f'{path}, row {line}, column "{column}": found {shown}, expected {expected}.')


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
