"""The numbers of a grid: those of its cells beside what the paper printed, and each mode against TextFooler.

A text that several models were attacked on is one text: `by_text` takes the mean over the cells of a data set first,
and tests flip the signs of texts, not of cells.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Self

from stockade.core.statistics import mcnemar, paired_difference
from stockade.report.numbers import Interval
from stockade.studies.bae.analysis import BASELINE, MODES, BaeNumbers, fooled_within
from stockade.studies.bae.published import PUBLISHED, PublishedAttack, published_data, published_model
from stockade.studies.claims import Claim
from stockade.studies.records import Results, attacked_by_all, succeeded

STEPS = (0.2, 0.5)
"""The paper calls models relatively robust up to the first cap, and sees nothing more above the second."""
Values = Mapping[str, float]
"""A number for each text of a cell."""


@dataclass(frozen=True, slots=True)
class CellResults:
    """What happened in a cell.

    Parameters
    ----------
    model, data
        Its row and its column.
    paper_model, paper_data
        What they are in the paper; None if they are not in it.
    results, numbers, claims
        Those of its study.
    """

    model: str
    data: str
    paper_model: str | None
    paper_data: str | None
    results: Results
    numbers: BaeNumbers
    claims: Sequence[Claim]

    @classmethod
    def of(
        cls,
        name: str,
        results: Results,
        numbers: BaeNumbers,
        claims: Sequence[Claim],
        stand_ins: Mapping[str, str],
    ) -> Self:
        """The cell of that name; see `published_model` for stand-ins."""
        model, _, data = name.partition("/")
        return cls(model, data, published_model(model, stand_ins), published_data(data), results, numbers, claims)

    @property
    def published(self) -> Mapping[str, PublishedAttack] | None:
        """The paper's numbers for this model and data set."""
        if self.paper_model is None or self.paper_data is None:
            return None
        return PUBLISHED[self.paper_model][self.paper_data]


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """Two attacks in one cell, on the texts both have attacked; a positive difference says that the first is ahead."""

    texts: int
    only_first: int
    only_second: int
    difference: Interval
    p: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CellNumbers:
    """A cell of the grid.

    Parameters
    ----------
    paper_model, paper_data
        What it is in the paper; None if it is not in it.
    published
        What the paper printed for each attack; None if it is not in it.
    here
        Every number of its study.
    against_baseline
        Each mode against TextFooler.
    reached
        For each attack, which share of its successes are successes with a cap of 20 and of 50 %.
    """

    paper_model: str | None
    paper_data: str | None
    published: Mapping[str, PublishedAttack] | None
    here: BaeNumbers
    against_baseline: Mapping[str, Compared]
    reached: Mapping[str, tuple[float | None, ...]]


@dataclass(frozen=True, slots=True)
class GridNumbers:
    """Every number of the grid, by cell."""

    grid: Mapping[str, CellNumbers]


def analyse_grid(cells: Mapping[str, CellResults]) -> GridNumbers:
    """Every number of the grid.

    Parameters
    ----------
    cells
        What happened in each.
    """
    return GridNumbers(
        {
            name: CellNumbers(
                paper_model=cell.paper_model,
                paper_data=cell.paper_data,
                published=cell.published,
                here=cell.numbers,
                against_baseline={mode: compare_attacks(cell.results, mode, BASELINE) for mode in MODES},
                reached={attack: reached_within(cell.results, attack) for attack in cell.results},
            )
            for name, cell in cells.items()
        }
    )


def compare_attacks(results: Results, first: str, second: str) -> Compared:
    """Two attacks on the texts both have attacked: Tango's interval of the difference, McNemar's exact test."""
    texts = attacked_by_all(results, (first, second))
    outcomes = [(succeeded(results[first][text]), succeeded(results[second][text])) for text in texts]
    ahead, behind = sum(a > b for a, b in outcomes), sum(a < b for a, b in outcomes)
    return Compared(
        texts=len(texts),
        only_first=ahead,
        only_second=behind,
        difference=paired_difference(ahead, behind, len(texts)),
        p=mcnemar(ahead, behind),
    )


def reached_within(results: Results, attack: str, caps: Sequence[float] = STEPS) -> tuple[float | None, ...]:
    """Which share of an attack's successes are successes under each cap; None without any success."""
    fooled = [fooled_within(record, caps) for record in results[attack].values() if succeeded(record)]
    return tuple(fmean(column) for column in zip(*fooled, strict=True)) if fooled else (None,) * len(caps)


def by_text(cells: Iterable[CellResults], measure: Callable[[CellResults], Values]) -> list[float]:
    """One number for each text of each data set: the mean over the models that have one for it.

    Parameters
    ----------
    cells
        Some cells of the grid.
    measure
        The numbers of a cell by text.
    """
    values: dict[tuple[str, str], list[float]] = {}
    for cell in cells:
        for text, value in measure(cell).items():
            values.setdefault((cell.data, text), []).append(value)
    return [fmean(several) for several in values.values()]


def strength_difference(cell: CellResults, first: str, second: str) -> Values:
    """1, 0 or -1 for each text both attacks were tried on: who fools it and the other does not."""
    results = cell.results
    return {
        text: float(succeeded(results[first][text]) - succeeded(results[second][text]))
        for text in attacked_by_all(results, (first, second))
    }


def strength_difference_within(cell: CellResults, first: str, second: str, cap: float) -> Values:
    """The same, where each attack may change at most a share of the words."""
    results = cell.results
    return {
        text: float(fooled_within(results[first][text], [cap])[0] - fooled_within(results[second][text], [cap])[0])
        for text in attacked_by_all(results, (first, second))
    }


def similarity_difference(cell: CellResults, first: str, second: str) -> Values:
    """How much more similar the first attack's text is to the original, for each text both fool."""
    differences = {}
    for text, record in cell.results[first].items():
        other = cell.results[second].get(text)
        if other is None or not succeeded(record) or not succeeded(other):
            continue
        if record.similarity is not None and other.similarity is not None:
            differences[text] = record.similarity - other.similarity
    return differences
