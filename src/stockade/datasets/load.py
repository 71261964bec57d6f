"""DATA references: whatever a user calls data becomes a `DataSource`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from stockade.core.errors import DataError, OptionError
from stockade.datasets.arrow import ArrowTable
from stockade.datasets.builtin import BUILTIN_DATA, builtin_source
from stockade.datasets.columns import choose_columns
from stockade.datasets.files import open_file
from stockade.datasets.hub import HubTable, open_hub
from stockade.datasets.memory import FrameTable, RecordsTable, open_items
from stockade.datasets.reading import PLAIN, Reading
from stockade.datasets.source import DataSource, Table, TableSource
from stockade.datasets.wording import clip, listing

ONE_TEXT = "text:"
"""How a reference begins that is a text itself."""
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
    encoding: str | None = None,
    delimiter: str | None = None,
    skip_bad_rows: bool = False,
    empty_texts: bool = False,
    needs_labels: bool = True,
) -> DataSource:
    """Open labelled texts: a file, a data set of the hub, built-in data or Python objects.

    Nothing but the beginning of a file is read here: `prepare_examples` checks every row.

    Parameters
    ----------
    reference : str, Path or object
        A .csv, .tsv, .jsonl or .parquet file, `hf:NAME[:SPLIT]`, `builtin:reviews[:SPLIT]`, `text:SENTENCE` (one text
        without a label), a list of (text, label), a list of dictionaries, a DataFrame, a pyarrow Table, a Dataset, or
        a `DataSource`.
    text_column, label_column : str, optional
        The columns to read; those that are not named are guessed by their names and contents.
    premise_column : str, optional
        The column of the premises of a pair task; "" says that there is none.
    encoding : str, optional
        Of a text file; UTF-8 by default.
    delimiter : str, optional
        What stands between the cells of a csv or tsv file, such as ";" or "tab"; by default what its extension says.
    skip_bad_rows : bool
        Leave out rows that cannot be read, and count them, instead of ending with the first.
    empty_texts : bool
        Accept texts of nothing but blanks, which are an error otherwise.
    needs_labels : bool
        Whether a table must have a column of labels.

    Returns
    -------
    DataSource
    """
    options = {"text": text_column, "label": label_column, "premise": premise_column}
    reading = Reading(encoding, delimiter, skip_bad_rows)
    if isinstance(reference, DataSource) or (isinstance(reference, str) and reference.startswith("builtin:")):
        if any(options.values()):
            raise OptionError(
                f"{clip(str(getattr(reference, 'name', reference)))} has no columns to choose from. "
                "Leave out --text-column, --label-column and --premise-column."
            )
        reading.refuse(clip(str(getattr(reference, "name", reference))), "encoding", "delimiter")
        return (
            reference if isinstance(reference, DataSource) else builtin_source(str(reference).removeprefix("builtin:"))
        )
    table = open_table(reference, needs_labels, reading)

    def preview(column: str) -> list[object]:
        return [cells[0] for cells in islice(table.cells((column,)), _PREVIEW_ROWS)]

    columns = choose_columns(
        table.name, table.columns, preview, has_header=table.has_header, needs_labels=needs_labels, **options
    )
    if next(iter(table.cells(columns.wanted)), None) is None:
        raise DataError(
            f"{table.name} has columns but no rows (found: {listing(table.columns)}), expected one row per text. "
            "Add some."
        )
    return TableSource(table, columns, empty_texts=empty_texts, reading=reading)


def open_table(reference: object, needs_labels: bool, reading: Reading = PLAIN) -> Table:
    """The table behind a reference or in a Python object, before anything is known of its columns."""
    if isinstance(reference, str):
        return _named_table(reference, needs_labels, reading)
    if isinstance(reference, os.PathLike):
        return open_file(Path(os.fsdecode(reference)), needs_labels, reading)
    reading.refuse("what was given", "encoding", "delimiter")
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


def _named_table(reference: str, needs_labels: bool, reading: Reading) -> Table:
    if reference.startswith(ONE_TEXT):
        reading.refuse(clip(reference), "encoding", "delimiter")
        return _one_text(reference.removeprefix(ONE_TEXT), needs_labels)
    if reference.startswith("hf:"):
        reading.refuse(reference, "encoding", "delimiter")
        return open_hub(reference.removeprefix("hf:"))
    if not reference.strip():
        raise DataError(f"The name of the data is empty, expected {_ACCEPTED}. Give one.")
    if reference.startswith(("http://", "https://")):
        raise DataError(f"{clip(reference)} is an address, expected {_ACCEPTED}. Download it and give the file.")
    if reference in BUILTIN_DATA and not Path(reference).exists():
        raise DataError(f'There is no file "{reference}". The built-in data set is named builtin:{reference}.')
    return open_file(Path(reference), needs_labels, reading)


def _one_text(text: str, needs_labels: bool) -> Table:
    if not text.strip():
        raise DataError("The text is empty, expected a sentence. Give one, as in text:A fine film.")
    if needs_labels:
        raise DataError(
            f"{clip(ONE_TEXT + text)} has no label, expected one. Say that there is none with --unlabelled, or give "
            "data with labels."
        )
    return RecordsTable([{"text": text}], name="the text")
