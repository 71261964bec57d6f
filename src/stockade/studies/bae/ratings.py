"""What human raters say of BAE's texts (the paper's Table 4): sheets that come back, accuracy and naturalness.

The accuracy of an attack is the share of labels on its texts that are the true ones, its naturalness the mean of their
scores from 1 to 5; both are means over raters of a text first, then over texts, with 95 % bootstrap intervals over
texts, because the raters of one text are not independent.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from pydantic import TypeAdapter

from stockade.experiment.store import Codec
from stockade.report.numbers import Interval
from stockade.studies.bae.rating_sheet import KEY_CODEC, METHODS, Item, Key
from stockade.studies.rating_sheet.agreement import krippendorff_alpha
from stockade.studies.rating_sheet.filled import one_of, rater_names, read_filled, whole_number
from stockade.studies.rating_sheet.stored import RatingStore
from stockade.studies.records import bootstrap_mean

LEAST, MOST = 1, 5
"""The ends of the scale of naturalness."""
PAPER_RATERS = 3


@dataclass(frozen=True, slots=True)
class Rating:
    """What a rater said of a row."""

    label: str
    naturalness: int


@dataclass(frozen=True, slots=True)
class Ratings:
    """What each rater said of each row of a sheet, with the key to the sheet."""

    key: Key
    raters: Mapping[str, Mapping[str, Rating]]


RATINGS_CODEC: Codec[Ratings] = Codec(dataclasses.asdict, TypeAdapter(Ratings).validate_python)


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodRatings:
    """The originals, or the texts of an attack, as raters see them."""

    texts: int
    accuracy: Interval
    naturalness: Interval


@dataclass(frozen=True, slots=True)
class RatingNumbers:
    """Table 4: who rated how many texts, the scores, and how far raters agree (Krippendorff's alpha)."""

    raters: tuple[str, ...]
    rows: int
    methods: Mapping[str, MethodRatings]
    label_agreement: float | None
    naturalness_agreement: float | None


def read_sheets(paths: Sequence[Path], key: Key) -> Ratings:
    """Read filled sheets, one per rater and named after them; what cannot be meant is named by row and column.

    Parameters
    ----------
    paths
        The sheets.
    key
        What their rows are.
    """
    columns = {"label": one_of(key.labels), "naturalness": whole_number(LEAST, MOST)}
    return Ratings(
        key,
        {
            name: {identity: Rating(**row.cells) for identity, row in read_filled(path, key.items, columns).items()}
            for name, path in zip(rater_names(paths), paths, strict=True)
        },
    )


RATINGS = RatingStore("bae", KEY_CODEC, RATINGS_CODEC, read_sheets)
"""Where the study keeps the key to its last sheet, and what raters said."""


@dataclass(frozen=True, slots=True)
class TextScores:
    """One text of one method: the share of raters who gave it the true label, and their mean naturalness."""

    accuracy: float
    naturalness: float


def text_scores(ratings: Ratings, method: str) -> dict[str, TextScores]:
    """The scores of each text of a method, by the id of the original."""
    items = [item for item in ratings.key.items.values() if method in item.methods]
    return {item.text: _scores(item, ratings) for item in items}


def _scores(item: Item, ratings: Ratings) -> TextScores:
    rated = [rows[item.id] for rows in ratings.raters.values()]
    return TextScores(
        fmean(rating.label == item.gold for rating in rated), fmean(rating.naturalness for rating in rated)
    )


def score_ratings(ratings: Ratings) -> RatingNumbers:
    """Table 4, with the agreement of raters."""
    items, raters = ratings.key.items, ratings.raters.values()
    return RatingNumbers(
        raters=tuple(ratings.raters),
        rows=len(items),
        methods={method: _summarise(list(text_scores(ratings, method).values())) for method in METHODS},
        label_agreement=krippendorff_alpha([[rows[item].label for rows in raters] for item in items]),
        naturalness_agreement=krippendorff_alpha(
            [[rows[item].naturalness for rows in raters] for item in items], "ordinal"
        ),
    )


def _summarise(scores: Sequence[TextScores]) -> MethodRatings:
    return MethodRatings(
        texts=len(scores),
        accuracy=bootstrap_mean([score.accuracy for score in scores]),
        naturalness=bootstrap_mean([score.naturalness for score in scores]),
    )
