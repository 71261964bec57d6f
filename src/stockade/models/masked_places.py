"""Texts with hidden words, tokenised for a masked language model."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EncodedPlace:
    """A tokenised text with one mask token."""

    ids: tuple[int, ...]
    mask: int

    @property
    def key(self) -> Hashable:
        return self.ids

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, slots=True)
class EncodedWords:
    """A tokenised text with mask tokens for words of as many pieces."""

    ids: tuple[int, ...]
    mask: int
    pieces: tuple[tuple[int, ...], ...]
    numbers: tuple[int, ...]

    @property
    def key(self) -> Hashable:
        return self.ids, self.pieces

    def __len__(self) -> int:
        return len(self.ids)
