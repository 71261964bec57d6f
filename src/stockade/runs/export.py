"""A run's rows as JSON lines, CSV or Parquet."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Any

from stockade.core.errors import OptionError, unknown_name
from stockade.core.records import Record

_NESTED = ("original_scores", "adversarial_scores", "edits")


def as_row(record: Record) -> dict[str, Any]:
    """A record as plain values, in the order of the documented fields."""
    row = {field.name: getattr(record, field.name) for field in dataclasses.fields(record)}
    row["edits"] = [dataclasses.asdict(edit) for edit in record.edits]
    for name in ("original_scores", "adversarial_scores"):
        row[name] = None if row[name] is None else list(row[name])
    return row


def export(records: Iterable[Record], format: str, stream: IO[bytes]) -> int:
    """Write the records to a binary stream and say how many there were."""
    writer = WRITERS.get(format)
    if writer is None:
        raise unknown_name("export format", format, WRITERS)
    return writer((as_row(record) for record in records), stream)


def export_to(records: Iterable[Record], format: str, path: Path) -> int:
    """Write the records to a file that appears only when it is complete."""
    temporary = path.with_name(f".{path.name}.part")
    try:
        with temporary.open("wb") as stream:
            count = export(records, format, stream)
        temporary.replace(path)
    except OSError as error:
        raise OptionError(f"{path} cannot be written ({error.strerror or error}).") from None
    finally:
        temporary.unlink(missing_ok=True)
    return count


def _jsonl(rows: Iterator[dict[str, Any]], stream: IO[bytes]) -> int:
    count = 0
    for row in rows:
        stream.write(json.dumps(row, ensure_ascii=not _encodable(row)).encode() + b"\n")
        count += 1
    return count


def _encodable(row: dict[str, Any]) -> bool:
    """Whether the texts can be written as UTF-8; lone surrogates cannot, they are written as escapes."""
    try:
        json.dumps(row, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _csv(rows: Iterator[dict[str, Any]], stream: IO[bytes]) -> int:
    text = io.TextIOWrapper(stream, encoding="utf-8", errors="replace", newline="", write_through=True)
    writer = csv.DictWriter(text, [field.name for field in dataclasses.fields(Record)])
    writer.writeheader()
    count = 0
    for row in rows:
        writer.writerow({**row, **{name: json.dumps(row[name]) for name in _NESTED}})
        count += 1
    text.detach()
    return count


def _parquet(rows: Iterator[dict[str, Any]], stream: IO[bytes]) -> int:
    import pyarrow as pa
    import pyarrow.parquet as pq

    scores = pa.list_(pa.float64())
    edit = pa.struct([("op", pa.string()), ("index", pa.int64()), ("before", pa.string()), ("after", pa.string())])
    kinds = {"edits": pa.list_(edit)} | {name: pa.int64() for name in ("queries", "rows", "pushed_out")}
    kinds |= {"original_scores": scores, "adversarial_scores": scores}
    kinds |= {name: pa.float64() for name in ("perturbed_percent", "similarity", "hit_rate", "flip_share")}
    schema = pa.schema([(field.name, kinds.get(field.name, pa.string())) for field in dataclasses.fields(Record)])
    buffer = [_valid_unicode(row) for row in rows]
    pq.write_table(pa.Table.from_pylist(buffer, schema=schema), stream)
    return len(buffer)


def _valid_unicode(value: Any) -> Any:
    """Parquet strings are UTF-8: a lone surrogate becomes the replacement character."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, dict):
        return {key: _valid_unicode(item) for key, item in value.items()}
    return [_valid_unicode(item) for item in value] if isinstance(value, list) else value


WRITERS: dict[str, Callable[[Iterator[dict[str, Any]], IO[bytes]], int]] = {
    "jsonl": _jsonl,
    "csv": _csv,
    "parquet": _parquet,
}
