"""Data that is already in Python: lists of pairs or dictionaries, data frames."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stockade.core.errors import DataError
from stockade.datasets.arrow import place
from stockade.datasets.wording import quote

_EXPECTED = "(text, label), ((premise, hypothesis), label) or a dictionary of columns"


class _InMemory:
    """What all tables without a file have in common: rows by number, no names of labels, no fingerprint."""

    __slots__ = ()

    def place(self, number: int) -> str:
        return place(number)

    def label_names(self, column: str) -> None:
        return None

    def sha256(self) -> None:
        return None


@dataclass(frozen=True, slots=True)
class PairsTable(_InMemory):
    """A list of `(text, label)`, or of `((premise, hypothesis), label)`; the first item decides which."""

    items: Sequence[Any]
    is_pair: bool
    name: str = "the list"
    has_header: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        return ("premise", "hypothesis", "label") if self.is_pair else ("text", "label")

    def cells(self, wanted: tuple[str, ...]) -> Iterator[Sequence[object]]:
        order = [self.columns.index(column) for column in wanted]
        for number, item in enumerate(self.items):
            if not _is_two(item):
                raise _wrong_item(self.name, number, item)
            text, label = item
            if self.is_pair != _is_two(text):
                pair, single = "(premise, hypothesis)", "a single text"
                first, this = (pair, single) if self.is_pair else (single, pair)
                raise DataError(
                    f"{self.name} {place(number)} has {this} where the first has {first}, expected the same in "
                    "every item. Attack pairs and single texts apart."
                )
            values = (*text, label) if self.is_pair else item
            yield [values[position] for position in order]


@dataclass(frozen=True, slots=True)
class RecordsTable(_InMemory):
    """A list of dictionaries; the keys of the first are the columns."""

    items: Sequence[Any]
    name: str = "the list"
    has_header: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(map(str, self.items[0]))

    def cells(self, wanted: tuple[str, ...]) -> Iterator[Sequence[object]]:
        for number, item in enumerate(self.items):
            if not isinstance(item, Mapping):
                raise _wrong_item(self.name, number, item)
            yield tuple(map(item.get, wanted))


@dataclass(frozen=True, slots=True)
class FrameTable(_InMemory):
    """A data frame (pandas, polars and their like): `frame.columns`, and `frame[column]` that can be iterated."""

    frame: Any
    name: str = "the DataFrame"
    has_header: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(map(str, self.frame.columns))

    def cells(self, wanted: tuple[str, ...]) -> Iterator[Sequence[object]]:
        keys = dict(zip(self.columns, self.frame.columns, strict=True))
        return zip(*(self.frame[keys[column]] for column in wanted), strict=True)


def open_items(items: Sequence[Any], needs_labels: bool = True) -> PairsTable | RecordsTable:
    """The table in a list, by the shape of its first item; single texts will do where labels are not needed."""
    if not items:
        raise DataError(f"The list of data is empty, expected items such as {_EXPECTED}. Give at least one.")
    if not needs_labels and all(isinstance(item, str) for item in items):
        return RecordsTable([{"text": item} for item in items])
    if isinstance(items[0], Mapping):
        return RecordsTable(items)
    if not _is_two(items[0]):
        raise _wrong_item("the list", 0, items[0])
    return PairsTable(items, is_pair=_is_two(items[0][0]))


def _is_two(item: object) -> bool:
    return isinstance(item, list | tuple) and len(item) == 2


def _wrong_item(name: str, number: int, item: object) -> DataError:
    hint = "Put a label beside each text." if isinstance(item, str) else "Give every item the same shape."
    return DataError(f"{name} {place(number)} is {quote(item)}, expected {_EXPECTED}. {hint}")
