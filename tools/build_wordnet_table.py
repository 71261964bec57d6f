"""Make `artifacts/wordnet.txt.gz`, the synonym and antonym table, from WordNet 3.0's own files.

    python tools/build_wordnet_table.py /usr/share/wordnet src/stockade/artifacts/wordnet.txt.gz

The folder is the one that Debian's package `wordnet-base` (1:3.0-37 for the committed table) installs. One line per
lower-case word, sorted by bytes, so that the reader can bisect the text without building an index:

    word TAB field TAB field …          a field is: part of speech (n v a r), kind, comma-separated words

    =   names of the word's synsets, in sense order, first occurrence only, the word itself included
    !   direct antonyms of the word's own senses
    ~   indirect antonyms: those of the other names of the same adjective synset, or of a satellite's head synset
    >   base forms named by the exception lists ("mice" > mouse)

Names of several words are left out, and so are words of several words, except those that an exception list names as the
base of a single word ("comics" > comic_strip). The output depends on nothing but the input: no time stamp, no order of
hashing.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FILES = {"n": "noun", "v": "verb", "a": "adj", "r": "adv"}
MARKER = re.compile(r"\((?:a|p|ip)\)$")  # syntactic marker of an adjective: "asleep(p)"
Table = dict[str, list[tuple[str, str, list[str]]]]


@dataclass(frozen=True, slots=True)
class Synset:
    """The part of one data line that we need; opposites maps a name's number to (offset, number) of its antonyms."""

    names: tuple[str, ...]
    satellite: bool
    heads: tuple[str, ...]
    opposites: dict[int, list[tuple[str, int]]]


def data_lines(path: Path) -> Iterator[str]:
    """The lines of a data or index file after its licence header, whose lines start with two blanks."""
    with path.open(encoding="ascii") as file:
        yield from (line for line in file if not line.startswith("  "))


def read_synsets(path: Path) -> dict[str, Synset]:
    """Offset -> synset. Antonym pointers never leave their part of speech, so an offset is enough."""
    synsets = {}
    for line in data_lines(path):
        fields = line.split(" | ")[0].split()
        kind, size = fields[2], int(fields[3], 16)
        names = tuple(MARKER.sub("", name) for name in fields[4 : 4 + 2 * size : 2])
        at = 4 + 2 * size
        pointers = [fields[i : i + 4] for i in range(at + 1, at + 1 + 4 * int(fields[at]), 4)]
        opposites = defaultdict(list)
        for symbol, target, _, numbers in pointers:
            if symbol == "!":
                opposites[int(numbers[:2], 16)].append((target, int(numbers[2:], 16)))
        heads = tuple(target for symbol, target, _, _ in pointers if symbol == "&") if kind == "s" else ()
        synsets[fields[0]] = Synset(names, kind == "s", heads, dict(opposites))
    return synsets


def read_senses(path: Path) -> dict[str, list[str]]:
    """Lower-case lemma -> synset offsets, most frequent sense first."""
    senses = {}
    for line in data_lines(path):
        fields = line.split()
        senses[fields[0]] = fields[-int(fields[2]) :]
    return senses


def read_exceptions(path: Path) -> dict[str, list[str]]:
    """Inflected single word -> its irregular base forms, in file order; a word on two lines has the later line's."""
    with path.open(encoding="ascii") as file:
        rows = [line.split() for line in file]
    return {row[0]: row[1:] for row in rows if "_" not in row[0]}


def opposites_of(synsets: dict[str, Synset], offset: str, numbers: set[int]) -> list[str]:
    """Names of the antonyms of some names (given by number, from 1) of one synset."""
    pairs = [pair for number in sorted(numbers) for pair in synsets[offset].opposites.get(number, [])]
    return [synsets[target].names[number - 1] for target, number in pairs]


def unique_words(names: list[str]) -> list[str]:
    """Each single-word name once, in order of first occurrence."""
    return list(dict.fromkeys(name for name in names if "_" not in name))


def add_part(table: Table, pos: str, folder: Path) -> None:
    """Add all that one part of speech says about each word."""
    synsets = read_synsets(folder / f"data.{FILES[pos]}")
    senses = read_senses(folder / f"index.{FILES[pos]}")
    exceptions = read_exceptions(folder / f"{FILES[pos]}.exc")
    wanted = {base for bases in exceptions.values() for base in bases}
    for lemma, offsets in senses.items():
        if "_" in lemma and lemma not in wanted:
            continue
        direct: list[str] = []
        indirect: list[str] = []
        for offset in offsets:
            synset = synsets[offset]
            own = {i for i, name in enumerate(synset.names, 1) if name.lower() == lemma}
            direct += opposites_of(synsets, offset, own)
            if pos == "a":
                for source in synset.heads or (offset,):
                    others = set(range(1, len(synsets[source].names) + 1))
                    indirect += opposites_of(synsets, source, others)
        names = unique_words([name for offset in offsets for name in synsets[offset].names])
        near, far = unique_words(direct), unique_words(indirect)
        rows = [("=", names), ("!", near), ("~", [name for name in far if name not in near])]
        table[lemma] += [(pos, kind, words) for kind, words in rows if words or kind == "="]
    for word, bases in exceptions.items():
        table[word].append((pos, ">", bases))


def build(folder: Path) -> bytes:
    """The whole table as text."""
    table: Table = defaultdict(list)
    for pos in FILES:
        add_part(table, pos, folder)
    lines = (
        "\t".join([word, *(pos + kind + ",".join(words) for pos, kind, words in table[word])])
        for word in sorted(table, key=str.encode)
    )
    return "".join(f"{line}\n" for line in lines).encode("ascii")


def main() -> None:
    """Write the table and print its size and hashes."""
    parser = argparse.ArgumentParser(description="Make Stockade's WordNet table.")
    parser.add_argument("folder", type=Path, help="folder with data.noun, index.noun, noun.exc …")
    parser.add_argument("target", type=Path)
    options = parser.parse_args()
    text = build(options.folder)
    packed = gzip.compress(text, compresslevel=9, mtime=0)
    options.target.write_bytes(packed)
    print(f"{text.count(10)} words, {len(text)} bytes of text, {len(packed)} packed")
    print(f"sha256 of the text {hashlib.sha256(text).hexdigest()}, of the file {hashlib.sha256(packed).hexdigest()}")


if __name__ == "__main__":
    main()
