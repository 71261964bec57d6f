"""Tables in Apache Arrow's layout: parquet files, `pyarrow.Table` objects, batches of the `datasets` package."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stockade.core.arrow import BATCH_ROWS, cells_of, class_names
from stockade.core.errors import DataError
from stockade.core.parquet import ParquetError, read_rows, read_schema
from stockade.datasets.streams import DataFile
from stockade.datasets.wording import check_columns, first_line


@dataclass(frozen=True, slots=True)
class ParquetTable:
    """A parquet file; open one with `open_parquet`."""

    file: DataFile
    columns: tuple[str, ...]
    names: Mapping[str, tuple[str, ...]]
    has_header: bool = False

    @property
    def name(self) -> str:
        return self.file.name

    def cells(self, wanted: tuple[str, ...]) -> Iterator[Sequence[object]]:
        _check(self.file)
        try:
            yield from read_rows(self.file.path, self.name, wanted)
        except ParquetError as error:
            raise _broken(self.file, error) from None

    def place(self, number: int) -> str:
        return place(number)

    def label_names(self, column: str) -> tuple[str, ...] | None:
        return self.names.get(column)

    def sha256(self) -> str:
        return self.file.sha256()


@dataclass(frozen=True, slots=True)
class ArrowTable:
    """A `pyarrow.Table` in memory."""

    table: Any
    name: str = "the Table"
    has_header: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.table.column_names)

    def cells(self, wanted: tuple[str, ...]) -> Iterator[Sequence[object]]:
        batches = self.table.select(list(wanted)).to_batches(max_chunksize=BATCH_ROWS)
        return cells_of(batches, wanted, self.name)

    def place(self, number: int) -> str:
        return place(number)

    def label_names(self, column: str) -> tuple[str, ...] | None:
        return class_names(self.table.schema).get(column)

    def sha256(self) -> None:
        return None


def open_parquet(file: DataFile) -> ParquetTable:
    """Read the schema of a parquet file, with the label names that the `datasets` package leaves there."""
    _check(file)
    try:
        schema = read_schema(file.path, file.name)
    except ParquetError as error:
        raise _broken(file, error) from None
    return ParquetTable(file, check_columns(file.name, schema.columns), schema.class_names)


def place(number: int) -> str:
    """How errors name a row of something that has no lines."""
    return f"row {number} (counted from 0)"


def _check(file: DataFile) -> None:
    file.check_unchanged()
    if file.path.stat().st_size == 0:
        raise DataError(f"{file.name} is empty, expected a parquet table. Write it again.")


def _broken(file: DataFile, error: ParquetError) -> DataError:
    return DataError(f"{file.name} cannot be read as parquet ({first_line(error)}). Copy, download or write it again.")
