"""Adversarial texts that exist already: an export of ours, a table with original and changed texts, any labelled data.

Of a table with a column of changed texts the successes are taken, where a column says which those are, with the true
label. A set that keeps failed attempts says in a column of its own which texts those are (`stockade export
--keep-failed`), and is taken whole. Double brackets around changed words, as some tools write them, are removed.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stockade.core.errors import DataError
from stockade.datasets.columns import LABEL_NAMES
from stockade.datasets.load import load_data, open_table
from stockade.datasets.source import DataSource, Row, Table, is_missing
from stockade.datasets.wording import quote
from stockade.workflows.attack.premade import ATTEMPT_COLUMN, ATTEMPTS

CHANGED_NAMES = ("adversarial", "adversarialtext", "perturbedtext", "perturbed", "advtext", "attackedtext")
_STATUS_NAMES = ("status", "resulttype", "result")
_SUCCESSES = ("success", "successful")
_TRUE_LABEL_NAMES = ("groundtruthoutput", "groundtruth", "truelabel", "goldlabel", *LABEL_NAMES)
_BRACKETS = re.compile(r"\[\[(.*?)\]\]")


@dataclass(frozen=True, slots=True)
class PremadeSource:
    """A pre-made set that says of each text whether the attack succeeded on it.

    Parameters
    ----------
    texts
        The texts with their true labels.
    attempts
        Of each text in order: `succeeded` or `failed`.
    """

    texts: DataSource
    attempts: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.texts.name

    @property
    def label_names(self) -> tuple[str, ...] | None:
        return self.texts.label_names

    def rows(self) -> Iterator[Row]:
        """The texts."""
        return self.texts.rows()

    def fingerprint(self) -> str:
        """Of texts, labels and what became of the attempts."""
        return hashlib.sha256("\n".join([self.texts.fingerprint(), *self.attempts]).encode()).hexdigest()


def attempts_of(source: DataSource) -> tuple[str, ...]:
    """What became of the attempt on each text of a set; nothing where the set does not say."""
    return source.attempts if isinstance(source, PremadeSource) else ()


def load_premade(data: object, columns: Mapping[str, str | None] | None = None) -> DataSource:
    """The adversarial texts behind a reference, with their true labels.

    Parameters
    ----------
    data
        What `st.load_data` takes.
    columns
        The columns that the user has named for the data (`text_column` …). A file that has them too is read by them
        where its own names do not say what is what.
    """
    if isinstance(data, DataSource) or (isinstance(data, str) and data.startswith(("builtin:", "hf:"))):
        return load_data(data)
    table = open_table(data, True)
    present: dict[str, Any] = {option: column for option, column in (columns or {}).items() if column in table.columns}
    changed = _find(table, CHANGED_NAMES)
    if changed is None:
        return load_data(data, **present)
    label = _find(table, _TRUE_LABEL_NAMES) or present.get("label_column")
    if label is None:
        raise DataError(
            f'{table.name} has changed texts in "{changed}" but no true labels (found: {", ".join(table.columns)}), '
            "expected a column such as label or ground_truth_output. Add it, or rename the one that has them."
        )
    attempt = _find(table, (_plain(ATTEMPT_COLUMN),))
    rows = list(_successes(table, changed, label) if attempt is None else _attempts(table, changed, label, attempt))
    if not rows:
        wanted = "a success" if attempt is None else "an attempt"
        raise DataError(
            f'{table.name} has no text in "{changed}" that is said to be {wanted}, expected at least one. '
            "Give another --premade file."
        )
    source = load_data([item for item, _ in rows])
    return source if attempt is None else PremadeSource(source, tuple(kind for _, kind in rows))


_Labelled = tuple[tuple[object, object], str]
"""A text, or premise and text, with its true label; and what became of the attempt."""


def _successes(table: Table, changed: str, label: str) -> Iterator[_Labelled]:
    status = _find(table, _STATUS_NAMES)
    for item, says in _labelled(table, changed, label, status):
        if status is None or says.casefold() in _SUCCESSES:
            yield item, ATTEMPTS[0]


def _attempts(table: Table, changed: str, label: str, attempt: str) -> Iterator[_Labelled]:
    for number, (item, says) in enumerate(_labelled(table, changed, label, attempt)):
        if says.casefold() not in ATTEMPTS:
            raise DataError(
                f'{table.name} says {quote(says)} of text {number} in "{attempt}", expected {" or ".join(ATTEMPTS)}. '
                "Export the run again with --keep-failed, or correct the column."
            )
        yield item, says.casefold()


def _labelled(table: Table, changed: str, label: str, says: str | None) -> Iterable[_Labelled]:
    """Every row that has a text, with what the column `says` holds."""
    columns = (says, _find(table, ("premise",)), _find(table, ("adversarialpremise",)))
    for text, true_label, *others in table.cells((changed, label, *filter(None, columns))):
        if is_missing(text):
            continue
        cells = iter(others)
        says_cell, premise, edited = (None if column is None else next(cells) for column in columns)
        before = premise if is_missing(edited) else edited
        plain = _BRACKETS.sub(r"\1", str(text))
        item = (plain if is_missing(before) else (str(before), plain)), true_label
        yield item, str(says_cell).strip() if says else ""


def _find(table: Table, names: Sequence[str]) -> str | None:
    by_key = {_plain(column): column for column in reversed(table.columns)}
    return next((by_key[name] for name in names if name in by_key), None)


def _plain(column: str) -> str:
    return re.sub(r"[\s_\-]+", "", column).casefold()
