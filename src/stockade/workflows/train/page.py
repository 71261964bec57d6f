"""The report of a training, also while it runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from stockade.core.statistics import wilson
from stockade.defenses.registry import DEFENSES
from stockade.report.document import Block, Details, Document, Heading, Note, Plot, Table, code
from stockade.report.figures import CLEAN, INK, RED, bare, draw_plot, legend_above
from stockade.report.heat_map import HeatMap
from stockade.report.numbers import NOT_AVAILABLE, count, number, percent, percent_cell, plain_percent
from stockade.report.render_json import indented
from stockade.workflows.attack.summary import majority_warning
from stockade.workflows.train.result import TrainResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_RELOAD_SECONDS, _MOST_SHOWN = 5, 30


def training_document(result: TrainResult) -> Document:
    """Findings, curves, epochs and options; a page of a running training loads itself again."""
    summary, epochs = result.summary, result.history
    blocks: list[Block] = []
    if epochs:
        blocks.append(Note(_finding(result), kind="finding"))
    if not result.complete:
        blocks.append(
            Note(("Running, or interrupted: resume it with ", code(f"stockade resume {result.folder}")), kind="warning")
        )
    blocks += [Note(warning, kind="warning") for warning in result.warnings]
    blocks += [Note(remark) for remark in result.remarks]
    measure = "BLEU" if result.translates else "accuracy"
    caption = f"Training and validation loss, validation {measure}."
    blocks.append(Plot(lambda: loss_plot(result), caption, "training"))
    rows = [
        (
            str(epoch.number),
            number(epoch.loss, 4),
            number(epoch.validation.loss, 4),
            number(epoch.validation.bleu, 2) if result.translates else number(epoch.validation.accuracy, 4),
            number(epoch.seconds),
        )
        for epoch in epochs
    ]
    columns = ("epoch", "training loss", "validation loss", f"validation {measure}", "seconds")
    blocks.append(Table(columns, tuple(rows), numeric=range(5)))
    blocks += _classes(result) if epochs else []
    options = [(name, str(value)) for name, value in result.manifest.spec["options"].items()]
    blocks.append(Details("Options", (Table(("option", "value"), tuple(options)),)))
    blocks.append(Details("Manifest", indented(result.manifest.described())))
    return Document(
        title=_title(result),
        about=(
            code(result.spec.name),
            f" in {result.name}, trained on ",
            code(summary["data"]),
            f", {count(len(epochs), 'epoch')}, {result.seconds:.0f} seconds",
        ),
        blocks=tuple(blocks),
        data=summary,
        refresh_seconds=None if result.complete else _RELOAD_SECONDS,
    )


def _title(result: TrainResult) -> str:
    """The result in a line."""
    if not result.history:
        return f"{result.spec.name} has not finished an epoch yet"
    validation = result.best.validation
    if validation.bleu is not None:
        return f"{result.spec.name}: BLEU {validation.bleu:.1f}"
    if validation.accuracy is None:
        return f"{result.spec.name}: validation loss {validation.loss:.4f}"
    return f"{result.spec.name} is right on {plain_percent(validation.accuracy)} of the validation texts"


def _classes(result: TrainResult) -> Iterator[Block]:
    """What the saved weights do with the texts of each class: a warning, the classes, and which is taken for which."""
    validation, classes = result.best.validation, result.classes
    if not validation.totals or len(classes) != len(validation.totals):
        return
    confusion = validation.confusion
    predicted = [sum(row[at] for row in confusion) for at in range(len(classes))] if confusion else []
    yield Heading("By class")
    truth = {name: total for name, total in zip(classes, validation.totals, strict=True) if total}
    predicted_counts = dict(zip(classes, predicted, strict=True)) if predicted else {}
    warnings = majority_warning(sum(validation.right), truth, predicted_counts) if predicted_counts else []
    yield from (Note(warning, kind="warning") for warning in warnings)
    rows = [
        (
            name,
            f"{total:,}",
            f"{predicted_counts[name]:,}" if predicted_counts else NOT_AVAILABLE,
            percent_cell(wilson(right, total)),
            percent_cell(wilson(right, predicted_counts[name] if predicted_counts else 0)),
        )
        for name, right, total in zip(classes, validation.right, validation.totals, strict=True)
    ]
    caption = (
        f"On the validation texts, after epoch {result.best.number}. Recall: right, of the texts of the class. "
        "Precision: right, of the texts that were given the class. 95 % Wilson intervals."
    )
    yield Table(("class", "texts", "predicted", "recall", "precision"), rows, caption=caption)
    if confusion and len(classes) <= _MOST_SHOWN:
        yield HeatMap(
            rows=classes,
            columns=classes,
            values=tuple(tuple(_share(cell, row) for cell in row) for row in confusion),
            title="Which class is taken for which",
            caption="Rows are true classes, columns predictions; each number is a share of its row, in percent.",
            hovers=tuple(tuple(f"{cell:,} of {sum(row):,} texts" for cell in row) for row in confusion),
        )


def _share(cell: int, row: Sequence[int]) -> float | None:
    return cell / sum(row) if sum(row) else None


def _finding(result: TrainResult) -> str:
    best, accuracy = result.best, result.summary["accuracy"]
    if best.validation.bleu is not None:
        return (
            f"BLEU {best.validation.bleu:.1f} on the validation sentences, cased and decoded greedily, after epoch "
            f"{best.number}, the best of {len(result.history)}."
        )
    if accuracy is None:
        return (
            f"Validation loss {best.validation.loss:.4f} after epoch {best.number}, the best of {len(result.history)}."
        )
    texts = sum(best.validation.totals)
    names = [defense["name"] for defense in result.manifest.spec["defenses"] or ()]
    altering = [name for name in names if name in DEFENSES and DEFENSES[name].alters_training_texts]
    shown = f" as {' and '.join(altering)} shows them" if altering else ""
    return (
        f"Right on {percent(accuracy)} of {texts:,} validation texts{shown} after epoch {best.number}, the best of "
        f"{len(result.history)}."
    )


def loss_plot(result: TrainResult) -> str:
    """The loss after each part of the training, and what each epoch was worth on validation texts."""
    epochs = result.history

    def draw(axes: Axes) -> None:
        steps, losses = [step for step, _ in result.curve], [loss for _, loss in result.curve]
        axes.plot(steps, losses, color=CLEAN, label="loss")
        ends = [epoch.steps for epoch in epochs]
        axes.plot(ends, [epoch.validation.loss for epoch in epochs], "o--", color=INK, label="validation loss")
        axes.set_xlabel("step")
        axes.set_ylabel("loss")
        measured = [epoch.validation.bleu if result.translates else epoch.validation.accuracy for epoch in epochs]
        scored = [(end, score) for end, score in zip(ends, measured, strict=True) if score is not None]
        if scored:
            measure = "BLEU" if result.translates else "accuracy"
            right = axes.twinx()
            right.plot(*zip(*scored, strict=True), "o-", color=RED)
            axes.plot([], [], "o-", color=RED, label=f"validation {measure}")
            right.set_ylim(0, None if result.translates else 1)
            right.set_ylabel(measure)
            bare(right)
        legend_above(axes, 3)

    return draw_plot("training", (8.2, 3.4), draw) if epochs else ""
