"""Parallel data: source sentences and their translations, from whatever labelled texts can be read from.

Which column is the source and which the target, in order:

1. columns named by the user (`--source-column`, `--target-column`);
2. a pair of `PAIR_NAMES`, both present;
3. the only two columns named by a language (`en`, `de`, `German` …): the first is the source;
4. the only two columns there are.

Everything else is an error that lists the columns and the option to name one.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stockade.core.errors import DataError, OptionError
from stockade.datasets.columns import Columns, column_key
from stockade.datasets.load import open_table
from stockade.datasets.reading import PLAIN, Reading
from stockade.datasets.source import Row, Skipped, Table, TableSource
from stockade.datasets.wording import listing, quote

PAIR_NAMES = (
    ("source", "target"),
    ("src", "tgt"),
    ("src", "trg"),
    ("sourcetext", "targettext"),
    ("sourcesentence", "targetsentence"),
    ("source", "translation"),
    ("sentence", "translation"),
    ("text", "translation"),
    ("input", "output"),
)
# fmt: off
LANGUAGES = frozenset((
    "ar", "bg", "cs", "da", "de", "el", "en", "es", "et", "fa", "fi", "fr", "he", "hi", "hr", "hu", "is", "it",
    "ja", "ko", "lt", "lv", "nl", "pl", "pt", "ro", "ru", "sk", "sl", "sr", "sv", "th", "tr", "uk", "vi", "zh",
    "arabic", "chinese", "czech", "danish", "dutch", "english", "finnish", "french", "german", "greek", "hebrew",
    "hindi", "hungarian", "italian", "japanese", "korean", "norwegian", "polish", "portuguese", "romanian", "russian",
    "spanish", "swedish", "turkish", "ukrainian", "vietnamese", "deutsch", "englisch",
))
"""Codes and names of languages, without `id` and `no`, which are more often something else."""
# fmt: on
_SOURCE, _TARGET = "--source-column", "--target-column"


@dataclass(frozen=True, slots=True)
class SentencePair:
    """A source sentence and its translation; `id` is the row's number in the data, counted from 0."""

    id: str
    source: str
    target: str


class ParallelSource:
    """Parallel sentences that can be read again and again.

    It is a `DataSource` too: its rows have the target as their text and the source as their premise.
    """

    label_names = None

    def __init__(self, table: Table, source: str, target: str, reading: Reading = PLAIN) -> None:
        self.source_column, self.target_column = source, target
        columns = Columns(target, "", source)
        self._rows = TableSource(table, columns, text_option=_TARGET, premise_option=_SOURCE, reading=reading)

    @property
    def name(self) -> str:
        return self._rows.name

    def rows(self) -> Iterator[Row]:
        """Every row, checked: two texts, or an error that names the row."""
        return self._rows.rows()

    @property
    def skipped(self) -> Skipped:
        """The rows that the last pass over all rows has left out."""
        return self._rows.skipped

    def pairs(self) -> Iterator[SentencePair]:
        """Every pair of sentences, checked like `rows`."""
        return (SentencePair(row.id, row.premise or "", row.text) for row in self.rows())

    def fingerprint(self) -> str:
        """A hash of the file's bytes, or of every row where there is no file, and of the choice of columns."""
        return self._rows.fingerprint()


def load_parallel(
    reference: object,
    *,
    source_column: str | None = None,
    target_column: str | None = None,
    encoding: str | None = None,
    delimiter: str | None = None,
    skip_bad_rows: bool = False,
) -> ParallelSource:
    """Open parallel sentences: a file, a data set of the hub, or Python objects.

    Parameters
    ----------
    reference : str, Path or object
        A .csv, .tsv, .jsonl or .parquet file, `hf:NAME[:SPLIT]`, a list of (source, target), a list of dictionaries, a
        DataFrame, a pyarrow Table, a Dataset, or a `ParallelSource`.
    source_column, target_column : str, optional
        The columns to read; those that are not named are guessed by their names.
    encoding, delimiter, skip_bad_rows : optional
        How a text file is read, as for `load_data`.
    """
    reading = Reading(encoding, delimiter, skip_bad_rows)
    if isinstance(reference, ParallelSource):
        if source_column is not None or target_column is not None:
            raise OptionError(f"{reference.name} has its columns chosen already. Leave out {_SOURCE} and {_TARGET}.")
        return reference
    if isinstance(reference, str) and reference.startswith("builtin:"):
        raise DataError(
            f"{reference} has texts with labels, expected source sentences with translations: give a file of pairs."
        )
    table = open_table(_as_records(reference), needs_labels=False, reading=reading)
    source, target = _choose(table.name, table.columns, source_column, target_column)
    parallel = ParallelSource(table, source, target, reading)
    if next(iter(table.cells((source, target))), None) is None:
        raise DataError(
            f"{table.name} has columns but no rows (found: {listing(table.columns)}), expected one row per pair of "
            "sentences. Add some."
        )
    return parallel


def _as_records(reference: object) -> object:
    """A list of (source, target) as a list of dictionaries; anything else as it is."""
    if not isinstance(reference, list | tuple) or not reference or not isinstance(reference[0], list | tuple):
        return reference
    records = []
    for number, item in enumerate(reference):
        if not isinstance(item, list | tuple) or len(item) != 2:
            raise DataError(f"the list row {number} (counted from 0) is {quote(item)}, expected (source, target).")
        records.append({"source": item[0], "target": item[1]})
    return records


def _choose(name: str, columns: Sequence[str], source: str | None, target: str | None) -> tuple[str, str]:
    """The columns of source and target."""
    source = None if source is None else _named(name, columns, source, _SOURCE)
    target = None if target is None else _named(name, columns, target, _TARGET)
    if source is not None and source == target:
        raise OptionError(
            f'The column "{source}" of {name} is named as source and as target (found: {listing(columns)}). Name a '
            "column of its own for each."
        )
    for first, second in _candidates(columns):
        if source in (None, first) and target in (None, second):
            return first, second
        if source is None and target == first:  # the other direction of two languages
            return second, first
        if target is None and source == second:
            return second, first
    if source is not None and target is not None:
        return source, target
    missing, option = ("source", _SOURCE) if source is None else ("target", _TARGET)
    raise DataError(
        f'{name} has no column "{missing}" (found: {listing(columns)}). Name it with {option} NAME, the other with '
        f"{_TARGET if option == _SOURCE else _SOURCE}."
    )


def _candidates(columns: Sequence[str]) -> Iterator[tuple[str, str]]:
    by_key = {column_key(column): column for column in reversed(columns)}
    for first, second in PAIR_NAMES:
        if first in by_key and second in by_key:
            yield by_key[first], by_key[second]
    languages = [column for column in columns if column_key(column) in LANGUAGES]
    for two in (languages, [column for column in columns if column]):
        if len(two) == 2:
            yield two[0], two[1]


def _named(name: str, columns: Sequence[str], wanted: str, option: str) -> str:
    """The column the user named: to the letter, or the only one that differs in case and blanks."""
    alike = [column for column in columns if column_key(column) == column_key(wanted)]
    if wanted in columns or len(alike) == 1:
        return wanted if wanted in columns else alike[0]
    near = difflib.get_close_matches(wanted, columns, n=1)
    hint = near[0] if near else "NAME"
    raise DataError(f'{name} has no column "{wanted}" (found: {listing(columns)}). Name it with {option} {hint}.')
