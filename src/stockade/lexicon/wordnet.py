"""WordNet synonyms and antonyms of single words, from a table of one megabyte (Miller 1995; Princeton WordNet 3.0).

The table (`artifacts/wordnet.txt.gz`, made by tools/build_wordnet_table.py, which documents its lines) stays in memory
as the bytes it was unpacked to; a word is found by bisecting its sorted lines, and only that line is parsed. So loading
costs the unpacking alone, and there is no index to hold.

Differences to NLTK's reader: names of several words are dropped, and a spelling that differs from the word only in case
("Paris" for "paris") is not a synonym unless it is asked for. Everything else agrees with NLTK 3.10.4: the base forms
that morphy finds, the senses, their order.
"""

from __future__ import annotations

import gzip
from functools import lru_cache
from typing import NamedTuple

from stockade.artifacts import read_artifact
from stockade.core.errors import OptionError

POS_ORDER = ("n", "v", "a", "r")

# Princeton's detachment rules (morphy(7WN)), plus "ves" -> "f" for nouns as in NLTK.
_SUFFIXES: dict[str, tuple[tuple[str, str], ...]] = {
    "n": (
        ("s", ""), ("ses", "s"), ("ves", "f"), ("xes", "x"), ("zes", "z"),
        ("ches", "ch"), ("shes", "sh"), ("men", "man"), ("ies", "y"),
    ),
    "v": (
        ("s", ""), ("ies", "y"), ("es", "e"), ("es", ""),
        ("ed", "e"), ("ed", ""), ("ing", "e"), ("ing", ""),
    ),
    "a": (("er", ""), ("est", ""), ("er", "e"), ("est", "e")),
    "r": (),
}  # fmt: skip


class Entry(NamedTuple):
    """What the table says about one word as one part of speech. `None` for `names`: it is only an inflected form."""

    names: tuple[str, ...] | None = None
    antonyms: tuple[str, ...] = ()
    indirect_antonyms: tuple[str, ...] = ()
    bases: tuple[str, ...] | None = None


_FIELD_OF_KIND = {"=": "names", "!": "antonyms", "~": "indirect_antonyms", ">": "bases"}
_NOTHING = Entry()


class WordNet:
    """WordNet lookups in an unpacked table. Case of the word is ignored; names keep WordNet's case ("Paris").

    `pos` is "n", "v", "a" (satellites included), "r", or `None` for all four in this order.
    """

    def __init__(self, table: bytes) -> None:
        """`table` holds sorted lines, each ended by a line feed."""
        self._table = table
        self._entries = lru_cache(maxsize=1 << 14)(self._read_entries)
        self._synonyms = lru_cache(maxsize=1 << 16)(self._find_synonyms)

    def synonyms(self, word: str, pos: str | None = None, *, case_variants: bool = False) -> tuple[str, ...]:
        """Single-word names of all synsets of the word: by part of speech, base form, sense, place in the synset.

        Never the word itself in any case; with `case_variants` only the same spelling is left out, which is exactly
        the filter `name != word` that other tools put on NLTK's lemma names.
        """
        return self._synonyms(word, pos, case_variants)

    def antonyms(self, word: str, pos: str | None = None, *, indirect: bool = False) -> frozenset[str]:
        """Single-word antonyms of the word's own senses.

        With `indirect`, an adjective also has the antonyms of the other names of its synsets, and a satellite
        adjective ("parched") those of its head ("dry": "wet").
        """
        entries = [self._entry(base, p) for p in _parts(pos) for base in self.lemmas(word, p)]
        direct = {name for entry in entries for name in entry.antonyms}
        if indirect:
            direct.update(name for entry in entries for name in entry.indirect_antonyms)
        return frozenset(direct)

    def lemmas(self, word: str, pos: str) -> tuple[str, ...]:
        """The base forms of the word that are in WordNet (morphy): the word itself first when it is one."""
        (part,) = _parts(pos)
        lowered = word.lower()
        listed = self._entry(lowered, part).bases
        bases = listed if listed is not None else _detach(lowered, part)
        forms = dict.fromkeys((lowered, *bases))
        return tuple(form for form in forms if self._entry(form, part).names is not None)

    def has(self, word: str) -> bool:
        """Whether the word, or a base form of it, has a sense."""
        return any(self.lemmas(word, pos) for pos in POS_ORDER)

    def _find_synonyms(self, word: str, pos: str | None, case_variants: bool) -> tuple[str, ...]:
        names: dict[str, None] = {}
        for part in _parts(pos):
            for base in self.lemmas(word, part):
                names.update(dict.fromkeys(self._entry(base, part).names or ()))
        lowered = word.lower()
        return tuple(name for name in names if name != word and (case_variants or name.lower() != lowered))

    def _entry(self, word: str, pos: str) -> Entry:
        return self._entries(word).get(pos, _NOTHING)

    def _read_entries(self, word: str) -> dict[str, Entry]:
        fields: dict[str, dict[str, tuple[str, ...]]] = {}
        for field in self._find_line(word):
            names = tuple(field[2:].split(",")) if len(field) > 2 else ()
            fields.setdefault(field[0], {})[_FIELD_OF_KIND[field[1]]] = names
        return {pos: Entry(**kinds) for pos, kinds in fields.items()}

    def _find_line(self, word: str) -> list[str]:
        """The fields of the word's line, by bisection over byte positions; none when it has no line."""
        key, table = word.encode(errors="replace"), self._table
        low, high = 0, len(table)  # both are always line starts, or the end
        while low < high:
            start = table.rfind(b"\n", low, (low + high) // 2) + 1 or low
            end = table.index(b"\n", start)
            headword = table[start : table.find(b"\t", start, end)]
            if headword == key:
                return table[start:end].decode().split("\t")[1:]
            if headword < key:
                low = end + 1
            else:
                high = start
        return []


def _parts(pos: str | None) -> tuple[str, ...]:
    if pos is None:
        return POS_ORDER
    if pos not in POS_ORDER:
        raise OptionError(f'There is no WordNet part of speech "{pos}" (expected n, v, a or r).')
    return (pos,)


def _detach(word: str, pos: str) -> tuple[str, ...]:
    return tuple(word[: -len(old)] + new for old, new in _SUFFIXES[pos] if word.endswith(old))


@lru_cache(maxsize=1)
def load_wordnet() -> WordNet:
    """The table that comes with the package, read at the first call."""
    return WordNet(gzip.decompress(read_artifact("wordnet.txt.gz", "tools/build_wordnet_table.py")))
