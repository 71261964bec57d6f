"""Adversarial texts that exist already: our own exports, files with original and changed texts, or any labelled data.

In a file with a column of changed texts the successes are taken, where a column says which those are, with the true
label. Double brackets around changed words, as some tools write them, are removed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from stockade.core.errors import DataError
from stockade.datasets.columns import LABEL_NAMES
from stockade.datasets.files import open_file
from stockade.datasets.load import load_data
from stockade.datasets.source import DataSource, Table, is_missing

CHANGED_NAMES = ("adversarial", "adversarialtext", "perturbedtext", "perturbed", "advtext", "attackedtext")
_STATUS_NAMES = ("status", "resulttype", "result")
_SUCCESSES = ("success", "successful")
_TRUE_LABEL_NAMES = ("groundtruthoutput", "groundtruth", "truelabel", "goldlabel", *LABEL_NAMES)
_BRACKETS = re.compile(r"\[\[(.*?)\]\]")


def load_premade(given: object, named: Mapping[str, str | None] | None = None) -> DataSource:
    """The adversarial texts behind a reference, with their true labels.

    `named` are the columns that the user has named for the data (`text_column` …); a file that has them too is read by
    them where its own names do not say what is what.
    """
    if not isinstance(given, str | Path) or str(given).startswith(("builtin:", "hf:")):
        return load_data(given)
    table = open_file(Path(given))
    own: dict[str, Any] = {option: column for option, column in (named or {}).items() if column in table.columns}
    changed = _find(table, CHANGED_NAMES)
    if changed is None:
        return load_data(given, **own)
    label = _find(table, _TRUE_LABEL_NAMES) or own.get("label_column")
    if label is None:
        raise DataError(
            f'{table.name} has changed texts in "{changed}" but no true labels (found: {", ".join(table.columns)}), '
            "expected a column such as label or ground_truth_output. Add it, or rename the one that has them."
        )
    rows = list(_rows(table, changed, label))
    if not rows:
        raise DataError(
            f'{table.name} has no text in "{changed}" that is said to be a success, expected at least one. '
            "Give another --premade file."
        )
    return load_data(rows)


def _rows(table: Table, changed: str, label: str) -> Iterator[tuple[object, object]]:
    status, premise = _find(table, _STATUS_NAMES), _find(table, ("premise",))
    wanted = (changed, label, *(column for column in (status, premise) if column))
    for cells in table.cells(wanted):
        text, true_label, *others = cells
        if is_missing(text) or (status and str(others[0]).strip().casefold() not in _SUCCESSES):
            continue
        plain = _BRACKETS.sub(r"\1", str(text))
        before = others[-1] if premise else None
        yield (plain if is_missing(before) else (str(before), plain)), true_label


def _find(table: Table, names: Sequence[str]) -> str | None:
    by_key = {re.sub(r"[\s_\-]+", "", column).casefold(): column for column in reversed(table.columns)}
    return next((by_key[name] for name in names if name in by_key), None)
