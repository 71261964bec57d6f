"""The report of one or more attacks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice
from statistics import median
from typing import Any

from stockade.core.records import Status
from stockade.core.shares import at_most
from stockade.experiment.usage import usage_sentence
from stockade.report.charts import Series, plot_histogram, plot_rows
from stockade.report.document import Block, Details, Document, Heading, Note, Plot, Table, code, texts_and_manifests
from stockade.report.examples import CHANGED, QUERIES, SIMILARITY, Example, Examples, Filter, record_example
from stockade.report.figures import AMBER, CLEAN, ROBUST, draw_panels, draw_plot
from stockade.report.numbers import NOT_AVAILABLE, plain_percent
from stockade.report.render_json import indented
from stockade.workflows.attack.result import AttackResult
from stockade.workflows.attack.summary import mostly_untried
from stockade.workflows.attack.tables import class_table, has_first_flips, summary_table, variant_of

EXAMPLES_PER_ATTACK = 200
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
    blocks += _effort(results)
    blocks.append(Heading("Examples"))
    blocks += texts_and_manifests(
        [(result.name, _examples(result), indented(result.manifest.described())) for result in results]
    )
    return Document(
        title=_title(results),
        about=f"Attack report of {', '.join(result.name for result in results)}.",
        blocks=tuple(blocks),
        data=results[0].summary if not several else [result.summary for result in results],
    )


def _title(results: Sequence[AttackResult]) -> str:
    """The result in a line: what the strongest attack does."""
    measured = [
        (numbers["success_rate"]["value"], result, attack)
        for result in results
        for attack, numbers in result.summary["attacks"].items()
        if numbers["attacked"]
    ]
    if not measured:
        return "No text was attacked"
    rate, result, attack = max(measured, key=lambda entry: entry[0])
    variant = variant_of(result.summary["attacks"][attack])
    what = "texts" if all(result.labelled for result in results) else "predictions"
    verb = "fools" if what == "texts" else "changes"
    of_run = f" of {result.name}" if len(results) > 1 else ""
    flipped = result.summary["attacks"][attack].get("first_flip_success_rate")
    rules = "" if flipped is None else f" repeatedly, {plain_percent(flipped['value'], 0)} at the first flip"
    return f"{attack}{variant} {verb} {plain_percent(rate, 0)} of the {what}{of_run}{rules}"


def _effort(results: Sequence[AttackResult]) -> Iterator[Block]:
    """How many words were changed and how many queries it took, as histograms and in numbers."""
    changed, queries = _by_attack(results, "success"), _by_attack(results)
    if not any(queries.values()):
        return
    yield Plot(
        lambda: effort_plot(changed, queries),
        "How many words were changed in the texts that fool the model, and how many queries each attacked text took.",
        "effort",
    )
    rows = [
        (name, *_quantiles([edits for edits, _ in changed[name]]), *_quantiles([asked for _, asked in values]))
        for name, values in queries.items()
    ]
    columns = ("attack", "changed words, median", "90 %", "most", "queries, median", "90 %", "most")
    yield Details("Changed words and queries in numbers", (Table(columns, tuple(rows)),))


def _by_attack(results: Sequence[AttackResult], status: Status | None = None) -> dict[str, list[tuple[int, int]]]:
    """Changed words and queries of each text that was attacked, by run and attack."""
    several = len(results) > 1
    return {
        f"{result.name}: {attack}" if several else attack: [
            (len(record.edits), record.queries)
            for record in result.records(attack, status)
            if record.status in ("success", "failed")
        ]
        for result in results
        for attack in result.attacks
    }


def _quantiles(values: Sequence[int]) -> tuple[str, str, str]:
    if not values:
        return NOT_AVAILABLE, NOT_AVAILABLE, NOT_AVAILABLE
    ordered = sorted(values)
    at_ninety = ordered[min(len(ordered) - 1, at_most(0.9, len(ordered)))]
    return f"{median(ordered):g}", f"{at_ninety:,}", f"{ordered[-1]:,}"


def effort_plot(
    changed: Mapping[str, Sequence[tuple[int, int]]], queries: Mapping[str, Sequence[tuple[int, int]]]
) -> str:
    """Two histograms side by side, with a line for each attack: changed words, and queries.

    Parameters
    ----------
    changed
        Changed words and queries of the texts that fool the model, by attack.
    queries
        The same of all texts that were attacked.
    """
    words = {name: [edits for edits, _ in values] for name, values in changed.items()}
    asked = {name: [number for _, number in values] for name, values in queries.items()}
    panels = [
        lambda axes: plot_histogram(axes, words, xlabel="changed words", ylabel="texts"),
        lambda axes: plot_histogram(axes, asked, xlabel="queries", ylabel="texts"),
    ]
    return draw_panels("effort", (8.2, 2.9), panels, columns=2, legend=len(words) > 1)


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
    if "usage" in summary:
        yield Note(usage_sentence(summary["usage"]), kind="aside")
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
    if "first_flip_success_rate" in numbers:
        fooled += " in at least half of the model's answers"
    sentence = (
        f"{attack}{variant_of(numbers)}: {numbers['succeeded']:,} of {numbers['attacked']:,} {fooled} "
        f"({100 * rate['value']:.0f} %, 95 % interval {100 * rate['low']:.0f}–{100 * rate['high']:.0f} %)."
    )
    if result.labelled:
        sentence += f" Robust accuracy {100 * numbers['robust_accuracy']['value']:.0f} %."
    changed = [len(record.edits) for record in result.records(attack, "success")]
    if changed:
        words = median(changed)
        sentence += f" Median {words:g} word{'' if words == 1 else 's'} changed."
    if numbers.get("decision_based"):
        sentence += " The model only names classes, so the search followed its labels."
    return sentence + _first_flips(numbers, result.labelled)


def _first_flips(numbers: Mapping[str, Any], labelled: bool) -> str:
    """What papers would say of an attack on a randomised model; nothing for other models."""
    rate = numbers.get("first_flip_success_rate")
    if rate is None:
        return ""
    robust = f", robust accuracy {100 * numbers['first_flip_robust_accuracy']['value']:.0f} %" if labelled else ""
    return (
        f" By the first flip, as papers count: {numbers['first_flip_succeeded']:,} of {numbers['attacked']:,} "
        f"({100 * rate['value']:.0f} %, 95 % interval {100 * rate['low']:.0f}–{100 * rate['high']:.0f} %){robust}."
    )


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
    if any(map(has_first_flips, results)):
        flips = [numbers.get("first_flip_robust_accuracy") for numbers in rows.values()]
        series[1:] = [
            replace(series[1], label="under attack, repeatable"),
            Series("under attack, first flip", flips, AMBER),
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
    return Examples(items=items, filters=filters, sorts=(CHANGED, QUERIES, SIMILARITY), search=True, more=more)
