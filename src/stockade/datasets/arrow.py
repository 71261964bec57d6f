"""Tables in Apache Arrow's layout: parquet files, `pyarrow.Table` objects, batches of the `datasets` package."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from stockade.core.errors import DataError
from stockade.core.limits import LARGEST_CHUNK, LONGEST_CELL, MOST_UNPACKED
from stockade.datasets.streams import DataFile
from stockade.datasets.wording import check_columns, first_line

_BATCH = 2048
_ARROW_ERRORS = (OSError, ValueError, NotImplementedError, MemoryError, KeyError, TypeError)
"""Every error of pyarrow is a subclass of one of these."""
_PAGE_BUFFER = 1 << 20
"""Bytes of the buffer through which columns are read, so that a file of one huge row group is streamed too."""


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
        with _open(self.file) as parquet:
            try:
                rows = _check_sizes(parquet, wanted, self.name)
                batches = parquet.iter_batches(batch_size=rows, columns=list(wanted), use_threads=False)
                yield from cells_of(batches, wanted, self.name)
            except _ARROW_ERRORS as error:
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
        batches = self.table.select(list(wanted)).to_batches(max_chunksize=_BATCH)
        return cells_of(batches, wanted, self.name)

    def place(self, number: int) -> str:
        return place(number)

    def label_names(self, column: str) -> tuple[str, ...] | None:
        return _class_names(self.table.schema).get(column)

    def sha256(self) -> None:
        return None


def open_parquet(file: DataFile) -> ParquetTable:
    """Read the schema of a parquet file, with the label names that the `datasets` package leaves there."""
    with _open(file) as parquet:
        schema = parquet.schema_arrow
        return ParquetTable(file, check_columns(file.name, tuple(schema.names)), _class_names(schema))


def cells_of(batches: Iterable[Any], wanted: tuple[str, ...], name: str) -> Iterator[Sequence[object]]:
    """The cells of record batches or tables, row by row, as Python values."""
    before = 0
    for batch in batches:
        try:
            for column in wanted:
                _check_lengths(batch[column], name)
            columns = [batch[column].to_pylist() for column in wanted]
        except UnicodeDecodeError:
            raise DataError(
                f"{name} has a text that is not UTF-8 between row {before} and row {before + batch.num_rows - 1}. "
                "Write the file again from decoded texts."
            ) from None
        yield from zip(*columns, strict=True)
        before += batch.num_rows


def _check_lengths(values: Any, name: str) -> None:
    """Refuse texts that are too long before they are made Python strings."""
    arrow = import_module("pyarrow")
    types = arrow.types
    for chunk in values.chunks if isinstance(values, arrow.ChunkedArray) else ():
        _check_lengths(chunk, name)
    if isinstance(values, arrow.DictionaryArray):
        values = values.dictionary
    kinds = (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary)
    if not any(is_kind(values.type) for is_kind in kinds):
        return
    compute = import_module("pyarrow.compute")
    longest = compute.max(compute.binary_length(values)).as_py() or 0
    if longest > LONGEST_CELL:
        raise DataError(
            f"{name} has a cell of {longest:,} bytes, expected at most {LONGEST_CELL:,}, which no text exceeds. Check "
            "that this is the right file."
        )


def _check_sizes(parquet: Any, wanted: Sequence[str], name: str) -> int:
    """How many rows to read at a time; a file that unpacks to far more than it is refused.

    The sizes are those that the file states. What it does not state is seen when a batch is there.
    """
    metadata = parquet.metadata
    widest = 1
    for group in range(metadata.num_row_groups):
        row_group = metadata.row_group(group)
        for number in range(row_group.num_columns):
            column = row_group.column(number)
            if not any(f"{column.path_in_schema}.".startswith(f"{field}.") for field in wanted):
                continue
            packed, unpacked = max(column.total_compressed_size, 1), column.total_uncompressed_size
            if unpacked > LARGEST_CHUNK and unpacked > MOST_UNPACKED * packed:
                raise DataError(
                    f'The column "{column.path_in_schema}" of {name} takes {unpacked:,} bytes unpacked, '
                    f"{unpacked // packed:,} times its size in the file, expected at most {MOST_UNPACKED:,} times. "
                    "Check that this is the right file."
                )
            widest = max(widest, unpacked // max(column.num_values, 1), _dictionary_size(column) * unpacked // packed)
    return max(1, min(_BATCH, LARGEST_CHUNK // int(widest)))


def _dictionary_size(column: Any) -> int:
    """The packed bytes of a column's dictionary: any of its rows may be the longest entry."""
    if not column.has_dictionary_page or column.dictionary_page_offset is None:
        return 0
    return max(0, int(column.data_page_offset) - int(column.dictionary_page_offset))


def place(number: int) -> str:
    """How errors name a row of something that has no lines."""
    return f"row {number} (counted from 0)"


def _open(file: DataFile) -> Any:
    parquet = import_module("pyarrow.parquet")
    file.check_unchanged()
    if file.path.stat().st_size == 0:
        raise DataError(f"{file.name} is empty, expected a parquet table. Write it again.")
    try:
        return parquet.ParquetFile(file.path, buffer_size=_PAGE_BUFFER, pre_buffer=False)
    except _ARROW_ERRORS as error:
        raise _broken(file, error) from None


def _broken(file: DataFile, error: Exception) -> DataError:
    return DataError(f"{file.name} cannot be read as parquet ({first_line(error)}). Copy, download or write it again.")


def _class_names(schema: Any) -> dict[str, tuple[str, ...]]:
    """Names of integer labels, from the metadata that the `datasets` package writes; nothing if there are none."""
    try:
        features = json.loads((schema.metadata or {})[b"huggingface"])["info"]["features"]
        return {column: tuple(map(str, kind["names"])) for column, kind in features.items() if "names" in kind}
    except (KeyError, TypeError, ValueError, AttributeError):
        return {}
