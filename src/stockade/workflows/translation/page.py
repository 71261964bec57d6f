"""The report of one or more attacks on translators."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any

from stockade.core.attacked_translation import TranslationRecord
from stockade.core.records import Status
from stockade.report.charts import Series, plot_rows
from stockade.report.diff import diff_pieces
from stockade.report.document import Block, Cell, Document, Heading, Note, Plot, Table, code, texts_and_manifests
from stockade.report.examples import TONES, Example, Examples, Filter, Version
from stockade.report.figures import CLEAN, ROBUST, draw_plot
from stockade.report.numbers import NOT_AVAILABLE, change_cell, number, percent_cell
from stockade.report.render_json import indented
from stockade.workflows.translation.result import TranslationResult

EXAMPLES_PER_ATTACK = 200
COLUMNS = (
    "attack",
    "n",
    "success rate",
    "BLEU",
    "change",
    "BLEU, lower case",
    "chrF",
    "queries",
    "changed words",
    "similarity",
    "seconds",
)
_ORDER: tuple[Status, ...] = ("success", "failed", "error", "skipped")
_HOW_TO_READ = (
    "Success rate: translations that reach the attack's goal, of the sentences attacked, with 95 % Wilson intervals. "
    "BLEU and chrF are those of all attacked sentences together; the change of BLEU has a 95 % interval over 1,000 "
    "paired bootstrap samples of sentences. Queries are means over attacked sentences; changed words (how many) and "
    "similarity ({scale}) are means over the sources that were changed."
)


def translation_document(results: Sequence[TranslationResult]) -> Document:
    """The report: findings, numbers, plot, examples with diffs, manifest."""
    several = len(results) > 1
    blocks: list[Block] = []
    for result in results:
        blocks += _numbers(result, several)
    blocks.append(Plot(lambda: bleu_plot(results), "BLEU of the attacked sentences before and after.", "translations"))
    blocks.append(Heading("Examples"))
    blocks += texts_and_manifests(
        [(result.name, _examples(result), indented(result.manifest.described())) for result in results]
    )
    return Document(
        title=_title(results),
        about=f"Attacks on {'translators' if several else 'a translator'}: {', '.join(r.name for r in results)}.",
        blocks=tuple(blocks),
        data=results[0].summary if not several else [result.summary for result in results],
    )


def _title(results: Sequence[TranslationResult]) -> str:
    """The result in a line: what the attack that costs most BLEU does."""
    measured = [
        (numbers["bleu"]["after"]["value"] - numbers["bleu"]["before"]["value"], numbers["bleu"], attack)
        for result in results
        for attack, numbers in result.summary["attacks"].items()
        if numbers["attacked"] and numbers["bleu"] is not None
    ]
    if not measured:
        return "No sentence was attacked"
    _, bleu, attack = min(measured, key=lambda entry: entry[0])
    return f"{attack} takes BLEU from {bleu['before']['value']:.1f} to {bleu['after']['value']:.1f}"


def _numbers(result: TranslationResult, several: bool) -> Iterator[Block]:
    summary = result.summary
    if several:
        yield Heading(result.name)
    for name in result.attacks:
        yield Note(finding(summary["attacks"][name], name), kind="finding")
    if not summary["complete"]:
        yield Note(("Not complete. Resume it with ", code(f"stockade resume {result.folder}")), kind="warning")
    for warning in summary["warnings"]:
        yield Note(warning, kind="warning")
    yield Note(
        ("Model ", code(summary["model"]), " on ", code(summary["data"]), f", {summary['examples']:,} sentences."),
        kind="aside",
    )
    scale = result.spec.similarity_scale or "not measured"
    yield summary_table([result], caption=_HOW_TO_READ.format(scale=scale))
    measured = [attack for attack in summary["attacks"].values() if attack["bleu"] is not None]
    if measured:
        lines = [measured[0][name]["signature"] for name in ("bleu", "bleu_lowercase")]
        yield Note(("sacrebleu: ", code(lines[0]), " and, in lower case, ", code(lines[1])), kind="aside")


def finding(numbers: Mapping[str, Any], attack: str) -> str:
    """What one attack did, in a sentence or two."""
    if not numbers["attacked"]:
        return f"{attack}: no sentence was attacked."
    rate, bleu = numbers["success_rate"], numbers["bleu"]
    change = bleu["change"]
    return (
        f"{attack}: {numbers['succeeded']:,} of {numbers['attacked']:,} translations are as wanted "
        f"({100 * rate['value']:.0f} %, 95 % interval {100 * rate['low']:.0f}–{100 * rate['high']:.0f} %). BLEU "
        f"{bleu['before']['value']:.1f} → {bleu['after']['value']:.1f} (change {change['value']:+.1f}, "
        f"{change['low']:+.1f} to {change['high']:+.1f})."
    )


def summary_table(results: Sequence[TranslationResult], names: Sequence[str] | None = None, caption: str = "") -> Table:
    """One row per run and attack; `names` are what the runs are called, if there are several."""
    several = len(results) > 1
    rows = [
        (*([label] if several else []), *_cells(attack, numbers))
        for label, result in zip(names or [result.name for result in results], results, strict=True)
        for attack, numbers in result.summary["attacks"].items()
    ]
    columns = (*(["run"] if several else []), *COLUMNS)
    return Table(
        columns, tuple(rows), caption=caption, numeric=range(1 + several, len(columns)), grouped=1 if several else 0
    )


def _cells(attack: str, numbers: Mapping[str, Any]) -> tuple[str | Cell, ...]:
    bleu = numbers["bleu"]
    return (
        attack,
        f"{numbers['attacked']:,}"
        + (f" (+{numbers['skipped']:,} skipped)" if numbers["skipped"] else "")
        + (f" (+{numbers['errors']:,} errors)" if numbers["errors"] else ""),
        percent_cell(numbers["success_rate"]),
        _moved(bleu),
        change_cell({"value": None, "low": None, "high": None} if bleu is None else bleu["change"], 2),
        _moved(numbers["bleu_lowercase"]),
        _moved(numbers["chrf"]),
        number(numbers["mean_queries"]),
        number(numbers["mean_changed_words"], 2),
        number(numbers["mean_similarity"], 3),
        number(numbers["seconds"]),
    )


def _moved(numbers: Mapping[str, Any] | None) -> str:
    """A number before and after."""
    if numbers is None:
        return NOT_AVAILABLE
    return f"{numbers['before']['value']:.1f} → {numbers['after']['value']:.1f}"


def bleu_plot(results: Sequence[TranslationResult]) -> str:
    """BLEU before and after each attack with 95 % bootstrap intervals; empty when nothing was measured."""
    several = len(results) > 1
    rows = {
        f"{result.name}: {name}" if several else name: numbers["bleu"]
        for result in results
        for name, numbers in result.summary["attacks"].items()
        if numbers["bleu"] is not None
    }
    if not rows:
        return ""
    series = [
        Series("unchanged sources", [bleu["before"] for bleu in rows.values()], CLEAN),
        Series("under attack", [bleu["after"] for bleu in rows.values()], ROBUST),
    ]
    size = (8.2, 0.9 + 0.5 * len(rows))
    return draw_plot(
        "translations", size, lambda axes: plot_rows(axes, list(rows), series, xlabel="BLEU", percent=False)
    )


def _examples(result: TranslationResult) -> Examples:
    """Of each attack the successes first, then failures, errors and skipped sentences, up to a limit."""
    items: list[Example] = []
    left_out = 0
    for attack in result.attacks:
        records = chain.from_iterable(result.records(attack, status) for status in _ORDER)
        chosen = list(islice(records, EXAMPLES_PER_ATTACK))
        items += [translation_example(record) for record in chosen]
        numbers = result.summary["attacks"][attack]
        left_out += numbers["n"] + numbers["errors"] - len(chosen)
    more = f"{left_out:,} more sentences are in the run: stockade export {result.folder}" if left_out else ""
    filters = (Filter("status", "Status", selected="success"), Filter("attack", "Attack"))
    return Examples(items=items, filters=filters, search=True, more=more)


def translation_example(record: TranslationRecord) -> Example:
    """The result of an attack on a translator as an example, with the facets `status` and `attack`."""
    text = record.original
    return Example(
        text=text if record.adversarial is None else diff_pieces(text, record.adversarial, record.edits),
        status=record.status,
        tone=TONES[record.status],
        label=record.attack,
        verdict="" if record.keyword is None else f"keyword {record.keyword}",
        details=tuple(_details(record)),
        notes=(record.reason,) if record.reason else (),
        versions=tuple(_versions(record)),
        facets={"status": record.status, "attack": record.attack},
    )


def _versions(record: TranslationRecord) -> Iterator[Version]:
    before, after = record.original_translation, record.adversarial_translation
    if before is not None and after is None:
        yield Version("translation", before)
    if before is not None and after is not None:
        yield Version("translation", diff_pieces(before, after))
    yield Version("reference", record.reference)


def _details(record: TranslationRecord) -> Iterator[str]:
    yield f"example {record.id}"
    yield f"{record.queries:,} {'query' if record.queries == 1 else 'queries'}"
    if record.adversarial is not None:
        yield f"{len(record.edits)} {'word' if len(record.edits) == 1 else 'words'} changed"
    if record.truncated_words:
        words = "word" if record.truncated_words == 1 else "words"
        yield f"{record.truncated_words} {words} pushed out of what the model reads"
    if record.similarity is not None:
        yield f"similarity {record.similarity:.3f}"
    if record.hit_rate is not None:
        yield f"reaches its goal in {record.hit_rate:.0%} of draws"
