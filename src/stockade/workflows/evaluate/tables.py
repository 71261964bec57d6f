"""The tables of an evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from stockade.report.document import Cell, Table
from stockade.report.numbers import NOT_AVAILABLE, number, p_value, plain_percent
from stockade.workflows.evaluate.analysis import WORST, Analysis, Row, UnmadeRow
from stockade.workflows.evaluate.measures import Interval, Measure, PairedTest, Shares, measure
from stockade.workflows.evaluate.views import SOURCE, VIEWS

_NOT_ATTACKED = "–"
FIRST_FLIP = "first flip"
_TWO_RULES = (
    "On a randomised model a text is fooled if what was found fools at least half of its answers (repeatable). First "
    "flip: the number to its left where one wrong answer is enough, as papers count."
)
_UNKNOWN = measure({})


def main_table(analysis: Analysis, attacks: Sequence[str], premade: Sequence[str], seeds: int) -> Table:
    """Like the papers': a row for each model and defense. An attack's numbers are its worst over all views, by text.

    The worst case of all comes first: it must be in sight however many attacks there are.
    """
    two_rules = has_first_flips(analysis)
    worst = [WORST, *([FIRST_FLIP] if two_rules else [])] if attacks else []
    columns = ["model", "defense", "clean accuracy", *worst, "macro F1", *(f"pre-made {name}" for name in premade)]
    for attack in attacks:
        for share in ("robust", "success"):
            columns += [f"{attack}, {share}", *([FIRST_FLIP] if two_rules else [])]
    rows = [_main_row(row, attacks, premade, len(columns), two_rules) for row in analysis.rows]
    around = ", drawn around those of all seeds, and the 95 % t-interval of the mean over seeds" if seeds > 1 else ""
    again = (
        " A model that is random by itself may be wrong again on a text it got right when it was asked for its clean "
        "accuracy: such texts count neither as robust nor as fooled."
    )
    if not attacks:
        caption = (
            f"Shares with 95 % Wilson intervals{around}, F1 with bootstrap intervals by text. Pre-made: adversarial "
            "texts that a row gets right. Nothing was attacked: what an attack on a row itself would do is not known."
        )
        return Table(columns, rows, caption=caption, numeric=range(2, len(columns)), grouped=1)
    caption = (
        f"Shares with 95 % Wilson intervals{around}, F1 with bootstrap intervals by text. Robust: right on the "
        "clean text, and the attack fails in every view; success: fooled in some view, of the texts the model gets "
        "right. Worst case: survives every attack in every view."
        f"{again if any(map(_is_random_by_itself, analysis.measured)) else ''} Every success was confirmed on the "
        "defended model itself. “≤” and “≥” mark rows in which something could not be run: what was not "
        "attacked was not survived."
    )
    caption += f" {_TWO_RULES}" if two_rules else ""
    return Table(columns, rows, caption=caption, numeric=range(2, len(columns)), grouped=1)


def has_first_flips(analysis: Analysis) -> bool:
    """Whether some row is of a randomised model, for which both rules of success are known."""
    return any(row.worst.first_flip is not None for row in analysis.measured)


def _main_row(
    row: Row | UnmadeRow, attacks: Sequence[str], premade: Sequence[str], columns: int, two_rules: bool
) -> list[str | Cell]:
    if isinstance(row, UnmadeRow):
        return [row.model, row.defense, *[NOT_AVAILABLE] * (columns - 2)]
    cells: list[str | Cell] = [row.model, row.defense]
    worst = by_rules(row.worst, two_rules, row.deterministic) if attacks else ()
    cells += [share_cell(row.clean.accuracy), *map(bounded, worst), share_cell(row.clean.macro_f1)]
    cells += [share_cell(row.premade[name].accuracy) for name in premade]
    for attack in attacks:
        by_rule = by_rules(row.attacks[attack], two_rules, row.deterministic)
        cells += map(bounded, by_rule)
        cells += [share_cell(shares.success_rate, "" if shares.complete else "≥ ") for shares in by_rule]
    return cells


def by_rules(shares: Shares, two_rules: bool, deterministic: bool) -> tuple[Shares, ...]:
    """The shares, and once more by the first flip if the table has both rules.

    A model that always answers alike has the same by either rule; where only one was recorded, the other is missing.
    """
    if not two_rules:
        return (shares,)
    if deterministic:
        return shares, shares
    return shares, first_flip_of(shares)


def first_flip_of(shares: Shares) -> Shares:
    """The shares by the first flip, in place of those by what repeats."""
    if shares.first_flip is None:
        return replace(shares, robust_accuracy=_UNKNOWN, success_rate=_UNKNOWN)
    return replace(
        shares, robust_accuracy=shares.first_flip.robust_accuracy, success_rate=shares.first_flip.success_rate
    )


def _is_random_by_itself(row: Row) -> bool:
    """Whether an attack met another clean accuracy than the clean pass."""
    clean = row.clean.accuracy.value
    return any(shares.clean_accuracy.value not in (None, clean) for shares in row.attacks.values())


def view_table(analysis: Analysis, eot_samples: int, *, first_flip: bool = False) -> Table:
    """Robust accuracy in each view, by what repeats or by the first flip."""
    views = [view for view in VIEWS if any(view in row.views for row in analysis.measured)]
    rows: list[tuple[str | Cell, ...]] = []
    for row in analysis.measured:
        for attack, shares in row.attacks.items():
            cells = [
                share_cell(_of_view(shares.views[view], row, first_flip).robust_accuracy)
                if view in shares.views
                else Cell(_NOT_ATTACKED)
                for view in views
            ]
            queries = [view.mean_queries for view in shares.views.values() if view.mean_queries is not None]
            mean = sum(queries) / len(queries) if queries else None
            rows.append((row.model, row.defense, attack, *cells, number(mean)))
    source = " Source: they see the model that texts are transferred from." if SOURCE in views else ""
    caption = (
        "Direct: searches query the defended model, with fresh random choices. EOT (expectation over the model's "
        f"randomness): they see the mean of {eot_samples} answers. Surrogate: they see the defense with mean "
        f"probabilities in place of votes or logits. Transfer: they see the bare model.{source} A defense that holds "
        "only in the direct view hides where its weakness is, and does not remove it. Queries: the mean over views; a "
        "mean of answers counts as one."
    )
    if first_flip:
        caption = (
            "The same searches; one wrong answer of a randomised model is enough. Where a search queries the defended "
            "model itself, it is an answer that the search got; in other views it is the first answer to the text that "
            "the search ends with."
        )
    columns = ("model", "defense", "attack", *views, "queries")
    return Table(columns, rows, caption=caption, numeric=range(3, len(columns)), grouped=2)


def _of_view(shares: Shares, row: Row, first_flip: bool) -> Shares:
    return by_rules(shares, first_flip, row.deterministic)[-1]


def vote_table(analysis: Analysis) -> Table | None:
    """How much the votes of voting defenses tell a search; None if none votes."""
    rows = [
        (
            row.model,
            row.defense,
            number(row.votes.entropy, 3),
            plain_percent(row.votes.unanimous),
            plain_percent(row.votes.same_answer),
        )
        for row in analysis.measured
        if row.votes is not None
    ]
    columns = ("model", "defense", "mean entropy", "unanimous", "same answer with a word less")
    caption = (
        "Of the distribution of votes on the clean texts: mean entropy (natural logarithm), texts on which all copies "
        "agree, and texts with one word less that get the very same one-hot answer."
    )
    return Table(columns, rows, caption=caption, numeric=range(2, 5), grouped=1) if rows else None


def test_table(analysis: Analysis, attacks: Sequence[str], seeds: int) -> Table | None:
    """Each defense against none, on the same texts; None if there is no defense."""
    columns = ("model", "defense", *attacks, WORST)
    rows = [
        (row.model, row.defense, *(_test(row.mcnemar[name]) for name in columns[2:]))
        for row in analysis.measured
        if row.mcnemar is not None
    ]
    how = (
        "+ texts that are robust with more seeds in the defense, − with more seeds without it. The seeds of a text go "
        "together (sign flips by text; with one seed that is McNemar's exact test)."
        if seeds > 1
        else "McNemar's exact test on the same texts: + robust only with the defense, − robust only without it."
    )
    caption = (
        f"{how} Not corrected for the number of tests. A defended model meets more searches than the bare one, because "
        "it is attacked in more views: a gain is in spite of that, a small loss may be because of it."
    )
    return Table(columns, rows, caption=caption, numeric=range(2, len(columns)), grouped=1) if rows else None


def seed_table(analysis: Analysis, seeds: Sequence[int]) -> Table:
    """The worst case of each seed with its Wilson interval, and of all."""
    rows: list[tuple[str | Cell, ...]] = []
    for row in analysis.measured:
        robust = row.worst.robust_accuracy
        cells = [_seed_cell(robust.by_seed.get(str(seed))) for seed in seeds]
        rows.append((row.model, row.defense, *cells, _seed_cell(robust.over_seeds)))
    columns = ("model", "defense", *(f"seed {seed}" for seed in seeds), "mean, t-interval")
    caption = "The texts are the same for all seeds, the random choices of defenses and attacks are not."
    return Table(columns, rows, caption=caption, numeric=range(2, len(columns)), grouped=1)


def share_cell(measure: Measure, sign: str = "") -> Cell:
    """A share in percent with its Wilson interval and, if there are several seeds, the t-interval over them."""
    if measure.value is None:
        return Cell(NOT_AVAILABLE)
    details = []
    if measure.low is not None and measure.high is not None:
        details.append(f"{100 * measure.low:.1f}–{100 * measure.high:.1f}")
    over = measure.over_seeds
    if over is not None and over.low is not None and over.high is not None:
        details.append(f"t-interval {100 * over.low:.0f}–{100 * over.high:.0f}")
    return Cell(f"{sign}{plain_percent(measure.value)}", ", ".join(details))


def bounded(shares: Shares) -> Cell:
    """Robust accuracy, which is only a bound where a cell is missing: what was not attacked was not survived."""
    if shares.untried and shares.robust_accuracy.value is None:
        return Cell(_NOT_ATTACKED)
    return share_cell(shares.robust_accuracy, "" if shares.complete else "≤ ")


def _seed_cell(interval: Interval | None) -> Cell:
    if interval is None or interval.low is None or interval.high is None:
        return Cell(NOT_AVAILABLE)
    return Cell(plain_percent(interval.value), f"{100 * interval.low:.1f}–{100 * interval.high:.1f}")


def _test(test: PairedTest | None) -> str:
    return NOT_AVAILABLE if test is None else f"+{test.gained} −{test.lost}, {p_value(test.p)}"
