"""The page of the study of ensembles."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from stockade.report.charts import Point, Series, plot_curves, plot_points
from stockade.report.diff import premise_pieces, record_pieces
from stockade.report.document import Block, Cell, Details, Document, Heading, Note, Paragraph, Plot, Prose, Table, code
from stockade.report.examples import Example, Examples, Version
from stockade.report.figures import AMBER, BLUE, GREEN, GREY, RED, SOFT, draw_plot, legend_beside
from stockade.report.numbers import NOT_AVAILABLE, count, number, percent, percent_cell, plain_percent
from stockade.studies.claims import claims_in_short, claims_table
from stockade.studies.ensemble.analysis import (
    EXHAUSTIVE,
    GENETIC,
    GREEDY,
    SINGLE,
    EnsembleNumbers,
    MeasuredEnsemble,
    Selection,
)
from stockade.studies.ensemble.outside import read_answers
from stockade.studies.ensemble.published import HUMAN
from stockade.studies.ensemble.study import EnsembleResult
from stockade.studies.frame import study_document

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LOOKS = {
    SINGLE: (GREY, "X"),
    GENETIC: (BLUE, "o"),
    GREEDY: (GREEN, "s"),
    EXHAUSTIVE: (AMBER, "D"),
    HUMAN: (RED, "^"),
}
_SHOWN_TEXTS = 6
_MEASURED = (
    "The mean share of an ensemble's adversarial texts that models outside it get wrong, with 95 % intervals by "
    "resampled texts; each ensemble is averaged over the models outside that ensemble, as in the paper."
)
_FITNESS = (
    "Fitness: the mean over all targets of the matrix of the largest rate of a member. Upper bound: no ensemble of the "
    "size can have more. At least: the share of the best fitness that the greedy search is proved to reach."
)
_SUBMODULAR = (
    "The fitness is monotone and submodular (facility location): a member more never lowers it and adds the less the "
    "more there are. So adding the best model again and again reaches at least 1 − (1 − 1/m)^m, more than 1 − 1/e or "
    "63 %, of the best ensemble of m members; the bound that it proves on this matrix is closer. Up to 4 members every "
    "ensemble is looked at, so no genetic search is needed."
)
_PROXY = (
    "The fitness is a proxy. It is made of the rates of single sources, not of an ensemble whose logits are averaged; "
    "it counts members themselves as targets, with their base rates; and it takes the best member for each target, "
    "while the averaged logits may please none of them."
)
_CLAIMS = (
    "A claim is held if the 95 % interval of the difference is above 0, and not held if it is below; otherwise there "
    "are too few texts to tell. Ensembles are compared on the models that are in neither."
)
_PUBLISHED = (
    "The ensembles of the paper's Table 8, with their fitness on this matrix. AG and MR are the paper's data, PWWS and "
    "GA its attacks; on the matrix of one of them its own ensembles should do well."
)


def ensemble_document(result: EnsembleResult) -> Document:
    """The whole page."""
    return study_document(result, about=_about(result), findings=findings(result), blocks=_blocks(result))


def _about(result: EnsembleResult) -> Prose:
    summary, numbers = result.summary, result.numbers
    searched = (
        "Ensembles whose adversarial texts fool other models (section 4.1 of the transfer paper), chosen on ",
        code(summary["matrix"]),
        f", {numbers.sources} sources × {numbers.targets} targets",
    )
    if not numbers.ensembles:
        return (*searched, ". No ensemble was attacked: name models and data to measure what the fitness promises.")
    return (
        *searched,
        "; attacked with ",
        code(summary["attack"]),
        " on ",
        code(summary["data"]),
        f", {count(summary['texts'], 'text')}, seed {summary['seed']}. Members and targets are bare models.",
    )


def findings(result: EnsembleResult) -> list[str]:
    """The study in a few sentences; every one follows from the tables."""
    numbers = result.numbers
    sentences = [_fittest(numbers)]
    measured = {name: entry for name, entry in numbers.ensembles.items() if entry.transfer["value"] is not None}
    if numbers.ensembles and not measured:
        sentences.append("No adversarial text was found, or no model is outside of an ensemble.")
    if measured:
        several = [entry for entry in measured.values() if len(entry.members) > 1] or list(measured.values())
        best = max(several, key=lambda entry: entry.transfer["value"] or 0.0)
        sentences.append(
            f"The texts of {' + '.join(best.members)} transfer best: {percent(best.transfer)} of the answers of "
            f"{count(best.targets, 'other model')} are wrong."
        )
        singles = [entry for entry in measured.values() if SINGLE in entry.methods]
        if singles:
            sentences.append(
                f"Those of the best single source, {singles[0].members[0]}: {percent(singles[0].transfer)}."
            )
        sentences.append(claims_in_short(result.claims))
    return sentences


def _fittest(numbers: EnsembleNumbers) -> str:
    best = max(numbers.selections, key=lambda entry: (entry.fitness, -entry.size))
    methods = [entry.method for entry in numbers.selections if entry.members == best.members]
    return f"The highest fitness is {best.fitness:.4f}: {' + '.join(best.members)} ({', '.join(methods)})."


def _blocks(result: EnsembleResult) -> Iterator[Block]:
    numbers = result.numbers
    if numbers.ensembles:
        yield Heading("Transfer against size", aside="Figure 1")
        yield Plot(lambda: size_plot(numbers), _lines_in_words(numbers), "sizes")
        yield _size_table(numbers)
        yield Heading("What the paper claims, and what is seen here")
        yield claims_table(result.claims, _CLAIMS)
    yield Heading("Fitness on the matrix")
    yield _fitness_table(numbers)
    yield Note(_SUBMODULAR, kind="aside")
    if numbers.ensembles:
        yield Heading("Fitness against measured transfer")
        yield Paragraph((_PROXY, _correlation(numbers)))
        yield Plot(lambda: proxy_plot(numbers), name="proxy")
        yield _measured_table(numbers)
        yield Heading("Who is fooled")
        yield _family_table(numbers.ensembles)
    else:
        yield Heading("The ensembles")
        yield _selection_table(numbers.selections)
    yield Heading("The paper's ensembles", aside="Table 8")
    published = _published_table(numbers)
    yield Details("The ensembles of the paper and their fitness here", [published]) if numbers.ensembles else published
    yield from _texts(result)


def _lines_in_words(numbers: EnsembleNumbers) -> str:
    return (
        f"Lines: the mean rate of a model to another training of itself ({plain_percent(numbers.base_rate)}), and over "
        f"all pairs of different models ({plain_percent(numbers.pair_rate)}), both from the matrix."
    )


def size_plot(numbers: EnsembleNumbers) -> str:
    """Figure 1: transfer against size for each way to choose, between the two lines; empty if nothing was measured."""
    series, ends = [], [numbers.base_rate or 0.0]
    for method, (colour, marker) in _LOOKS.items():
        chosen = [entry for entry in numbers.selections if entry.method == method]
        values = [numbers.ensembles[entry.ensemble].transfer for entry in chosen]
        measured = [value["high"] or value["value"] or 0.0 for value in values if value["value"] is not None]
        if measured:
            series.append(Series(method, values, colour, [entry.size for entry in chosen], "-", marker))
            ends += measured
    if not series:
        return ""

    def draw(axes: Axes) -> None:
        plot_curves(axes, series, xlabel="members", ylabel="transfer, %", spread="bars", aside=0.07, legend="none")
        for level, label, line in (
            (numbers.base_rate, "mean base rate", "--"),
            (numbers.pair_rate, "mean over all pairs", ":"),
        ):
            if level is not None:
                axes.axhline(level, color=SOFT, linewidth=1.4, linestyle=line, label=label)
        axes.set_ylim(0, min(1.02, 1.1 * max(ends) or 1.02))
        axes.set_xticks(sorted({int(x) for entry in series for x in entry.xs}))
        legend_beside(axes)

    return draw_plot("ensemble-sizes", (8.2, 3.8), draw)


def _size_table(numbers: EnsembleNumbers) -> Table:
    methods = [method for method in _LOOKS if any(entry.method == method for entry in numbers.selections)]
    chosen = {(entry.size, entry.method): numbers.ensembles[entry.ensemble] for entry in numbers.selections}
    rows: list[list[str | Cell]] = []
    for size in sorted({entry.size for entry in numbers.selections}):
        cells = [chosen.get((size, method)) for method in methods]
        rows.append([str(size), *("" if entry is None else percent_cell(entry.transfer) for entry in cells)])
    return Table(("members", *methods), rows, caption=_MEASURED)


def _fitness_table(numbers: EnsembleNumbers) -> Table:
    methods = [method for method in _LOOKS if any(entry.method == method for entry in numbers.selections)]
    fitness = {(entry.size, entry.method): entry.fitness for entry in numbers.selections}
    bounds = {bound.size: bound for bound in numbers.bounds}
    rows = []
    for size in sorted({entry.size for entry in numbers.selections}):
        bound = bounds.get(size)
        proved = (
            ("", "") if bound is None else (f"{bound.upper_bound:.4f}", plain_percent(bound.greedy / bound.upper_bound))
        )
        found = [fitness.get((size, method)) for method in methods]
        rows.append((str(size), *("" if value is None else f"{value:.4f}" for value in found), *proved))
    return Table(("members", *methods, "upper bound", "greedy: at least"), rows, caption=_FITNESS)


def _correlation(numbers: EnsembleNumbers) -> str:
    if numbers.rank_correlation is None:
        return " There are too few ensembles to say how far it can be trusted here."
    return (
        f" Over the {len(numbers.ensembles)} ensembles that were attacked, Spearman's rank correlation of fitness and "
        f"measured transfer is {numbers.rank_correlation:.2f}."
    )


def proxy_plot(numbers: EnsembleNumbers) -> str:
    """Measured transfer against fitness, a point for each ensemble; empty if nothing was measured."""
    seen: set[str] = set()
    points = []
    for entry in numbers.ensembles.values():
        method = entry.methods[0]
        colour, marker = _LOOKS[method]
        label = "" if method in seen else method
        seen.add(method)
        points.append(Point(x=entry.fitness, y=entry.transfer, label=label, colour=colour, marker=marker))
    if not any(entry.transfer["value"] is not None for entry in numbers.ensembles.values()):
        return ""

    def draw(axes: Axes) -> None:
        plot_points(axes, points, xlabel="fitness", ylabel="transfer, %", percent="none", legend="beside")
        axes.yaxis.set_major_formatter(lambda share, _: f"{100 * share:g}")
        axes.set_ylim(bottom=0)

    return draw_plot("ensemble-proxy", (8.2, 3.4), draw)


def _measured_table(numbers: EnsembleNumbers) -> Table:
    columns = ("members", "chosen by", "fitness", "outside", "transfer", "right before", "fooled", "shown", "queries")
    rows = [
        (
            " + ".join(entry.members),
            ", ".join(entry.methods),
            f"{entry.fitness:.4f}",
            number(entry.outside_fitness, 4),
            percent_cell(entry.transfer),
            percent_cell(entry.clean_transfer),
            f"{entry.succeeded:,} of {entry.attacked:,}",
            f"{entry.sampled:,}",
            number(entry.mean_queries),
        )
        for entry in sorted(numbers.ensembles.values(), key=lambda entry: (len(entry.members), -entry.fitness))
    ]
    caption = (
        "Outside: the fitness over the targets that are no members, which is what the matrix predicts of the transfer. "
        "Right before: the transfer if only texts count that the other model gets right before the attack. Fooled: "
        "texts that fool the ensemble, of those it gets right. Shown: how many of them other models were shown."
    )
    return Table(columns, rows, caption=caption, numeric=range(2, len(columns)))


def _family_table(ensembles: Mapping[str, MeasuredEnsemble]) -> Table:
    families = list(dict.fromkeys(family for entry in ensembles.values() for family in entry.families))
    rows = [
        (
            " + ".join(entry.members),
            *(plain_percent(entry.families[family]) if family in entry.families else "" for family in families),
        )
        for entry in sorted(ensembles.values(), key=lambda entry: (len(entry.members), -entry.fitness))
    ]
    caption = "Transfer to the models outside, by what they read. Empty: all models of the kind are members."
    return Table(("ensemble", *families), rows, caption=caption)


def _selection_table(selections: Sequence[Selection]) -> Table:
    rows = [(entry.method, str(entry.size), " + ".join(entry.members), f"{entry.fitness:.4f}") for entry in selections]
    return Table(("chosen by", "size", "members", "fitness"), rows, numeric=(1, 3))


def _published_table(numbers: EnsembleNumbers) -> Table:
    rows = [
        (
            entry.selector,
            str(entry.size),
            " + ".join(entry.members),
            NOT_AVAILABLE if entry.fitness is None else f"{entry.fitness:.4f}",
            ", ".join(entry.missing),
        )
        for entry in numbers.published
    ]
    columns = ("chosen by", "size", "members", "fitness here", "not in the matrix")
    return Table(columns, rows, caption=_PUBLISHED, numeric=(1, 3), grouped=1)


def _texts(result: EnsembleResult) -> Iterator[Block]:
    """The texts of the ensemble that transfers best which fool most other models."""
    measured = {
        name: entry.transfer["value"]
        for name, entry in result.numbers.ensembles.items()
        if entry.transfer["value"] is not None
    }
    if not measured:
        return
    best = max(measured, key=lambda name: (len(result.ensembles[name]) > 1, measured[name] or 0.0))
    wrong_answers = [answers.wrong for (_, name), answers in read_answers(result.store).items() if name == best]
    records = {record.id: record for record in result.samples[best]}
    fooled = {id: sum(wrong.get(id, False) for wrong in wrong_answers) for id in records}
    chosen = sorted(records, key=lambda id: -fooled[id])[:_SHOWN_TEXTS]
    yield Heading("Texts that fool most other models", aside=best.replace("+", " + "))
    yield Examples(
        items=[
            Example(
                text=records[id].original,
                premise=premise_pieces(records[id]),
                details=(f"example {id}", records[id].label),
                versions=[
                    Version(
                        f"fools {fooled[id]} of {count(len(wrong_answers), 'other model')}",
                        record_pieces(records[id]),
                        records[id].adversarial_prediction or "",
                    )
                ],
            )
            for id in chosen
        ],
        preview=2,
        more=f"All others: stockade show {result.runs[best].folder}",
    )
