"""The page of a grid: the paper's Tables 1 and 2 beside ours, its claims over all cells, Figure 2, Tables 4 and 5."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from stockade.report.charts import Series, plot_curves, plot_rows
from stockade.report.document import Block, Cell, Document, Heading, Note, Plot, Prose, Table, code
from stockade.report.examples import Tone
from stockade.report.figures import draw_panels, draw_plot
from stockade.report.numbers import NOT_AVAILABLE, count, number, percent_cell, plain_percent
from stockade.studies.bae.analysis import ATTACKS, BASELINE, MODES
from stockade.studies.bae.grid import GridResult, cell_folder
from stockade.studies.bae.grid_analysis import STEPS, CellNumbers, GridNumbers
from stockade.studies.bae.plots import COLOURS, MARKERS, curve_series, where_flat
from stockade.studies.bae.rating_page import rating_table
from stockade.studies.claims import claims_in_short, claims_table
from stockade.studies.frame import REPORTS, study_document

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_TONES: Mapping[str, Tone] = {"held": "good", "not held": "bad", "undecided": "soft"}
_ORDER = (BASELINE, *MODES)
"""As the paper's tables have the attacks."""
_PANEL_COLUMNS = 3
_CLAIMS = (
    "Over all cells by text: a text's difference is its mean over the models that were attacked on it, and the test "
    "flips the signs of texts. Held or not held with p < 0.05, else undecided; no correction for many comparisons. In "
    "the paper's cells: its own Tables 1 and 2, without a test."
)
_TABLES = (
    "Accuracy after each attack with its 95 % Wilson interval, and mean similarity in parentheses. The paper had other "
    "trainings, texts, masked LM and sentence encoder (USE): compare the order within a row."
)
_CURVES = (
    "Accuracy after the attack against the largest share of words that may change. Open marks at the right: the "
    "paper's accuracy without a cap (Tables 1 and 2), where this model and data set are in it."
)


def grid_document(result: GridResult) -> Document:
    """The whole page."""
    return study_document(
        result, about=_about(result), findings=findings(result), blocks=_blocks(result, result.numbers)
    )


def _about(result: GridResult) -> Prose:
    summary, cells = result.summary, result.numbers.grid
    data = dict.fromkeys(name.partition("/")[2] for name in cells)
    limit = "" if summary["limit"] is None else f", {count(summary['limit'], 'text')} each"
    budget = f", at most {summary['budget']:,} queries per text" if summary["budget"] else ""
    return (
        "The four modes of BAE (Garg and Ramakrishnan 2020) and TextFooler on ",
        f"{count(len(cells), 'cell')}: the models ",
        code(", ".join(summary["models"])),
        " on the data sets ",
        code(", ".join(data)),
        f"{limit}, seed {summary['seed']}{budget}.",
    )


def findings(result: GridResult) -> list[str]:
    """The grid in a few sentences; every one follows from the tables."""
    cells = result.numbers.grid
    if not any(compared.texts for cell in cells.values() for compared in cell.against_baseline.values()):
        return ["Nothing was attacked: the models are wrong on every text that could be read."]
    main = result.claims[0]
    return [
        f"That BAE is stronger than TextFooler in each mode is {main.verdict} over all cells: {main.numbers}.",
        claims_in_short(result.claims),
    ]


def _blocks(result: GridResult, numbers: GridNumbers) -> Iterator[Block]:
    cells = numbers.grid
    yield Heading("After the attacks, beside the paper", aside="Tables 1 and 2")
    models = dict.fromkeys(name.partition("/")[0] for name in cells)
    for number_, model in enumerate(models, 1):
        of_model = {name: cell for name, cell in cells.items() if name.partition("/")[0] == model}
        yield _accuracy_table(model, of_model, _TABLES if number_ == len(models) else "")
    yield Heading("What the paper claims, and what is seen here")
    yield claims_table(result.claims, _CLAIMS)
    yield Heading("BAE against TextFooler, cell by cell")
    yield Plot(lambda: advantage_plot(cells), _ADVANTAGE, "advantage")
    yield _advantage_table(cells)
    yield Heading("Every claim in every cell")
    yield _cell_claims(result)
    yield Heading("How many words it takes", aside="Figure 2")
    yield Plot(lambda: curves_plot(cells), _CURVES, "curves")
    yield _reached_table(cells)
    yield Heading("Replacing and inserting", aside="Table 5")
    yield _split_table(cells)
    yield Heading("Human raters", aside="Table 4")
    yield _ratings(result)
    yield Heading("The cells")
    yield _cell_table(result)


