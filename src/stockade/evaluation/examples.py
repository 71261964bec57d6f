"""What came of each text by itself: the worst case, and who brought it about."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

from stockade.evaluation.grid import Row
from stockade.evaluation.outcomes import Fate, row_fates


@dataclass(frozen=True, slots=True)
class ExampleFate:
    """One text under everything that one defended model was attacked with."""

    model: str
    defense: str
    seed: int
    id: str
    fate: Fate
    fooled_by: tuple[str, ...]
    """Attacks and ways, as in "textfooler, direct"."""

    def described(self) -> dict[str, object]:
        return {**asdict(self), "fooled_by": list(self.fooled_by)}


def example_fates(rows: Sequence[Row], attacks: Sequence[str], seeds: Sequence[int]) -> Iterator[ExampleFate]:
    """Every text of every row that could be attacked, by seed."""
    for row in rows:
        for seed in seeds if row.answers else ():
            for text, fate in (row_fates(row, seed, attacks) or {}).items():
                yield ExampleFate(row.model, row.defense, seed, text, fate, _fooled_by(row, seed, text))


def _fooled_by(row: Row, seed: int, text: str) -> tuple[str, ...]:
    return tuple(
        f"{attack}, {way}"
        for (attack, way, of_seed), cell in row.cells.items()
        if of_seed == seed and cell.statuses.get(text) == "success"
    )
