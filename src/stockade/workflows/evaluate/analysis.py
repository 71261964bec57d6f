"""The numbers of an evaluation, from what the grid found."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import fmean
from typing import Any

from stockade.workflows.evaluate.answers import Predictions, Votes
from stockade.workflows.evaluate.f1 import f1_scores
from stockade.workflows.evaluate.measures import (
    Measure,
    PairedTest,
    ShareFields,
    Shares,
    attack_shares,
    first_flip_shares,
    measure,
    paired,
    share_over_seeds,
)
from stockade.workflows.evaluate.outcomes import (
    Cell,
    Counts,
    GridRow,
    Outcome,
    cell_outcomes,
    is_complete,
    row_outcomes,
    undecided_texts,
)
from stockade.workflows.evaluate.spec import NONE
from stockade.workflows.evaluate.views import DIRECT

WORST = "worst case"


@dataclass(frozen=True, slots=True)
class Failure:
    """A part of the grid without numbers, and why; what is None stands for all of its kind."""

    model: str
    defense: str
    attack: str | None
    view: str | None
    seed: int | None
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewShares(Shares):
    """One attack in one view.

    Parameters
    ----------
    mean_queries
        Per text that was attacked.
    against_direct
        Whether it fools other texts than the direct view: gained are those that only the direct view fools.
    """

    mean_queries: float | None
    against_direct: PairedTest | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AttackShares(Shares):
    """One attack: the worst of all its views by text.

    Parameters
    ----------
    undecided
        The most texts of a seed that are robust although something fools the model on them now and then.
    views
        Each view by itself.
    """

    undecided: int
    views: Mapping[str, ViewShares]


@dataclass(frozen=True, slots=True)
class ClassMeasures:
    """Accuracy and F1 on some texts.

    Parameters
    ----------
    accuracy
        With Wilson intervals.
    macro_f1, positive_f1
        With bootstrap intervals by text; that of the positive class is None unless there are two classes.
    n
        How many texts have an answer, by seed.
    """

    accuracy: Measure
    macro_f1: Measure
    positive_f1: Measure | None = None
    n: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PremadeMeasures(ClassMeasures):
    """Accuracy and F1 on a pre-made set.

    Parameters
    ----------
    attempts
        Those of the texts that an attack succeeded on and of those it failed on, where the set has both.
    """

    attempts: Mapping[str, ClassMeasures] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedWithNone(PairedTest):
    """A defense against none, under those attacks that both rows have met in full."""

    attacks: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One model in one chain of defenses.

    Parameters
    ----------
    model, defense
        Which.
    deterministic
        Whether it always gives a text the same answer.
    views
        The views in which it was attacked.
    clean, premade
        Its accuracy and F1 on the clean texts, and on each pre-made set.
    positive
        The class that counts as positive: the second of two; None if there are more.
    votes
        What its votes tell a search, the mean over seeds; None if it does not vote.
    attacks
        By attack.
    worst
        Under all attacks in all views.
    mcnemar
        The test against the bare model by attack and for the worst case; None for the bare model itself.
    remarks, warnings
        What a reader should know of its defenses, and before believing its numbers.
    """

    model: str
    defense: str
    deterministic: bool
    views: tuple[str, ...]
    clean: ClassMeasures
    premade: Mapping[str, PremadeMeasures]
    votes: Votes | None
    attacks: Mapping[str, AttackShares]
    worst: Shares
    mcnemar: Mapping[str, ComparedWithNone | None] | None
    remarks: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    positive: str | None = None


@dataclass(frozen=True, slots=True)
class UnmadeRow:
    """A row that could not be made, or has not been yet; `failures` say why."""

    model: str
    defense: str