_ADVANTAGE = (
    "How many more texts each mode fools than TextFooler, in percent of those both have attacked, with Tango's 95 % "
    "interval: right of 0 BAE is ahead."
)


def _accuracy_table(model: str, cells: Mapping[str, CellNumbers], caption: str) -> Table:
    """A model's rows of Tables 1 and 2: each data set, here and in the paper."""
    rows: list[tuple[str | Cell, ...]] = []
    for name, cell in cells.items():
        data = name.partition("/")[2]
        attacks = cell.here.attacks
        clean = next(iter(attacks.values())).clean_accuracy
        rows.append((data, "here", percent_cell(clean), *(_here(cell, attack) for attack in _ORDER)))
        if cell.published is not None:
            published = [
                f"{cell.published[attack].accuracy:g} % ({cell.published[attack].similarity:.3f})" for attack in _ORDER
            ]
            rows.append((data, f"paper, {cell.paper_model}", NOT_AVAILABLE, *published))
    columns = ("data", "", "before", *_ORDER)
    return Table(columns, rows, title=model, caption=caption, grouped=1, numeric=range(2, len(columns)))


def _here(cell: CellNumbers, attack: str) -> Cell:
    numbers = cell.here.attacks[attack]
    similarity = "" if numbers.mean_similarity is None else f" ({numbers.mean_similarity:.3f})"
    shown = percent_cell(numbers.robust_accuracy)
    return Cell(f"{shown.text}{similarity}", shown.detail)


def _advantage_table(cells: Mapping[str, CellNumbers]) -> Table:
    rows: list[tuple[str | Cell, ...]] = [
        (
            name,
            f"{max((compared.texts for compared in cell.against_baseline.values()), default=0):,}",
            *(_advantage(cell, mode) for mode in MODES),
        )
        for name, cell in cells.items()
    ]
    caption = (
        "Points by which each mode's success rate is above TextFooler's, and how many texts only the mode and only "
        "TextFooler fools. Green and red: decided by McNemar's exact test (p < 0.05)."
    )
    return Table(("cell", "texts", *MODES), rows, caption=caption)


def _advantage(cell: CellNumbers, mode: str) -> Cell:
    compared = cell.against_baseline[mode]
    value = compared.difference["value"]
    if value is None:
        return Cell(NOT_AVAILABLE)
    tone: Tone = "plain" if compared.p >= 0.05 or not value else "good" if value > 0 else "bad"
    return Cell(f"{100 * value:+.1f}", f"{compared.only_first} : {compared.only_second}", tone)


def _cell_claims(result: GridResult) -> Table:
    names = list(result.cells)
    by_claim: dict[str, dict[str, str]] = {}
    for name, cell in result.cells.items():
        for claim in cell.claims:
            by_claim.setdefault(claim.claim, {})[name] = claim.verdict
    rows: list[tuple[str | Cell, ...]] = [
        (
            claim,
            *(Cell(verdict := verdicts.get(name, NOT_AVAILABLE), tone=_TONES.get(verdict, "plain")) for name in names),
        )
        for claim, verdicts in by_claim.items()
    ]
    caption = "Each by the exact test of the cell's own study; its page has the numbers."
    return Table(("claim", *names), rows, caption=caption, numeric=())


def _reached_table(cells: Mapping[str, CellNumbers]) -> Table:
    rows = [
        (name, *(" / ".join(plain_percent(share, 0) for share in cell.reached[attack]) for attack in _ORDER))
        for name, cell in cells.items()
    ]
    at = f"{' and '.join(f'{100 * step:.0f}' for step in STEPS)} %"
    caption = (
        f"Which share of an attack's successes need no more than {at} of the words. The paper calls its models "
        "relatively robust up to 20 %, and sees nothing more above 40 to 50 %, on TREC."
    )
    return Table(("cell", *_ORDER), rows, caption=caption)


def _split_table(cells: Mapping[str, CellNumbers]) -> Table:
    rows: list[tuple[str | Cell, ...]] = []
    for name, cell in cells.items():
        splits = cell.here.splits
        rows.append(
            (
                name,
                f"{splits.tested:,}",
                *(percent_cell(split.share) for split in splits.of_tested.values()),
                f"{splits.attacked:,}",
                *(percent_cell(split.share) for split in splits.splits.values()),
            )
        )
    columns = ("cell", "tested", "A", "B", "C", "attacked", "A", "B", "C")
    caption = (
        "First of all test instances, as in the paper, then of those attacked. A: R/I succeeds and R does not; B: R/I "
        "succeeds and I does not; C: R/I succeeds and neither does. The paper's numbers are not at hand."
    )
    return Table(columns, rows, caption=caption)


