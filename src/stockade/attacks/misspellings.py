"""One-word misspellings: swap, substitute, delete or insert a letter, or take a look-alike of another script."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from random import Random
from string import ascii_letters
from typing import Literal, get_args

from stockade.lexicon.homoglyphs import homoglyphs

Transform = Literal["swap", "substitute", "delete", "insert", "homoglyph"]
TRANSFORMS: tuple[Transform, ...] = get_args(Transform)


@dataclass(frozen=True, slots=True)
class Misspelling:
    """A misspelled word and its Levenshtein distance to the word it was made from."""

    word: str
    distance: int


def misspell(word: str, transform: Transform, rng: Random) -> Misspelling | None:
    """The word with one transform at a random place; None where it cannot be changed that way."""
    if len(word) <= 1:
        return None
    make, distance = _MAKERS[transform]
    changed = make(word, rng)
    return None if changed is None or changed == word else Misspelling(changed, distance)


def _swap(word: str, rng: Random) -> str | None:
    places = [i for i in range(len(word) - 1) if word[i] != word[i + 1]]
    if not places:
        return None
    at = rng.choice(places)
    return word[:at] + word[at + 1] + word[at] + word[at + 2 :]


def _substitute(word: str, rng: Random) -> str:
    at = rng.randrange(len(word))
    return word[:at] + rng.choice([letter for letter in ascii_letters if letter != word[at]]) + word[at + 1 :]


def _delete(word: str, rng: Random) -> str:
    at = rng.randrange(len(word))
    return word[:at] + word[at + 1 :]


def _insert(word: str, rng: Random) -> str:
    at = rng.randrange(len(word))
    return word[:at] + rng.choice(ascii_letters) + word[at:]


def _homoglyph(word: str, rng: Random) -> str | None:
    places = [i for i, character in enumerate(word) if homoglyphs(character)]
    if not places:
        return None
    at = rng.choice(places)
    return word[:at] + rng.choice(homoglyphs(word[at])) + word[at + 1 :]


_MAKERS: dict[Transform, tuple[Callable[[str, Random], str | None], int]] = {
    "swap": (_swap, 2),
    "substitute": (_substitute, 1),
    "delete": (_delete, 1),
    "insert": (_insert, 1),
    "homoglyph": (_homoglyph, 1),
}
"""Each transform with the distance it makes: a search need not measure it."""


@lru_cache(maxsize=65536)
def levenshtein(a: str, b: str) -> int:
    """The least number of single-character insertions, deletions and substitutions between two strings."""
    if a == b:
        return 0
    row = list(range(len(b) + 1))
    for i, left in enumerate(a, 1):
        diagonal, row[0] = row[0], i
        for j, right in enumerate(b, 1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (left != right))
    return row[len(b)]
