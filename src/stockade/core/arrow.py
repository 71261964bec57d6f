"""Values in Apache Arrow's layout as Python values, within limits."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from typing import Any

from stockade.core.errors import DataError
from stockade.core.limits import LONGEST_CELL

BATCH_ROWS = 2048
"""Rows that are converted at a time."""


def cells_of(batches: Iterable[Any], wanted: Sequence[str], name: str) -> Iterator[Sequence[object]]:
    """The cells of record batches or tables, row by row, as Python values.

    Parameters
    ----------
    batches
        Record batches, or tables.
    wanted
        The columns, in the order of the cells.
    name
        What errors call the data.
    """
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


def class_names(schema: Any) -> dict[str, tuple[str, ...]]:
    """Names of integer labels by column, from the metadata that the `datasets` package writes; often there are none.

    Parameters
    ----------
    schema
        A `pyarrow.Schema`.
    """
    try:
        features = json.loads((schema.metadata or {})[b"huggingface"])["info"]["features"]
        return {column: tuple(map(str, kind["names"])) for column, kind in features.items() if "names" in kind}
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
        return {}


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
