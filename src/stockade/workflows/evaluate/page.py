"""The report of an evaluation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from stockade.report.charts import Point, plot_points
from stockade.report.document import Block, Bullets, Details, Document, Heading, Note, Plot, code
from stockade.report.figures import GRID, INK, MARKERS, PALETTE, draw_plot, legend_beside, shortened
from stockade.report.numbers import count
from stockade.report.render_json import indented
from stockade.workflows.evaluate.analysis import Analysis, Row
from stockade.workflows.evaluate.class_table import class_table, premade_findings, premade_title
from stockade.workflows.evaluate.measures import Measure
from stockade.workflows.evaluate.result import EvaluateResult
from stockade.workflows.evaluate.spec import NONE
from stockade.workflows.evaluate.tables import (
    bounded,
    first_flip_of,
    has_first_flips,
    main_table,
    seed_table,
    test_table,
    view_table,
    vote_table,
)
from stockade.workflows.evaluate.texts import cell_table, example_blocks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MADE_WITH = (
    "created", "models", "data", "premade", "attacks", "defenses", "seeds", "eot_samples", "budget", "max_changed",
    "constraint",
)  # fmt: skip


def evaluation_document(result: EvaluateResult) -> Document:
    """The report: findings, warnings, the table, the trade-off, views, votes, tests, seeds, how it was made."""
    analysis, summary = result.analysis, result.summary
    attacked = bool(result.grid.attacks)
    sentences = findings if attacked else premade_findings
    made_with = {name: summary[name] for name in _MADE_WITH}
    blocks: list[Block] = [
        *(Note(sentence, kind="finding") for sentence in sentences(analysis, result.grid.models)),
        *_not_finished(result),
        *(Note(warning, kind="warning") for warning in analysis.warnings),
        *(Note(f"{row.model}, {row.defense}: {remark}") for row in analysis.measured for remark in row.remarks),
        Heading("Accuracy, clean and under attack" if attacked else "Accuracy, clean and pre-made"),
        main_table(analysis, result.grid.attacks, list(summary["premade"]), len(result.grid.seeds)),
        *_failures(analysis),
        *_classes(analysis, list(summary["premade"])),
        *(_trade(analysis, result.grid.models, result.grid.defenses) if attacked else ()),
        *(_sections(analysis, result) if attacked else ()),
        *example_blocks(result),
        *_cells(result),
        Details("How it was made", indented(made_with)),
    ]
    return Document(
        title=_title(analysis) if attacked else premade_title(analysis),
        about=f"Evaluation {result.name}: {about(summary)}",
        blocks=blocks,
        data=summary,
    )


def _title(analysis: Analysis) -> str:
    """The result in a line: the best worst case, or that of the only model."""
    rows = [row for row in analysis.measured if row.worst.robust_accuracy.value is not None]
    if not rows:
        return "Nothing could be measured"
    in_full = [row for row in rows if row.worst.complete] or rows
    best = max(in_full, key=lambda row: row.worst.robust_accuracy.value or 0.0)
    at_best = "At best " if len(rows) > 1 else ""
    around = "without a defense" if best.defense == NONE else f"in {best.defense}"
    share = bounded(best.worst).text
    return f"{at_best}{share} of the texts survive every attack ({best.model} {around}{_by_first_flip(best)})"


def about(summary: Mapping[str, Any]) -> str:
    """What was evaluated, in a sentence."""
    limits = []
    if summary["budget"]:
        limits.append(f"at most {summary['budget']:,} queries per text")
    if summary["max_changed"] is not None:
        limits.append(f"at most {summary['max_changed']:.0%} of the words changed")
    if summary["constraint"]:
        limits.append(f"candidates keep {summary['constraint']}")
    seeds = summary["seeds"]
    named = f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {seeds[0]} to {seeds[-1]}"
    under = f"under {count(len(summary['attacks']), 'attack')}" if summary["attacks"] else "not attacked"
    return (
        f"{count(len(summary['models']), 'model')} in {count(len(summary['defenses']) - 1, 'defense')} and bare, "
        f"{under}, on the same {count(summary['data']['size'], 'text')} of "
        f"{summary['data']['reference']}, {', '.join([named, *limits])}. Intervals are 95 %."
    )


def findings(analysis: Analysis, models: Sequence[str]) -> Iterator[str]:
    """The worst case of each model, in its best defense and bare."""
    for model in models:
        rows = [row for row in analysis.measured if row.model == model and row.worst.robust_accuracy.value is not None]
        if not rows:
            yield f"{model}: nothing could be measured."
            continue
        in_full = [row for row in rows if row.worst.complete]
        best = max(in_full or rows, key=lambda row: row.worst.robust_accuracy.value or 0.0)
        bare = next((row for row in rows if row.defense == NONE), None)
        sentence = (
            f"{model}: {_worst(best)} of the texts survive every attack in its best row, "
            f"{best.defense}{_by_first_flip(best)}"
        )
        if bare is not None and bare is not best:
            sentence += f"; {_worst(bare)} without a defense"
        yield f"{sentence}."


def _not_finished(result: EvaluateResult) -> Iterator[Note]:
    if result.unfinished:
        yield Note(("Not complete. Resume it with ", code(f"stockade resume {result.folder}")), kind="warning")


def _failures(analysis: Analysis) -> Iterator[Block]:
    sentences = failure_sentences(analysis)
    if sentences:
        yield Note("Not measured:", kind="warning")
        yield Bullets(sentences)


def failure_sentences(analysis: Analysis) -> list[str]:
    """What has no number and why: one sentence for each reason."""
    places: dict[tuple[str, str, str], dict[str, list[str]]] = {}
    for failure in analysis.failures:
        by_attack = places.setdefault((failure.model, failure.defense, failure.reason), {})
        views = by_attack.setdefault(failure.attack or "everything", [])
        if failure.view and failure.view not in views:
            views.append(failure.view)
    sentences = []
    for (model, defense, reason), by_attack in places.items():
        attacks = [f"{attack} ({', '.join(views)})" if views else attack for attack, views in by_attack.items()]
        sentences.append(f"{model}, {defense}, {', '.join(attacks)}: {reason.rstrip('.')}.")
    return sentences


def _classes(analysis: Analysis, premade: Sequence[str]) -> Iterator[Block]:
    if premade and analysis.measured:
        yield Heading("Accuracy and F1 on clean and pre-made texts")
        yield class_table(analysis)


def _trade(analysis: Analysis, models: Sequence[str], defenses: Sequence[str]) -> Iterator[Block]:
    hollow = (
        " Hollow: something could not be run, the worst case may be lower."
        if not all(row.worst.complete for row in analysis.measured)
        else ""
    )
    yield Plot(
        lambda: trade_plot(analysis, models, defenses),
        "Up and to the right is better. No model can lie above the dashed line, where nothing clean is ever fooled."
        f"{hollow}",
        "evaluation",
    )


def trade_plot(analysis: Analysis, models: Sequence[str], defenses: Sequence[str]) -> str:
    """What a defense costs in clean accuracy against what it leaves in the worst case; empty if nothing was measured.

    A colour is a model, a shape a defense; hollow where something could not be run.
    """
    colours = {name: PALETTE[at % len(PALETTE)] for at, name in enumerate(models)}
    markers = {name: MARKERS[at % len(MARKERS)] for at, name in enumerate(defenses)}
    rows = [
        row
        for row in analysis.measured
        if row.clean.accuracy.value is not None and row.worst.robust_accuracy.value is not None
    ]
    if not rows:
        return ""
    points = [
        Point(
            x=_interval(row.clean.accuracy),
            y=_interval(row.worst.robust_accuracy),
            colour=colours[row.model],
            marker=markers[row.defense],
            hollow=not row.worst.complete,
        )
        for row in rows
    ]

    def draw(axes: Axes) -> None:
        axes.plot([0, 1], [0, 1], color=GRID, linewidth=1.2, linestyle="--")
        plot_points(axes, points, xlabel="clean accuracy, %", ylabel="worst-case accuracy, %", legend="none")
        left = min(row.clean.accuracy.low or 0.0 for row in rows)
        axes.set_xlim(max(-0.02, left - 0.04), 1.015)
        for model, colour in colours.items():
            axes.plot([], [], "o", color=colour, label=shortened(model))
        for defense, marker in markers.items():
            axes.plot([], [], marker, color=INK, markerfacecolor="none", label=shortened(defense))
        legend_beside(axes)

    return draw_plot("evaluation", (8.2, 4.2), draw)


def _sections(analysis: Analysis, result: EvaluateResult) -> Iterator[Block]:
    grid, eot_samples = result.grid, result.manifest.spec["eot_samples"]
    yield Heading("Robust accuracy by view: what an attack sees of the model")
    yield view_table(analysis, eot_samples)
    if has_first_flips(analysis):
        yield Heading("The same by the first flip")
        yield view_table(analysis, eot_samples, first_flip=True)
    votes = vote_table(analysis)
    if votes is not None:
        yield Heading("Do the votes tell a search anything?")
        yield votes
    tests = test_table(analysis, grid.attacks, len(grid.seeds))
    if tests is not None:
        yield Heading("Each defense against none (McNemar)")
        yield tests
    if len(grid.seeds) > 1:
        yield Heading("The worst case by seed")
        yield seed_table(analysis, grid.seeds)


def _cells(result: EvaluateResult) -> Iterator[Block]:
    table = cell_table(result)
    if table is not None:
        yield Heading("The cells")
        yield table


def _worst(row: Row) -> str:
    cell = bounded(row.worst)
    return f"{cell.text} ({cell.detail})" if cell.detail else cell.text


def _by_first_flip(row: Row) -> str:
    """The worst case as papers count it, beside what repeats; nothing for models that always answer alike."""
    if row.worst.first_flip is None:
        return ""
    return f", where half of the answers decide; {bounded(first_flip_of(row.worst)).text} by the first flip"


def _interval(measure: Measure) -> dict[str, float | None]:
    return {"value": measure.value, "low": measure.low, "high": measure.high}
