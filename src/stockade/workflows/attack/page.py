"""The report of one or more attacks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice
from statistics import median
from typing import Any

from stockade.core.records import Status
from stockade.report.charts import Series, plot_rows
from stockade.report.document import Block, Details, Document, Heading, Note, Plot, Table, code
from stockade.report.examples import Example, Examples, Filter, record_example
from stockade.report.figures import CLEAN, ROBUST, draw_plot
from stockade.report.numbers import number, percent
from stockade.report.render_json import indented
from stockade.workflows.attack.result import AttackResult
from stockade.workflows.attack.summary import mostly_untried

EXAMPLES_PER_ATTACK = 200
COLUMNS = (
    "attack",
    "n",
    "clean accuracy",
    "robust accuracy",
    "success rate",
    "queries",
    "changed words",
    "similarity",
    "seconds",
)
_ORDER: tuple[Status, ...] = ("success", "error", "failed", "skipped")
_HOW_TO_READ = (
    "Clean accuracy: right on the unchanged text. Robust accuracy: right and not fooled. Success rate: fooled, of "
    "those it got right. Shares with 95 % Wilson intervals; queries and changed words are means; similarity is "
    "{scale}, over successes."
)


_UNLABELLED = (
    "The data have no labels: the model's own predictions were attacked, and nothing is known of its accuracy. Success "
    "rate: predictions changed, with 95 % Wilson intervals; queries and changed words are means; similarity is "
    "{scale}, over successes."
)
_MOST_CLASSES = 20
"""Pages show the classes one by one up to so many."""


def attack_document(results: Sequence[AttackResult]) -> Document:
    """The report: findings, numbers, plot, examples with diffs, manifest."""
    several = len(results) > 1
    blocks: list[Block] = []
    for result in results:
        blocks += _numbers(result, several)
    blocks.append(Plot(lambda: accuracy_plot(results), "Accuracy on clean texts and under attack.", "attacks"))
    blocks.append(Heading("Examples"))
    for result in results:
        if several:
            blocks.append(Heading(result.name, level=3))
        blocks.append(_examples(result))
    blocks.append(Heading("Manifest"))
    blocks += [Details(result.name, indented(result.manifest.described())) for result in results]
    return Document(
        title=", ".join(result.name for result in results),
        about="Attack report.",
        blocks=tuple(blocks),
        data=results[0].summary if not several else [result.summary for result in results],
    )


def _numbers(result: AttackResult, several: bool) -> Iterator[Block]:
    summary = result.summary
    if several:
        yield Heading(result.name)
    for name in result.attacks:
        yield Note(finding(result, name), kind="finding")
    if not summary["complete"]:
        yield Note(("Not complete. Resume it with ", code(f"stockade resume {result.folder}")), kind="warning")
    for remark in summary["remarks"]:
        yield Note(remark)
    for warning in summary["warnings"]:
        yield Note(warning, kind="warning")
    scale = result.spec.similarity_scale or "not measured"
    yield Note(
        ("Model ", code(summary["model"]), " on ", code(summary["data"]), f", {summary['examples']:,} texts."),
        kind="aside",
    )
    yield summary_table([result], caption=(_HOW_TO_READ if result.labelled else _UNLABELLED).format(scale=scale))
    if 1 < len(result.labels) <= _MOST_CLASSES and result.labelled:
        yield class_table(result)


def finding(result: AttackResult, attack: str) -> str:
    """What one attack did, in a sentence or two."""
    numbers = result.summary["attacks"][attack]
    if not numbers["attacked"]:
        return f"{attack}: no text was attacked."
    if mostly_untried(numbers["untried"], numbers["attacked"]):
        left = numbers["attacked"] - numbers["untried"]
        others = f"; of the other {left:,}, {numbers['succeeded']:,} were fooled" if left else ""
        return (
            f"{attack}: not attacked. On {numbers['untried']:,} of {numbers['attacked']:,} texts there was nothing to "
            f"try ({numbers['untried_reason']}){others}."
        )
    rate = numbers["success_rate"]
    fooled = "texts fooled" if result.labelled else "predictions changed"
    sentence = (
        f"{attack}: {numbers['succeeded']:,} of {numbers['attacked']:,} {fooled} ({100 * rate['value']:.0f} %, "
        f"95 % interval {100 * rate['low']:.0f}–{100 * rate['high']:.0f} %)."
    )
    if result.labelled:
        sentence += f" Robust accuracy {100 * numbers['robust_accuracy']['value']:.0f} %."
    changed = [len(record.edits) for record in result.records(attack, "success")]
    if changed:
        words = median(changed)
        sentence += f" Median {words:g} word{'' if words == 1 else 's'} changed."
    return sentence


def summary_table(results: Sequence[AttackResult], names: Sequence[str] | None = None, caption: str = "") -> Table:
    """One row per run and attack; `names` are what the runs are called, if there are several."""
    several = len(results) > 1
    rows = [
        (*([label] if several else []), *_cells(attack, numbers))
        for label, result in zip(names or [result.name for result in results], results, strict=True)
        for attack, numbers in result.summary["attacks"].items()
    ]
    columns = (*(["run"] if several else []), *COLUMNS)
    numeric = range(1 + several, len(columns))
    return Table(columns, tuple(rows), caption=caption, numeric=numeric, grouped=1 if several else 0)


def _cells(attack: str, numbers: Mapping[str, Any]) -> tuple[str, ...]:
    robust = numbers["robust_accuracy"]
    return (
        attack,
        f"{numbers['n']:,}" + (f" (+{numbers['errors']:,} errors)" if numbers["errors"] else ""),
        percent(numbers["clean_accuracy"]),
        "not attacked" if mostly_untried(numbers["untried"], numbers["attacked"]) else percent(robust),
        percent(numbers["success_rate"]),
        number(numbers["mean_queries"]),
        number(numbers["mean_perturbed_percent"], 1, " %"),
        number(numbers["mean_similarity"], 3),
        number(numbers["seconds"]),
    )


def class_table(result: AttackResult) -> Table:
    """What became of the texts of each class, by attack."""
    rows = [
        (
            attack,
            label,
            f"{numbers['n']:,}",
            f"{numbers['predicted']:,}",
            percent(numbers["clean_accuracy"]),
            percent(numbers["robust_accuracy"]),
            percent(numbers["success_rate"]),
        )
        for attack, classes in result.summary["classes"].items()
        for label, numbers in classes.items()
    ]
    columns = ("attack", "class", "texts", "predicted", "clean accuracy", "robust accuracy", "success rate")
    caption = "By true class. Predicted: how many of all unchanged texts the model gives that class."
    return Table(columns, rows, title="By class", caption=caption, numeric=range(2, len(columns)), grouped=1)


def accuracy_plot(results: Sequence[AttackResult]) -> str:
    """Clean and robust accuracy of each attack with 95 % intervals; empty when nothing was measured."""
    several = len(results) > 1
    rows = {
        f"{result.name}: {name}" if several else name: numbers
        for result in results
        for name, numbers in result.summary["attacks"].items()
        if numbers["n"] and result.labelled
    }
    if not rows:
        return ""
    series = [
        Series("clean", [numbers["clean_accuracy"] for numbers in rows.values()], CLEAN),
        Series("under attack", [numbers["robust_accuracy"] for numbers in rows.values()], ROBUST),
    ]
    size = (8.2, 0.9 + 0.5 * len(rows))
    return draw_plot("attacks", size, lambda axes: plot_rows(axes, list(rows), series, xlabel="accuracy, %"))


def _examples(result: AttackResult) -> Examples:
    """Of each attack the successes first, then errors, failures and skipped texts, up to a limit."""
    items: list[Example] = []
    left_out = 0
    for attack in result.attacks:
        records = chain.from_iterable(result.records(attack, status) for status in _ORDER)
        chosen = list(islice(records, EXAMPLES_PER_ATTACK))
        items += [record_example(record, labelled=result.labelled) for record in chosen]
        numbers = result.summary["attacks"][attack]
        left_out += numbers["n"] + numbers["errors"] - len(chosen)
    more = f"{left_out:,} more examples are in the run: stockade export {result.folder}" if left_out else ""
    filters = (Filter("status", "Status", selected="success"), Filter("attack", "Attack"))
    return Examples(items=items, filters=filters, search=True, more=more)
