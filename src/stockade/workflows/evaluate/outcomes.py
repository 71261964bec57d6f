"""What became of each text over several cells: a text is robust only if it survives everything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from stockade.core.records import Status
from stockade.experiment.store import Codec
from stockade.workflows.evaluate.answers import Answers

Outcome = Literal["untried", "robust", "fooled", "wrong", "unknown"]
Statuses = Mapping[str, Status | Literal["untried"]]
"""What became of each text in one cell, by its id; `untried` are failures of an attack that had nothing to try."""
_FROM_BEST: tuple[Outcome, ...] = ("untried", "robust", "unknown", "wrong", "fooled")
_OF_A_CELL: Mapping[Status | Literal["untried"], Outcome] = {
    "success": "fooled",
    "failed": "robust",
    "untried": "untried",
    "skipped": "wrong",
    "error": "unknown",
}


@dataclass(frozen=True, slots=True)
class Cell:
    """One attack in one view with one seed on one defended model, as far as the numbers need it.

    Parameters
    ----------
    statuses
        What became of each text.
    mean_queries
        Over the texts that were attacked; None if there is none.
    undecided
        Texts for which something was found that fools the model in some draws, but in less than half of them.
    first_flips
        Texts for which something was found that fools a randomised model once, as papers count; None for other models,
        and where it was not recorded.
    """

    statuses: Statuses
    mean_queries: float | None
    undecided: frozenset[str] = frozenset()
    first_flips: frozenset[str] | None = None

    @property
    def by_first_flip(self) -> Cell | None:
        """The same where one wrong answer is a success; None if that is not known."""
        if self.first_flips is None:
            return None
        flipped: Statuses = dict.fromkeys(self.first_flips, "success")
        return Cell({**self.statuses, **flipped}, self.mean_queries)


def _encode(cell: Cell) -> dict[str, Any]:
    flips = {} if cell.first_flips is None else {"first_flips": sorted(cell.first_flips)}
    return {
        "statuses": dict(cell.statuses),
        "mean_queries": cell.mean_queries,
        "undecided": sorted(cell.undecided),
        **flips,
    }


def _read(document: Mapping[str, Any]) -> Cell:
    flips = document.get("first_flips")
    return Cell(
        document["statuses"],
        document["mean_queries"],
        frozenset(document["undecided"]),
        None if flips is None else frozenset(flips),
    )


CELL_CODEC: Codec[Cell] = Codec(_encode, _read)


@dataclass(frozen=True, slots=True)
class GridRow:
    """One defended model; a row that could not be made has nothing but its name.

    Parameters
    ----------
    model, defense
        Which.
    answers
        What it says of the clean and pre-made texts, by seed.
    cells
        How it was attacked, by attack, view and seed.
    """

    model: str
    defense: str
    answers: Mapping[int, Answers] = field(default_factory=dict)
    cells: Mapping[tuple[str, str, int], Cell] = field(default_factory=dict)

    @property
    def views(self) -> tuple[str, ...]:
        """The views in which it is attacked."""
        return next((answers.views for answers in self.answers.values()), ())

    @property
    def by_first_flip(self) -> GridRow | None:
        """The same row where one wrong answer of a randomised model is a success; None for other models, and where a
        cell does not say.
        """
        cells = {place: cell.by_first_flip for place, cell in self.cells.items()}
        known = {place: cell for place, cell in cells.items() if cell is not None}
        return replace(self, cells=known) if known and len(known) == len(cells) else None


@dataclass(frozen=True, slots=True)
class ExampleOutcome:
    """One text under everything that one defended model was attacked with.

    Parameters
    ----------
    model, defense, seed, id
        Which text, where.
    outcome
        `robust`, `fooled`, `wrong` (without any attack), `unknown`, or `untried`: no attack had anything to try.
    fooled_by
        Attacks and views, as in "textfooler, direct".
    first_flip_outcome
        For a randomised model: the outcome where one wrong answer is enough; None for other models.
    """

    model: str
    defense: str
    seed: int
    id: str
    outcome: Outcome
    fooled_by: tuple[str, ...]
    first_flip_outcome: Outcome | None = None

    def described(self) -> dict[str, Any]:
        """As a row of an export."""
        return {**asdict(self), "fooled_by": list(self.fooled_by)}


def combined_outcomes(answers: Answers, cells: Sequence[Statuses]) -> dict[str, Outcome]:
    """The outcome of every text: wrong if the model is wrong on it without any attack, fooled if any cell has fooled
    it, robust if none has, and untried if none had anything to try.

    A model that is random by itself, not by a defense, may be wrong in one cell and right in another. As with
    successes, half of the draws decide: a text is wrong if it is so in the clean pass, or in at least half of the
    cells. Were one cell enough, robust accuracy would fall with the number of views alone.

    Unknown, and left out of all shares, is a text that survives some cells and ended in an error in others. One that is
    fooled or wrong anyway is known: an error can hide a success, never undo one.
    """
    clean = answers.clean
    outcomes: dict[str, Outcome] = {}
    for text, label, predicted in zip(clean.ids, clean.labels, clean.predicted, strict=True):
        statuses = [cell.get(text, "error") for cell in cells]
        if predicted is not None and predicted != label:
            outcomes[text] = "wrong"
        elif "success" in statuses:
            outcomes[text] = "fooled"
        elif 2 * statuses.count("skipped") >= len(statuses):
            outcomes[text] = "wrong"
        elif "error" in statuses or predicted is None:
            outcomes[text] = "unknown"
        else:
            outcomes[text] = "robust" if "failed" in statuses or not statuses else "untried"
    return outcomes


def cell_outcomes(statuses: Statuses) -> dict[str, Outcome]:
    """The outcomes in one cell by itself, as its run counts them."""
    return {text: _OF_A_CELL[status] for text, status in statuses.items()}


def row_outcomes(row: GridRow, seed: int, attacks: Sequence[str]) -> dict[str, Outcome] | None:
    """The worst case of a row over some attacks and all views; None if no cell of theirs has numbers.

    It is the worst of the outcomes under each attack, not the outcome over all their cells at once: a text that one
    attack finds wrong in half of its cells could else be outvoted by the cells of the others, and the worst case be
    better than that attack's own number.
    """
    if seed not in row.answers:
        return None
    measured = [cells for attack in attacks if (cells := _cells(row, seed, attack))]
    by_attack = [combined_outcomes(row.answers[seed], cells) for cells in measured]
    if not by_attack:
        return None
    return {text: max((outcomes[text] for outcomes in by_attack), key=_FROM_BEST.index) for text in by_attack[0]}


def _cells(row: GridRow, seed: int, attack: str) -> list[Statuses]:
    return [row.cells[attack, view, seed].statuses for view in row.views if (attack, view, seed) in row.cells]


def is_complete(row: GridRow, seeds: Sequence[int], attacks: Sequence[str]) -> bool:
    """Whether none of these cells is missing. If one is, the worst case may be worse than it looks."""
    return bool(row.views) and all(
        (attack, view, seed) in row.cells for attack in attacks for view in row.views for seed in seeds
    )


def undecided_texts(row: GridRow, attack: str, seed: int) -> int:
    """How many texts are robust under an attack although something that it found fools the model now and then."""
    outcomes = row_outcomes(row, seed, [attack]) or {}
    cells = [row.cells[attack, view, seed] for view in row.views if (attack, view, seed) in row.cells]
    return sum(
        outcome == "robust" and any(text in cell.undecided for cell in cells) for text, outcome in outcomes.items()
    )


@dataclass(frozen=True, slots=True)
class Counts:
    """How many texts have which outcome; `attacked` are those that the model gets right. Of the robust ones, attacks
    had nothing to try on `untried`.
    """

    robust: int
    fooled: int
    wrong: int
    unknown: int
    untried: int = 0

    @classmethod
    def of(cls, outcomes: Mapping[str, Outcome]) -> Counts:
        """Count outcomes."""
        counted = Counter(outcomes.values())
        untried = counted["untried"]
        return cls(counted["robust"] + untried, counted["fooled"], counted["wrong"], counted["unknown"], untried)

    @property
    def attacked(self) -> int:
        return self.robust + self.fooled

    @property
    def n(self) -> int:
        return self.attacked + self.wrong


def example_outcomes(rows: Sequence[GridRow], attacks: Sequence[str], seeds: Sequence[int]) -> Iterator[ExampleOutcome]:
    """Every text of every row that could be attacked, by seed."""
    for row in rows:
        flipped = row.by_first_flip
        for seed in seeds:
            flips = (None if flipped is None else row_outcomes(flipped, seed, attacks)) or {}
            for text, outcome in (row_outcomes(row, seed, attacks) or {}).items():
                fooled_by = _fooled_by(row, seed, text)
                yield ExampleOutcome(row.model, row.defense, seed, text, outcome, fooled_by, flips.get(text))


def _fooled_by(row: GridRow, seed: int, text: str) -> tuple[str, ...]:
    return tuple(
        f"{attack}, {view}"
        for (attack, view, cell_seed), cell in row.cells.items()
        if cell_seed == seed and cell.statuses.get(text) == "success"
    )
