"""The rows of a result as JSON lines, CSV or Parquet.

JSON lines and Parquet hold every text to the letter. CSV is for spreadsheets: a cell that one would run as a formula
begins with an apostrophe, which `core.sanitize.csv_text` takes off.
"""

from __future__ import annotations

import csv
import io
import json
import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from stockade.core.errors import OptionError, unknown_name
from stockade.core.sanitize import csv_cell, json_line

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns of a kind of rows. `nested` ones are written as JSON in CSV, and in Parquet too if `kinds` does not
    know them.
    """

    columns: tuple[str, ...]
    nested: tuple[str, ...]
    kinds: Callable[[], Mapping[str, Any]]
    """The Parquet types of the columns that are not strings; a function, because their library is loaded late."""

    @classmethod
    def of_row(cls, row: Row) -> Layout:
        """The columns of rows like this one; lists and mappings in it are nested."""
        nested = tuple(name for name, value in row.items() if isinstance(value, list | tuple | Mapping))
        return cls(tuple(row), nested, lambda: _parquet_types(row))


def _parquet_types(row: Row) -> Mapping[str, Any]:
    import pyarrow as pa

    types = ((bool, pa.bool_()), (int, pa.int64()), (float, pa.float64()))
    return {
        name: next(arrow for python, arrow in types if isinstance(value, python))
        for name, value in row.items()
        if isinstance(value, bool | int | float)
    }


def export(rows: Iterable[Row], format: str, stream: IO[bytes], layout: Layout) -> int:
    """Write the rows to a binary stream and say how many there were."""
    writer = WRITERS.get(format)
    if writer is None:
        raise unknown_name("export format", format, WRITERS)
    return writer(rows, stream, layout)


def export_to(rows: Iterable[Row], format: str, path: Path, layout: Layout) -> int:
    """Write the rows to a file that appears only when it is complete."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
    try:
        with temporary.open("xb") as stream:
            count = export(rows, format, stream, layout)
        temporary.replace(path)
    except OSError as error:
        raise OptionError(f"{path} cannot be written ({error.strerror or error}).") from None
    finally:
        temporary.unlink(missing_ok=True)
    return count


def _jsonl(rows: Iterable[Row], stream: IO[bytes], layout: Layout) -> int:
    count = 0
    for row in rows:
        stream.write(json_line(json.dumps(row, ensure_ascii=False)).encode() + b"\n")
        count += 1
    return count


def _csv(rows: Iterable[Row], stream: IO[bytes], layout: Layout) -> int:
    text = io.TextIOWrapper(stream, encoding="utf-8", errors="replace", newline="", write_through=True)
    writer = csv.DictWriter(text, layout.columns)
    writer.writeheader()
    count = 0
    for row in rows:
        cells = _with_json(row, layout.nested)
        writer.writerow({name: csv_cell(cell) if isinstance(cell, str) else cell for name, cell in cells.items()})
        count += 1
    text.detach()
    return count


def _parquet(rows: Iterable[Row], stream: IO[bytes], layout: Layout) -> int:
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds = layout.kinds()
    as_json = [name for name in layout.nested if name not in kinds]
    schema = pa.schema([(name, kinds.get(name, pa.string())) for name in layout.columns])
    buffer = [_valid_unicode(_with_json(row, as_json)) for row in rows]
    pq.write_table(pa.Table.from_pylist(buffer, schema=schema), stream)
    return len(buffer)


def _with_json(row: Row, nested: Iterable[str]) -> dict[str, Any]:
    return {**row, **{name: json.dumps(row[name]) for name in nested}}


def _valid_unicode(value: Any) -> Any:
    """Parquet strings are UTF-8: a lone surrogate becomes the replacement character."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, dict):
        return {key: _valid_unicode(item) for key, item in value.items()}
    return [_valid_unicode(item) for item in value] if isinstance(value, list) else value


WRITERS: dict[str, Callable[[Iterable[Row], IO[bytes], Layout], int]] = {
    "jsonl": _jsonl,
    "csv": _csv,
    "parquet": _parquet,
}
