"""DATA references: whatever a user calls data becomes a `DataSource`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from stockade.core.errors import DataError, OptionError, unknown_name
from stockade.datasets.arrow import ArrowTable
from stockade.datasets.builtin import REVIEW_LABELS, SPLITS, Review, reviews
from stockade.datasets.columns import choose_columns
from stockade.datasets.files import open_file
from stockade.datasets.hub import HubTable, open_hub
from stockade.datasets.memory import FrameTable, open_items
from stockade.datasets.source import DataSource, Row
from stockade.datasets.table import Table, TableSource, hash_parts
from stockade.datasets.wording import clip

BUILTIN_DATA = ("reviews",)
"""What may follow `builtin:` where data is expected."""

_PREVIEW_ROWS = 200
_ACCEPTED = (
    "a path, hf:NAME[:SPLIT], builtin:reviews, a list of (text, label), a list of dictionaries, a DataFrame, a "
    "pyarrow Table or a Dataset"
)


def load_data(
    reference: object,
    *,
    text_column: str | None = None,
    label_column: str | None = None,
    premise_column: str | None = None,
    empty_texts: bool = False,
    needs_labels: bool = True,
) -> DataSource:
    """The data behind a reference: a file, `hf:…`, `builtin:…`, or Python objects.

    Columns that are not named are guessed (see `columns.py`); `premise_column=""` says that there is no premise.
    `empty_texts` lets texts of nothing but blanks be, which are an error otherwise; without `needs_labels` a table need
    not have a column of labels.
    Nothing but the beginning of a file is read here: `prepare_examples` checks every row.
    """
    options = {"text": text_column, "label": label_column, "premise": premise_column}
    if isinstance(reference, DataSource) or (isinstance(reference, str) and reference.startswith("builtin:")):
        if any(options.values()):
            raise OptionError(
                f"{clip(str(getattr(reference, 'name', reference)))} has no columns to choose from. "
                "Leave out --text-column, --label-column and --premise-column."
            )
        return reference if isinstance(reference, DataSource) else _builtin(str(reference).removeprefix("builtin:"))
    table = _table(reference, needs_labels)

    def preview(column: str) -> list[object]:
        return [cells[0] for cells in islice(table.cells((column,)), _PREVIEW_ROWS)]

    columns = choose_columns(
        table.name, table.columns, preview, has_header=table.has_header, needs_labels=needs_labels, **options
    )
    if next(iter(table.cells(columns.wanted)), None) is None:
        raise DataError(
            f"{table.name} has columns but no rows (found: {', '.join(table.columns)}), expected one row per text. "
            "Add some."
        )
    return TableSource(table, columns, empty_texts=empty_texts)


def _table(reference: object, needs_labels: bool) -> Table:
    if isinstance(reference, str):
        return _named_table(reference, needs_labels)
    if isinstance(reference, os.PathLike):
        return open_file(Path(os.fsdecode(reference)), needs_labels)
    if isinstance(reference, list | tuple):
        return open_items(reference, needs_labels)
    if isinstance(reference, dict):
        splits = [str(key) for key, value in reference.items() if hasattr(value, "column_names")]
        if splits:
            raise DataError(
                f'A DatasetDict holds several splits (found: {", ".join(splits)}). Give one, as in data["{splits[0]}"].'
            )
    if hasattr(reference, "features") and hasattr(reference, "column_names"):
        return HubTable(reference)
    if hasattr(reference, "to_batches") and hasattr(reference, "column_names"):
        return ArrowTable(reference)
    if hasattr(reference, "to_dict") and hasattr(reference, "columns"):
        return FrameTable(reference)
    hint = " Wrap it in list(…): data is read more than once." if isinstance(reference, Iterator) else ""
    raise DataError(
        f"Data cannot be read from an object of type {type(reference).__name__}, expected {_ACCEPTED}.{hint}"
    )


def _named_table(reference: str, needs_labels: bool) -> Table:
    if reference.startswith("hf:"):
        return open_hub(reference.removeprefix("hf:"))
    if not reference.strip():
        raise DataError(f"The name of the data is empty, expected {_ACCEPTED}. Give one.")
    if reference.startswith(("http://", "https://")):
        raise DataError(f"{clip(reference)} is an address, expected {_ACCEPTED}. Download it and give the file.")
    if reference in BUILTIN_DATA and not Path(reference).exists():
        raise DataError(f'There is no file "{reference}". The built-in data set is named builtin:{reference}.')
    return open_file(Path(reference), needs_labels)


@dataclass(frozen=True, slots=True)
class _Reviews:
    """The built-in reviews as a source."""

    split: str
    found: tuple[Review, ...]
    label_names: tuple[str, ...] = REVIEW_LABELS

    @property
    def name(self) -> str:
        return f"builtin:reviews:{self.split}"

    def rows(self) -> Iterator[Row]:
        return (Row(review.id, review.text, None, review.label) for review in self.found)

    def fingerprint(self) -> str:
        return hash_parts(*(part for review in self.found for part in (review.id, review.text, str(review.label))))


def _builtin(reference: str) -> _Reviews:
    name, _, split = reference.partition(":")
    if name not in BUILTIN_DATA:
        raise unknown_name("built-in data set", name, BUILTIN_DATA)
    split = split or "test"
    if split not in SPLITS:
        raise unknown_name("split of builtin:reviews", split, SPLITS)
    return _Reviews(split, reviews(split))
