"""The paper's own numbers (Zeng et al. 2021, Tables 2 and 3, RoBERTa), to be read beside those of a study.

Radii are printed by a procedure that returns the first number of words that fails its test, and that takes p_c for a
bound on β: one less is what the test says, and that is no certificate either.
"""

from __future__ import annotations

from dataclasses import dataclass

from stockade.studies.tables import NOT_KNOWN, Table

SOURCE = (
    "Zeng, Zheng, Xu, Li, Yuan, Huang 2021: Certified Robustness to Text Adversarial Attacks by Randomized [MASK], "
    "Tables 2 (AG-News) and 3 (SST-2)"
)
DIVERGENCE = 2.5e-5
"""What the paper calls very small (AG-News; on SST-2 1.75e-5)."""


@dataclass(frozen=True, slots=True)
class PublishedRow:
    """Percent, words, percent; None where the paper prints N/A."""

    data: str
    rate: float
    accuracy: float
    median_radius: int | None
    median_rate: float | None

    @property
    def corrected(self) -> int | None:
        return None if self.median_radius is None else self.median_radius - 1


ROWS = (
    PublishedRow("AG-News", 0.40, 96.2, 1, 2.6),
    PublishedRow("AG-News", 0.50, 95.7, 1, 2.7),
    PublishedRow("AG-News", 0.60, 95.7, 2, 5.0),
    PublishedRow("AG-News", 0.65, 95.0, 2, 5.0),
    PublishedRow("AG-News", 0.70, 94.5, 2, 5.0),
    PublishedRow("AG-News", 0.75, 93.9, 3, 7.0),
    PublishedRow("AG-News", 0.80, 92.0, 3, 7.5),
    PublishedRow("AG-News", 0.85, 92.2, 4, 8.8),
    PublishedRow("AG-News", 0.90, 91.1, 5, 11.4),
    PublishedRow("AG-News", 0.95, 85.8, 5, 11.8),
    PublishedRow("SST-2", 0.20, 92.4, 1, 5.26),
    PublishedRow("SST-2", 0.30, 92.4, 1, 5.26),
    PublishedRow("SST-2", 0.40, 91.2, 1, 5.26),
    PublishedRow("SST-2", 0.50, 89.3, 1, 5.56),
    PublishedRow("SST-2", 0.60, 84.3, 1, 7.41),
    PublishedRow("SST-2", 0.70, 83.3, 2, 8.00),
    PublishedRow("SST-2", 0.80, 81.4, 2, 10.00),
    PublishedRow("SST-2", 0.90, 49.6, None, None),
)
DATA_SETS = ("AG-News", "SST-2")


def published_table() -> Table:
    rows = [
        (
            row.data,
            f"{100 * row.rate:.0f} %",
            f"{row.accuracy:.1f} %",
            NOT_KNOWN if row.median_radius is None else str(row.median_radius),
            NOT_KNOWN if row.corrected is None else str(row.corrected),
            NOT_KNOWN if row.median_rate is None else f"{row.median_rate:g} %",
        )
        for row in ROWS
    ]
    columns = ("data", "mask rate", "accuracy", "MCB as printed", "MCB − 1", "MCR as printed")
    return Table(columns, tuple(rows))
