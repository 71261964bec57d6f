"""What inserting adds to replacing, and replacing to inserting (BAE, Table 5).

Over the texts that R, I and R/I have all attacked:

    A   R/I succeeds, R does not: the text needed an insertion
    B   R/I succeeds, I does not: the text needed a replacement
    C   R/I succeeds, neither R nor I does: the text needed both
"""

from __future__ import annotations

from typing import Any

from stockade.core.statistics import wilson
from stockade.studies.results import Results, attacked_by_all, succeeded

REPLACE, INSERT, EITHER = "bae-r", "bae-i", "bae-r/i"
MEANINGS = {
    "A": f"{EITHER} succeeds, {REPLACE} does not",
    "B": f"{EITHER} succeeds, {INSERT} does not",
    "C": f"{EITHER} succeeds, neither {REPLACE} nor {INSERT} does",
}


def split_texts(results: Results) -> dict[str, list[str]]:
    """The ids of the texts in each split. C is the part that A and B share."""
    found: dict[str, list[str]] = {"A": [], "B": [], "C": []}
    for text in attacked_by_all(results, (REPLACE, INSERT, EITHER)):
        replaced, inserted = succeeded(results[REPLACE][text]), succeeded(results[INSERT][text])
        if not succeeded(results[EITHER][text]):
            continue
        for split, belongs in (("A", not replaced), ("B", not inserted), ("C", not replaced and not inserted)):
            if belongs:
                found[split].append(text)
    return found


def measure_splits(results: Results) -> dict[str, Any]:
    """Counts and shares of the attacked texts, with 95 % Wilson intervals."""
    attacked = len(attacked_by_all(results, (REPLACE, INSERT, EITHER)))
    return {
        "attacked": attacked,
        "splits": {
            split: {"count": len(texts), "share": wilson(len(texts), attacked)}
            for split, texts in split_texts(results).items()
        },
    }