@dataclass(frozen=True)
class Analysis:
    """What the whole grid found.

    Parameters
    ----------
    rows
        In the order of models and defenses.
    failures
        What could not be run.
    """

    rows: tuple[Row | UnmadeRow, ...]
    failures: tuple[Failure, ...]

    @cached_property
    def measured(self) -> tuple[Row, ...]:
        """The rows that have numbers."""
        return tuple(row for row in self.rows if isinstance(row, Row))

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warnings of all rows."""
        return tuple(warning for row in self.measured for warning in row.warnings)

    def described(self) -> dict[str, Any]:
        """As `summary.json` holds it."""
        return {
            "rows": [_described(row) for row in self.rows],
            "failures": [dataclasses.asdict(failure) for failure in self.failures],
            "warnings": list(self.warnings),
        }


def _described(row: Row | UnmadeRow) -> dict[str, Any]:
    if isinstance(row, UnmadeRow):
        return {"model": row.model, "defense": row.defense, "made": False, "remarks": [], "warnings": []}
    described = {"made": True, **dataclasses.asdict(row)}
    attacks = described["attacks"].values()
    for shares in (described["worst"], *attacks, *(view for attack in attacks for view in attack["views"].values())):
        if shares["first_flip"] is None:
            del shares["first_flip"]
    return described


def analyse_row(
    row: GridRow,
    bare: GridRow | None,
    attacks: Sequence[str],
    seeds: Sequence[int],
    labels: Sequence[str] = (),
) -> Row | UnmadeRow:
    """The numbers of one row, without its warnings.

    Parameters
    ----------
    row
        What the grid found.
    bare
        The same model without a defense, to compare with.
    attacks, seeds
        All of the evaluation.
    labels
        The classes of the model.
    """
    if not row.answers:
        return UnmadeRow(row.model, row.defense)
    answers = row.answers
    first = answers[seeds[0]]
    positive = labels[1] if len(labels) == 2 else None
    mcnemar: dict[str, ComparedWithNone | None] | None = None
    if row.defense != NONE and bare is not None and bare.answers:
        mcnemar = {attack: _compare(row, bare, [attack], seeds) for attack in attacks}
        mcnemar[WORST] = _compare(row, bare, attacks, seeds)
    return Row(
        model=row.model,
        defense=row.defense,
        deterministic=first.deterministic,
        views=row.views,
        clean=_measured({seed: answers[seed].clean for seed in seeds}, positive),
        premade={
            name: _measured_premade({seed: answers[seed].premade[name] for seed in seeds}, positive)
            for name in first.premade
        },
        votes=_mean_votes([votes for seed in seeds if (votes := answers[seed].votes) is not None]),
        attacks={attack: _attack(row, attack, seeds) for attack in attacks},
        worst=Shares(**_worst(row, attacks, seeds)),
        mcnemar=mcnemar,
        remarks=first.remarks,
        positive=positive,
    )


def _measured(by_seed: Mapping[int, Predictions], positive: str | None) -> ClassMeasures:
    scores = {seed: f1_scores(asked.labels, asked.predicted, positive) for seed, asked in by_seed.items()}
    counts = {seed: asked.correct() for seed, asked in by_seed.items()}
    return ClassMeasures(
        accuracy=share_over_seeds(counts),
        macro_f1=measure({seed: score.macro for seed, score in scores.items()}),
        positive_f1=None if positive is None else measure({seed: score.positive for seed, score in scores.items()}),
        n={str(seed): answered for seed, (_, answered) in counts.items()},
    )


def _measured_premade(by_seed: Mapping[int, Predictions], positive: str | None) -> PremadeMeasures:
    every = _measured(by_seed, positive)
    kinds = next(iter(by_seed.values())).kinds
    attempts = {
        kind: _measured({seed: asked.of_kind(kind) for seed, asked in by_seed.items()}, positive) for kind in kinds
    }
    return PremadeMeasures(every.accuracy, every.macro_f1, every.positive_f1, every.n, attempts)


def _attack(row: GridRow, attack: str, seeds: Sequence[int]) -> AttackShares:
    return AttackShares(
        **_worst(row, [attack], seeds),
        undecided=max((undecided_texts(row, attack, seed) for seed in seeds), default=0),
        views={view: _view(row, attack, view, seeds) for view in row.views},
    )


def _view(row: GridRow, attack: str, view: str, seeds: Sequence[int]) -> ViewShares:
    cells = {seed: row.cells[attack, view, seed] for seed in seeds if (attack, view, seed) in row.cells}
    queries = [cell.mean_queries for cell in cells.values() if cell.mean_queries is not None]
    return ViewShares(
        **_view_shares(cells, len(seeds)),
        mean_queries=round(fmean(queries), 6) if queries else None,
        against_direct=_against_direct(row, attack, view, seeds),
    )


def _counts(cells: Mapping[int, Cell]) -> dict[int, Counts]:
    return {seed: Counts.of(cell_outcomes(cell.statuses)) for seed, cell in cells.items()}


def _view_shares(cells: Mapping[int, Cell], seeds: int) -> ShareFields:
    flipped = {seed: cell.by_first_flip for seed, cell in cells.items()}
    known = {seed: cell for seed, cell in flipped.items() if cell is not None}
    return {
        **attack_shares(_counts(cells), seeds),
        "first_flip": first_flip_shares(_counts(known), seeds) if known and len(known) == len(cells) else None,
    }


def _against_direct(row: GridRow, attack: str, view: str, seeds: Sequence[int]) -> PairedTest | None:
    if view == DIRECT:
        return None
    pairs = [
        (cell_outcomes(row.cells[attack, view, seed].statuses), cell_outcomes(direct.statuses))
        for seed in seeds
        if (attack, view, seed) in row.cells and (direct := row.cells.get((attack, DIRECT, seed))) is not None
    ]
    return paired(pairs) if pairs else None


def _worst(row: GridRow, attacks: Sequence[str], seeds: Sequence[int]) -> ShareFields:
    flipped = row.by_first_flip
    return {
        **attack_shares(_worst_counts(row, attacks, seeds), len(seeds)),
        "complete": is_complete(row, seeds, attacks),
        "first_flip": None
        if flipped is None
        else first_flip_shares(_worst_counts(flipped, attacks, seeds), len(seeds)),
    }


def _worst_counts(row: GridRow, attacks: Sequence[str], seeds: Sequence[int]) -> dict[int, Counts]:
    by_seed = {seed: row_outcomes(row, seed, attacks) for seed in seeds}
    return {seed: Counts.of(outcomes) for seed, outcomes in by_seed.items() if outcomes is not None}


def _compare(row: GridRow, bare: GridRow, attacks: Sequence[str], seeds: Sequence[int]) -> ComparedWithNone | None:
    """The defense against none; None if there is no attack that both have met in full."""
    common = [attack for attack in attacks if all(is_complete(each, seeds, [attack]) for each in (row, bare))]
    pairs: list[tuple[dict[str, Outcome], dict[str, Outcome]]] = []
    for seed in seeds:
        defended, undefended = row_outcomes(row, seed, common), row_outcomes(bare, seed, common)
        if defended is None or undefended is None:
            return None
        pairs.append((defended, undefended))
    test = paired(pairs)
    return ComparedWithNone(texts=test.texts, gained=test.gained, lost=test.lost, p=test.p, attacks=tuple(common))


def _mean_votes(by_seed: Sequence[Votes]) -> Votes | None:
    if not by_seed:
        return None

    def mean(name: str) -> float | None:
        values = [value for votes in by_seed if (value := getattr(votes, name)) is not None]
        return fmean(values) if values else None

    return Votes(mean("entropy"), mean("unanimous"), mean("same_answer"))
