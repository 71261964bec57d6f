"""What an attack leaves for others to be asked about: its successes and, if wanted, the texts that it failed on.

A set of successes alone is what the victim gets wrong. One that keeps failed attempts is what an attack makes of the
data as a whole; each text of it says which kind it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from stockade.experiment.export import Layout

ATTEMPTS = ("succeeded", "failed")
"""What became of the attack that made a text."""
ATTEMPT_COLUMN = "attempt_outcome"
"""The column that says so."""


def premade_rows(rows: Iterable[Mapping[str, Any]], *, keep_failed: bool = False) -> Iterator[dict[str, Any]]:
    """The attacked texts among exported rows; those that the model got wrong anyway, and errors, were not attacked.

    A failed attempt stays as the search left the text: with the changes that helped most, or with none.

    Parameters
    ----------
    rows
        Attacked texts, as `stockade export` writes them.
    keep_failed
        Whether texts that the attack failed on are among them.
    """
    for row in rows:
        if row["status"] == "success":
            yield {**row, ATTEMPT_COLUMN: ATTEMPTS[0]}
        elif row["status"] == "failed" and keep_failed:
            attempt = {"adversarial": row["last_attempt"] or row["original"]}
            if row.get("last_attempt_premise") is not None:
                attempt["adversarial_premise"] = row["last_attempt_premise"]
            yield {**row, **attempt, ATTEMPT_COLUMN: ATTEMPTS[1]}


def premade_layout(layout: Layout) -> Layout:
    """The columns of such a set, from those of the rows that it is made of."""
    return replace(layout, columns=(*layout.columns, ATTEMPT_COLUMN))
