"""After-attack accuracy against the largest perturbation allowed (BAE, Figure 2), from one run without a cap.

The cap of a text of n words is k = floor(share * n) edits: replacements and insertions. BAE and TextFooler fix the
order of the words before the first edit, look at the cap only to stop, and stop at the first text that fools the
model. So a search with a cap walks the same way as one without, until the text has k edits. Every step that is taken
adds one edit, for no word is replaced twice or by itself. If the search without a cap succeeds with m edits, then the
search with cap k

    finds the same text    if k >= m: there were m - 1 edits when the cap was last looked at
    fails                  if k < m: no text with fewer edits fooled the model

and one that fails without a cap fails with every cap. This is exact for a model that answers the same text alike, and
for the attacks as published: articles that are put right are edits too, which a cap counts before they are made.
tests/study/test_curve.py compares the curve with real runs under caps.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from stockade.attacks.greedy import changes_allowed
from stockade.core.example import Example
from stockade.core.records import Record
from stockade.core.statistics import wilson
from stockade.core.text import Text
from stockade.studies.results import Share, was_attacked

CAPS = tuple(percent / 100 for percent in range(0, 101, 5))


def fooled_within(record: Record, caps: Sequence[float]) -> list[bool]:
    """For each cap, whether a search with that cap would have succeeded."""
    if record.status != "success":
        return [False] * len(caps)
    example = Example(record.id, Text.parse(record.original), 0)
    return [changes_allowed(example, cap) >= len(record.edits) for cap in caps]


def accuracy_curve(records: Iterable[Record], caps: Sequence[float] = CAPS) -> list[Share]:
    """The accuracy after the attack at each cap, with 95 % Wilson intervals; examples with errors are left out."""
    n, standing = 0, [0] * len(caps)
    for record in records:
        if record.status == "error":
            continue
        n += 1
        if was_attacked(record):
            standing = [
                count + (not fooled) for count, fooled in zip(standing, fooled_within(record, caps), strict=True)
            ]
    return [wilson(count, n) for count in standing]
