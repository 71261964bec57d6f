"""A finder of entities that a person can follow: words on a list, each of one type; several words where the list has
them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import regex

from stockade.lexicon.entities import Mention


@dataclass(frozen=True)
class ListFinder:
    types: Mapping[str, str]
    name: str = "a list"

    def find(self, strings: Iterable[str]) -> Iterator[tuple[Mention, ...]]:
        longest_first = sorted(self.types, key=lambda entity: -len(entity))
        pattern = regex.compile(r"\b(?:" + "|".join(map(regex.escape, longest_first)) + r")\b", regex.IGNORECASE)
        by_name = {entity.lower(): kind for entity, kind in self.types.items()}
        for string in strings:
            matches = pattern.finditer(string)
            yield tuple(Mention(match.start(), match.end(), by_name[match.group().lower()]) for match in matches)
