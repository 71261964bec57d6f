"""A heat map: a number for every pair of a row and a column, as colours with the number behind each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stockade.report.document import Prose

Value = float | None
MOST_WRITTEN = 30
"""With more columns than this a page shows colours alone; the numbers appear under the pointer."""


@dataclass(frozen=True, slots=True)
class HeatCell:
    """A cell as renderers need it.

    Parameters
    ----------
    text
        The number as it is written; empty for none.
    depth
        How deep its colour is, from -1 to 1; negative numbers have a colour of their own. None for no number.
    hover
        What is shown when the pointer rests on it.
    starts_group
        Whether a group of columns begins here.
    """

    text: str
    depth: float | None
    hover: str
    starts_group: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatMap:
    """Numbers of rows by columns, drawn as colours.

    Parameters
    ----------
    rows, columns
        Their names.
    values
        A row of numbers for each row; None where nothing was measured.
    title
        Stands above the map.
    caption
        Stands below it and says how to read it.
    row_groups, column_groups
        The group of each row or column, where neighbours belong together; a line is drawn between groups.
    hovers
        What each cell says under the pointer, after its row and column; its number if empty.
    highest
        The number of the deepest colour; the largest absolute one if None.
    percent
        Whether the numbers are shares, written in percent.
    digits
        Behind the point.
    """

    rows: Sequence[str]
    columns: Sequence[str]
    values: Sequence[Sequence[Value]]
    title: str = ""
    caption: Prose = ""
    row_groups: Sequence[str] = ()
    column_groups: Sequence[str] = ()
    hovers: Sequence[Sequence[str]] = ()
    highest: float | None = None
    percent: bool = True
    digits: int = 0

    def __post_init__(self) -> None:
        shape = {len(row) for row in self.values}
        if len(self.values) != len(self.rows) or shape - {len(self.columns)}:
            raise ValueError(f"{len(self.values)} × {shape} numbers for {len(self.rows)} × {len(self.columns)} names")
        for groups, names in ((self.row_groups, self.rows), (self.column_groups, self.columns)):
            if groups and len(groups) != len(names):
                raise ValueError(f"{len(groups)} groups for {len(names)} names")

    @property
    def is_written(self) -> bool:
        """Whether a page has room for the numbers in the cells."""
        return len(self.columns) <= MOST_WRITTEN

    def text(self, value: Value) -> str:
        """A number as it is written in a cell."""
        if value is None:
            return ""
        written = f"{100 * value if self.percent else value:.{self.digits}f}"
        return written.removeprefix("-") if not float(written) else written

    @property
    def cells(self) -> tuple[tuple[HeatCell, ...], ...]:
        """Every cell, row by row."""
        measured = [abs(value) for row in self.values for value in row if value is not None]
        deepest = (max(measured, default=0.0) if self.highest is None else self.highest) or 1.0
        starts = {start for _, start, _ in self.groups_of(self.column_groups) if start}
        return tuple(
            tuple(
                HeatCell(
                    self.text(value),
                    None if value is None else max(-1.0, min(1.0, value / deepest)),
                    self._hover(row, column),
                    column in starts,
                )
                for column, value in enumerate(values)
            )
            for row, values in enumerate(self.values)
        )

    def groups_of(self, groups: Sequence[str]) -> Iterator[tuple[str, int, int]]:
        """Each group with the index at which it begins and how many it has."""
        start = 0
        for name, members in groupby(groups):
            size = len(list(members))
            yield name, start, size
            start += size

    def _hover(self, row: int, column: int) -> str:
        hover = self.hovers[row][column] if self.hovers else ""
        if not hover:
            hover = f"{self.text(self.values[row][column])}{' %' * self.percent}"
            hover = hover if self.values[row][column] is not None else "not measured"
        return f"{self.rows[row]} → {self.columns[column]}: {hover}"
