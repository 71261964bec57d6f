"""Lists of natural typos, by language or from a file, and the neighbours of keys.

A list is a text file, also with `.gz`: on each line a word and its misspellings, separated by blanks, as in the lists
of Belinkov and Bisk (Synthetic and Natural Noise Both Break Neural Machine Translation, ICLR 2018), which state no
licence and are not contained. There is one of our own for English, `artifacts/typos-en.txt`.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Mapping
from functools import cache, lru_cache
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from stockade.artifacts import artifact_path
from stockade.core.errors import DataError, OptionError
from stockade.core.text import is_single_word

Keyboard = Literal["qwerty", "qwertz", "azerty"]
Typos = Mapping[str, tuple[str, ...]]
"""The misspellings of words, which are as in the list: a word in another case is looked up in lower case."""

_NAMES = {"en": "en", "eng": "en", "english": "en", "englisch": "en"}
_ROWS: Mapping[Keyboard, tuple[str, str, str]] = {
    "qwerty": ("qwertyuiop", "asdfghjkl", "zxcvbnm"),
    "qwertz": ("qwertzuiopü", "asdfghjklöä", "yxcvbnm"),
    "azerty": ("azertyuiop", "qsdfghjklm", "wxcvbn"),
}
_SHIFT = (0.0, 0.25, 0.75)
"""By how many keys each row begins further right than the first."""
_NEAR = 1.3
"""Keys are neighbours whose middles are at most so many keys apart."""


def load_typos(language: str) -> Typos:
    """The list that comes with the package for a language; a language that has none is refused.

    Parameters
    ----------
    language : str
        A code or a name, such as `en` or `English`.
    """
    code = _NAMES.get(language.strip().lower())
    if code is None:
        raise OptionError(
            f"There is no list of natural typos for the language {language} (found: en). Give one with typos=FILE, or "
            "choose another noise: swap, middle, full or key."
        )
    return _english()


@cache
def _english() -> Typos:
    return _parsed(artifact_path("typos-en.txt").read_text(encoding="utf-8"))


@lru_cache(maxsize=4)
def read_typos(path: str) -> Typos:
    """The list in a file; one without a single entry is refused.

    Parameters
    ----------
    path : str
        A text file, or one that gzip has packed.
    """
    try:
        content = _content(path)
        text = (gzip.decompress(content) if path.endswith(".gz") else content).decode("utf-8")
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read as a list of typos ({error}).") from None
    typos = _parsed(text)
    if not typos:
        raise DataError(
            f"{path} has no typos, expected a word and its misspellings on each line, separated by blanks, such as: "
            "the teh hte"
        )
    return typos


def typos_hash(path: str) -> str:
    """A fingerprint of the file."""
    return sha256(_content(path)).hexdigest()


def _content(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise DataError(f"{path} cannot be read as a list of typos ({error.strerror or error}).") from None


def _parsed(text: str) -> Typos:
    """The entries of a list; misspellings that are no word of their own, which would change the count, are left out."""
    entries: dict[str, tuple[str, ...]] = {}
    for line in text.splitlines():
        word, *typos = line.split() or [""]
        usable = tuple(typo for typo in dict.fromkeys(typos) if typo != word and is_single_word(typo))
        if usable and is_single_word(word):
            entries[word] = entries.get(word, ()) + usable
    return MappingProxyType(entries)


@cache
def key_neighbours(keyboard: Keyboard) -> Mapping[str, str]:
    """For each lower-case letter of a keyboard the letters on the keys around its own."""
    places = {
        letter: (column + _SHIFT[number], float(number))
        for number, row in enumerate(_ROWS[keyboard])
        for column, letter in enumerate(row)
    }

    def near(letter: str) -> str:
        x, y = places[letter]
        others = (other for other in places if other != letter)
        return "".join(o for o in others if (places[o][0] - x) ** 2 + (places[o][1] - y) ** 2 <= _NEAR**2)

    return {letter: near(letter) for letter in places}
