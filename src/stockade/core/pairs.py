"""Pairs of texts: which of the two sides are edited, and what of a pair stands beside the words of a `Text`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Side = Literal["premise", "hypothesis"]
Sides = Literal["hypothesis", "premise", "both"]
"""The sides of a pair that may be edited."""
SEAM = "\n"
"""What stands between the two sides where the words are those of both."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Which sides of a pair the words of a text are, and what must be known to make the pair again.

    Parameters
    ----------
    sides
        The sides that the words are of.
    other
        The side that they are not of, which is never edited.
    split
        With both sides: how many of the words are of the premise.
    cut
        With both sides: how many characters of the gap between them are of the premise.
    """

    sides: Sides
    other: str = ""
    split: int = 0
    cut: int = 0


@dataclass(frozen=True, slots=True)
class Stretch:
    """The words of one side of a pair (`side` is None for a single text), and where in the string that side begins."""

    side: Side | None
    words: range
    start: int = 0
