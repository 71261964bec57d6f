"""JSON lines, streamed: one object per line, whose keys are the columns."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from stockade.core.errors import DataError
from stockade.datasets.streams import DataFile
from stockade.datasets.wording import check_columns, quote

_EXPECTED = 'Expected one object per line, such as {"text": "a fine film", "label": 1}.'


@dataclass(frozen=True, slots=True)
class JsonLinesTable:
    """A json lines file; the first object says which columns there are. Open one with `open_json_lines`."""

    file: DataFile
    columns: tuple[str, ...]
    has_header: bool = False
    skip_bad_rows: bool = False
    """Whether a line that is no object is a row without cells, not an error."""

    @property
    def name(self) -> str:
        return self.file.name

    def cells(self, wanted: tuple[str, ...]) -> Iterator[Sequence[object]]:
        decoder = json.JSONDecoder()
        for number, line in enumerate(self.file.lines(), start=1):
            if line.isspace():
                continue
            try:
                record = _decode(decoder, line)
            except (ValueError, RecursionError) as error:
                if not self.skip_bad_rows:
                    raise _not_json(self.file, number, error) from None
                record = {}
            if type(record) is not dict:
                if not self.skip_bad_rows:
                    raise _not_an_object(self.file, number, record)
                record = {}
            yield tuple(map(record.get, wanted))

    def place(self, number: int) -> str:
        return f"row {number} (line {next(islice(_filled(self.file), number, None))[0]})"

    def label_names(self, column: str) -> None:
        return None

    def sha256(self) -> str:
        return self.file.sha256()


def open_json_lines(file: DataFile, *, skip_bad_rows: bool = False) -> JsonLinesTable:
    """Read the first object of a file for its columns.

    Parameters
    ----------
    file
        The file.
    skip_bad_rows
        Whether a line that is no object is a row without cells, not an error.
    """
    first = next(_filled(file), None)
    if first is None:
        raise DataError(f"{file.name} is empty. {_EXPECTED}")
    number, line = first
    try:
        pairs = json.loads(line, object_pairs_hook=_Pairs)
    except (ValueError, RecursionError) as error:
        raise _not_json(file, number, error) from None
    if not isinstance(pairs, _Pairs):
        raise _not_an_object(file, number, pairs)
    columns = check_columns(file.name, tuple(key for key, _ in pairs))
    return JsonLinesTable(file, columns, skip_bad_rows=skip_bad_rows)


class _Pairs(list[tuple[str, object]]):
    """An object with its keys as written, so that a key that stands there twice is seen."""


def _decode(decoder: json.JSONDecoder, line: str) -> Any:
    """The value on a line. One that begins with its object, as nearly all do, needs no search for blanks around it."""
    if line[0] == "{":
        value, end = decoder.raw_decode(line)
        if end == len(line) or line[end:].isspace():
            return value
    return decoder.decode(line)


def _filled(file: DataFile) -> Iterator[tuple[int, str]]:
    return ((number, line) for number, line in enumerate(file.lines(), start=1) if not line.isspace())


def _not_json(file: DataFile, number: int, error: Exception) -> DataError:
    where = f" at character {error.pos + 1}" if isinstance(error, json.JSONDecodeError) else ""
    reason = error.msg if isinstance(error, json.JSONDecodeError) else "nested too deeply or a number too long"
    return DataError(f"{file.name} line {number} is not JSON ({reason[:1].lower() + reason[1:]}{where}). {_EXPECTED}")


def _not_an_object(file: DataFile, number: int, value: object) -> DataError:
    kind = "a list" if isinstance(value, list) else quote(value)
    hint = " Write the objects of the list on lines of their own." if isinstance(value, list) else ""
    return DataError(f"{file.name} line {number} is {kind}, not an object. {_EXPECTED}{hint}")
