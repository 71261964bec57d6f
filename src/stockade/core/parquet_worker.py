"""What the process that reads a parquet file runs; `parquet.py` starts it.

It imports pyarrow and little else, because it is started for every reading. The request comes as JSON from standard
input, the answer goes as lines of JSON to standard output:

    {"columns": […], "class_names": {…}}    the schema, when no columns are asked for
    {"rows": [[…], …]}                      some rows of the columns that are
    {"end": true}                           the data are complete
    {"refused": "…"}                        the sentence of an error
    {"broken": "…"}                         the reason why the file cannot be read
"""

from __future__ import annotations

import json
import os
import resource
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any

from stockade.core.arrow import BATCH_ROWS, cells_of, class_names
from stockade.core.errors import DataError
from stockade.core.limits import LARGEST_CHUNK, LARGEST_READER, MOST_UNPACKED

REPR = "$repr"
"""The key of a value that JSON has not got: what Python writes for it."""
_PAGE_BUFFER = 1 << 20
"""Bytes of the buffer through which columns are read, so that a file of one huge row group is streamed too."""
_MESSAGE = 1 << 18
"""Characters of texts after which a message ends, so that neither process holds many more."""
_MESSAGE_ROWS = 1024
_LONGEST_REASON = 1000


def main() -> None:
    """Answer the request on standard input."""
    limit_memory()
    with os.fdopen(os.dup(1), "wb") as stream, suppress(BrokenPipeError):  # nobody wants the rest
        os.dup2(2, 1)  # what a library prints is no answer
        request = json.load(sys.stdin.buffer)
        for message in answers(request["path"], request["name"], request["columns"]):
            stream.write(message.encode("utf-8", "surrogatepass") + b"\n")
            stream.flush()
    os._exit(0)  # the libraries take longer to clean up than a small file takes to read


def answers(path: str, name: str, columns: Sequence[str] | None) -> Iterator[str]:
    """The messages that answer a request.

    Parameters
    ----------
    path
        The file.
    name
        What errors call it.
    columns
        The columns to read; None asks for the schema.
    """
    try:
        parquet = import_module("pyarrow.parquet")
        with parquet.ParquetFile(path, buffer_size=_PAGE_BUFFER, pre_buffer=False) as file:
            if columns is None:
                schema = file.schema_arrow
                yield _encode({"columns": schema.names, "class_names": class_names(schema)})
            else:
                rows = batch_rows(file.metadata, columns, name)
                batches = file.iter_batches(batch_size=rows, columns=list(columns), use_threads=False)
                for part in _parts(cells_of(batches, columns, name)):
                    yield _encode({"rows": part})
        yield _encode({"end": True})
    except DataError as error:
        yield _encode({"refused": str(error)})
    except MemoryError:
        yield _encode(
            {
                "refused": f"{name} needs more than {LARGEST_READER:,} bytes of memory to be read. Check that this is "
                "the right file, or write it with smaller row groups."
            }
        )
    except Exception as error:  # whatever the content of the file makes pyarrow raise
        yield _encode({"broken": (str(error).strip() or type(error).__name__)[:_LONGEST_REASON]})


def limit_memory() -> None:
    """Let this process have no more memory than a file may need, and leave no image of it when it aborts."""
    for kind, most in ((resource.RLIMIT_AS, LARGEST_READER), (resource.RLIMIT_CORE, 0)):
        with suppress(ValueError, OSError):  # a system without such limits
            _, hard = resource.getrlimit(kind)
            resource.setrlimit(kind, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def batch_rows(metadata: Any, wanted: Sequence[str], name: str) -> int:
    """How many rows to read at a time; a file that unpacks to far more than it is refused.

    The sizes are those that the file states. What it does not state is seen when a batch is there.

    Parameters
    ----------
    metadata
        A `pyarrow.parquet.FileMetaData`.
    wanted
        The columns to read.
    name
        What errors call the file.
    """
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
    return max(1, min(BATCH_ROWS, LARGEST_CHUNK // int(widest)))


def _dictionary_size(column: Any) -> int:
    """The packed bytes of a column's dictionary: any of its rows may be the longest entry."""
    if not column.has_dictionary_page or column.dictionary_page_offset is None:
        return 0
    return max(0, int(column.data_page_offset) - int(column.dictionary_page_offset))


def _parts(rows: Iterable[Sequence[object]]) -> Iterator[list[Sequence[object]]]:
    """The rows in lists that are short enough for a message."""
    part: list[Sequence[object]] = []
    size = 0
    for row in rows:
        part.append(row)
        size += sum(len(cell) for cell in row if isinstance(cell, str))
        if size >= _MESSAGE or len(part) == _MESSAGE_ROWS:
            yield part
            part, size = [], 0
    if part:
        yield part


def _encode(message: Mapping[str, object]) -> str:
    return json.dumps(message, ensure_ascii=False, separators=(",", ":"), default=_shown)


def _shown(value: object) -> dict[str, str]:
    """A value that JSON has not got: what Python writes for it, which is all that anybody does with it."""
    return {REPR: repr(value)[:_LONGEST_REASON]}
