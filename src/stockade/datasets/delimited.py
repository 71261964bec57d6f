"""csv and tsv, streamed.

A csv file is read as RFC 4180 has it: commas, double quotes around cells that need them, quotes inside doubled.
Whatever does not fit is an error with its line, because a stray quote otherwise swallows rows in silence.

A tsv file comes in two kinds: with the same quoting, as spreadsheets and data frames write it, or with quotes that
are just characters, as most corpora have it. It is read as quoted if the whole file makes sense that way, else as
plain.

In csv files of our own making cells that a spreadsheet would run begin with an apostrophe; it is taken off again.
"""

from __future__ import annotations

import csv
import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from operator import itemgetter

from stockade.core.errors import DataError
from stockade.core.limits import LONGEST_CELL
from stockade.core.records import Record
from stockade.core.sanitize import csv_text
from stockade.datasets.streams import DataFile
from stockade.datasets.wording import check_columns, quote

_RECORD = tuple(field.name for field in dataclasses.fields(Record))
_OLDER_RECORD = _RECORD[: _RECORD.index("hits")]
"""Before both rules of success for randomised models were recorded."""
_OUR_COLUMNS = (_RECORD, _OLDER_RECORD, ("id", "text", "label", "original", "changed"))
"""Headers of the csv files that `stockade export` and `stockade rules apply` write for spreadsheets."""
_BEFORE_OURS = (0, 1, 4)
"""So many columns may stand before them: `run` in a study, model, defense, view and seed in an evaluation."""
_STRAY = "expected after"
"""What Python's csv module says of letters behind a closing quote: the next line can be read again."""


@dataclass(frozen=True, slots=True)
class DelimitedTable:
    """A csv or tsv file with a header line; open one with `open_delimited`."""

    file: DataFile
    columns: tuple[str, ...]
    delimiter: str
    quoted: bool
    has_header: bool = True
    skip_bad_rows: bool = False
    """Whether a row that cannot be read is a row without cells, not an error."""

    @property
    def name(self) -> str:
        return self.file.name

    def cells(self, wanted: tuple[str, ...]) -> Iterator[Sequence[object]]:
        pick = itemgetter(*(self.columns.index(column) for column in wanted))
        width = len(self.columns)
        missing = (None,) * len(wanted)
        ours = any(self.columns[start:] in _OUR_COLUMNS for start in _BEFORE_OURS)
        for number, (line, cells) in enumerate(self._body()):
            if len(cells) != width:
                if not self.skip_bad_rows:
                    raise self._wrong_width(number, line, cells)
                yield missing
                continue
            if ours:
                cells = [csv_text(cell) for cell in cells]
            yield pick(cells) if len(wanted) > 1 else (pick(cells),)

    def place(self, number: int) -> str:
        return f"row {number} (line {next(islice(self._body(), number, None))[0]})"

    def label_names(self, column: str) -> None:
        return None

    def sha256(self) -> str:
        return self.file.sha256()

    def _body(self) -> Iterator[tuple[int, list[str]]]:
        return islice(_records(self.file, self.delimiter, self.quoted, self.skip_bad_rows), 1, None)

    def _wrong_width(self, number: int, line: int, cells: list[str]) -> DataError:
        many = "many" if len(cells) > len(self.columns) else "few"
        hint = (
            f"Put double quotes around cells that contain {_name_of(self.delimiter)}."
            if many == "many" and (self.quoted or self.delimiter == ",")
            else f"Check the {_name_of(self.delimiter)}s of that line."
        )
        return DataError(
            f"{self.name} row {number} (line {line}) has too {many} cells (found: {len(cells)}, expected: "
            f"{len(self.columns)} as in the header). {hint}"
        )


def open_delimited(
    file: DataFile, delimiter: str, needs_labels: bool = True, *, is_csv: bool = True, skip_bad_rows: bool = False
) -> DelimitedTable:
    """Read the header of a csv or tsv file and see how it is quoted.

    Parameters
    ----------
    file, delimiter
        The file, and what stands between its cells.
    needs_labels
        Whether there must be a second column.
    is_csv
        Whether double quotes always mean what they mean in csv; in a tsv file they may be characters.
    skip_bad_rows
        Whether a row that cannot be read is a row without cells, not an error.
    """
    quoted = is_csv or _makes_sense_quoted(file, delimiter)
    header = next(_records(file, delimiter, quoted), None)
    if header is None:
        raise DataError(
            f"{file.name} is empty, expected a header line and one row per text. Give a file with a line such as: "
            "text,label"
        )
    columns = check_columns(file.name, tuple(cell.strip() for cell in header[1]))
    if any("\0" in column for column in columns):
        raise DataError(f"{file.name} has NUL bytes in its header, which no text should have. Save the file as UTF-8.")
    if needs_labels and len(columns) == 1:
        other = next((mark for mark in (";", "\t", "|", ",") if mark in columns[0]), None)
        hint = f"separate them by {_name_of(delimiter)}s" + (
            f" instead of {_name_of(other)}s, or name the {_name_of(other)} with --delimiter." if other else "."
        )
        raise DataError(
            f"{file.name} has a single column (found: {quote(columns[0])}), expected one for the text and one for "
            f"the label: {hint}"
        )
    return DelimitedTable(file, columns, delimiter, quoted, skip_bad_rows=skip_bad_rows)


def _records(
    file: DataFile, delimiter: str, quoted: bool, skip_bad_rows: bool = False
) -> Iterator[tuple[int, list[str]]]:
    """The line each record begins on and its cells; blank lines are passed over.

    A record that is no csv has no cells if bad rows are skipped. A quote that is never closed is an error all the
    same: it swallows the rest of the file.
    """
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST_CELL))
    reader = csv.reader(
        file.lines(), delimiter=delimiter, strict=True, quoting=csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE
    )
    line = 1
    while True:
        try:
            for cells in reader:
                if len(cells) > 1 or (cells and cells[0].strip()):
                    yield line, cells
                line = reader.line_num + 1
            return
        except csv.Error as error:
            if not skip_bad_rows or _STRAY not in str(error):
                raise DataError(f"{file.name} line {line} {_explain(str(error))}") from None
            yield line, []
            line = reader.line_num + 1


def _explain(message: str) -> str:
    """What Python's csv module means, and what to do about it."""
    if "field limit" in message:
        return (
            f"begins a cell of more than {LONGEST_CELL:,} characters, most likely by a double quote that is never "
            "closed. Close it, or double it if it belongs to the text."
        )
    if "unexpected end of data" in message:
        return "opens a double quote that is never closed. Close it, or double it if it belongs to the text."
    if _STRAY in message:
        return (
            "has letters behind the closing double quote of a cell. "
            'Double the quotes that belong to the text, as in "a ""fine"" film".'
        )
    return f"cannot be read as csv ({message}). Repair that line."


def _makes_sense_quoted(file: DataFile, delimiter: str) -> bool:
    """Whether a file follows csv quoting to its end: no stray quote, equally wide records, no swallowed lines."""
    if not any('"' in line for line in file.lines()):
        return False
    width = None
    try:
        for _, cells in _records(file, delimiter, quoted=True):
            width = width or len(cells)
            if len(cells) != width or any("\n" in cell and delimiter in cell for cell in cells):
                return False
    except DataError:
        return False
    return True


def _name_of(delimiter: str) -> str:
    return {",": "comma", "\t": "tab", ";": "semicolon", "|": "bar"}.get(delimiter, f'"{delimiter}"')