def _ratings(result: GridResult) -> Block:
    rated = {name: run.numbers.ratings for name, run in result.runs.items()}
    known = {name: ratings for name, ratings in rated.items() if ratings is not None}
    if known:
        return rating_table(known)
    first = cell_folder(result.folder, next(iter(result.runs)))
    return Note(
        (
            "Nobody has rated yet. Each cell has a sheet of its own: ",
            code(f"stockade study bae --resume --out {first} --rating-sheet sheet.csv"),
            " writes one; ",
            code(f"stockade resume {result.folder}"),
            " takes what was read back onto this page.",
        ),
        kind="aside",
    )


def _cell_table(result: GridResult) -> Table:
    rows = []
    for name, run in result.runs.items():
        summary = run.summary
        page = cell_folder(result.folder, name).relative_to(result.folder) / REPORTS["html"]
        held = [claim.verdict for claim in run.claims]
        rows.append(
            (
                Cell(name, href="" if ":" in str(page) else page.as_posix()),
                summary["model"],
                summary["data"],
                f"{summary['examples']:,}",
                number(sum(attack.seconds for attack in run.numbers.attacks.values()) / 60, 1, " min"),
                f"{held.count('held')} held, {held.count('not held')} not, {held.count('undecided')} undecided",
            )
        )
    columns = ("cell", "model", "data", "texts", "attacked for", "claims")
    return Table(columns, rows, numeric=(3, 4))


def advantage_plot(cells: Mapping[str, CellNumbers]) -> str:
    """How far each mode is ahead of TextFooler in each cell; empty if nothing was attacked."""
    if not any(compared.texts for cell in cells.values() for compared in cell.against_baseline.values()):
        return ""
    series = [
        Series(
            mode,
            [cell.against_baseline[mode].difference for cell in cells.values()],
            COLOURS[mode],
            marker=MARKERS[mode],
        )
        for mode in MODES
    ]

    def draw(axes: Axes) -> None:
        plot_rows(axes, list(cells), series, xlabel=f"success rate less {BASELINE}'s, points")
        axes.axvline(0, color=COLOURS[BASELINE], linewidth=1)
        axes.set_xlim(*_around(series))

    return draw_plot("advantage", (8.2, 1.0 + 0.55 * len(cells)), draw)


def _around(series: Sequence[Series]) -> tuple[float, float]:
    """Limits around every interval and 0."""
    ends = [
        end
        for entry in series
        for _, interval in entry.measured()
        for end in (interval["low"], interval["high"])
        if end is not None
    ]
    low, high = min([0.0, *ends]), max([0.0, *ends])
    room = 0.03 * (high - low) or 0.1
    return low - room, high + room


def curves_plot(cells: Mapping[str, CellNumbers]) -> str:
    """Figure 2, a panel for each cell; empty if nothing was attacked."""
    shown = {
        name: cell for name, cell in cells.items() if any(attack.attacked for attack in cell.here.attacks.values())
    }
    rows = -(-len(shown) // _PANEL_COLUMNS)
    draws = [partial(_draw_curves, name=name, cell=cell) for name, cell in shown.items()]
    return draw_panels("curves", (9.6, 0.4 + 2.7 * rows), draws, columns=_PANEL_COLUMNS, legend=True)


def _draw_curves(axes: Axes, name: str, cell: CellNumbers) -> None:
    from matplotlib.ticker import PercentFormatter

    curve = cell.here.curve
    end = where_flat(curve)
    plot_curves(
        axes,
        curve_series(curve, end),
        xlabel="words that may change, %",
        ylabel="accuracy, %",
        spread="none",
        legend="none",
    )
    axes.set_title(name, fontsize=10)
    axes.xaxis.set_major_formatter(PercentFormatter(xmax=1, decimals=0, symbol=""))
    if cell.published is not None:
        right = curve.caps[end - 1] * 1.08
        for attack in ATTACKS:
            axes.plot(
                [right],
                [cell.published[attack].accuracy / 100],
                MARKERS[attack],
                markerfacecolor="none",
                markeredgecolor=COLOURS[attack],
                markersize=6,
            )
