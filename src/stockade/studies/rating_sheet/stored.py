"""Where a study keeps the key to its last rating sheet, and what raters said with the key to theirs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from stockade.core.errors import RunError
from stockade.experiment.store import Codec, ResultStore

_PART, _KEY, _RATERS = "ratings", "key", "raters"
AnyKey = TypeVar("AnyKey")
AnyRatings = TypeVar("AnyRatings")


@dataclass(frozen=True, slots=True)
class RatingStore(Generic[AnyKey, AnyRatings]):
    """How one study keeps them.

    Parameters
    ----------
    study
        Its name.
    keys, ratings
        How a key, and what raters said, become documents and come back.
    read
        Reads filled sheets by their key.
    """

    study: str
    keys: Codec[AnyKey]
    ratings: Codec[AnyRatings]
    read: Callable[[Sequence[Path], AnyKey], AnyRatings]

    def keep_key(self, store: ResultStore, key: AnyKey) -> None:
        """Keep the key to a sheet that was written."""
        store.add(_PART, _KEY, self.keys.encode(key))

    def keep_ratings(self, store: ResultStore, folder: Path, sheets: Sequence[Path]) -> None:
        """Read filled sheets into the store; they take the place of those there.

        Parameters
        ----------
        store, folder
            The study's.
        sheets
            The files.
        """
        document = store.get(_PART, _KEY)
        if document is None:
            raise RunError(
                f"{folder} has no key to a rating sheet, so none was made from it. Make one with: "
                f"stockade study {self.study} --resume --out {folder} --rating-sheet sheet.csv"
            )
        store.add(_PART, _RATERS, self.ratings.encode(self.read(sheets, self.keys.read(document))))

    def get(self, store: ResultStore) -> AnyRatings | None:
        """What raters said; None before anybody has."""
        document = store.get(_PART, _RATERS)
        return None if document is None else self.ratings.read(document)
