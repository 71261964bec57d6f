"""Texts to look at: the same one under every attack, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stockade.core.records import Record
from stockade.core.text import Piece, Text
from stockade.studies.results import Results, succeeded, was_attacked

_LONGEST = 1_200


@dataclass(frozen=True, slots=True)
class Version:
    """What one attack made of a text."""

    attack: str
    record: Record
    pieces: tuple[Piece, ...]

    @property
    def found(self) -> bool:
        return self.record.status == "success"


@dataclass(frozen=True, slots=True)
class ComparedText:
    """One text with what every attack made of it."""

    record: Record
    versions: tuple[Version, ...]

    @property
    def original(self) -> str:
        return self.record.original


def compared_texts(results: Results, texts: Sequence[str]) -> list[ComparedText]:
    """The given texts under every attack that tried them."""
    return [_compare(results, text) for text in texts]


def telling_texts(results: Results, most: int) -> list[str]:
    """The texts that most attacks fool, in the order of the data among equals; very long ones last, if at all."""
    first = next(iter(results.values()))
    counts = {text: sum(succeeded(records.get(text)) for records in results.values()) for text in first}
    fooled = [text for text, count in counts.items() if count and len(first[text].original) <= _LONGEST]
    return sorted(fooled, key=lambda text: -counts[text])[:most]


def _compare(results: Results, text: str) -> ComparedText:
    tried = {attack: records[text] for attack, records in results.items() if was_attacked(records.get(text))}
    versions = tuple(Version(attack, record, _pieces(record)) for attack, record in tried.items())
    return ComparedText(next(iter(tried.values())), versions)


def _pieces(record: Record) -> tuple[Piece, ...]:
    if record.adversarial is None:
        return ()
    return Text.parse(record.original, record.premise).rewritten(record.adversarial).diff()
