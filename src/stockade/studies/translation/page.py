"""The page of the study of translators."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from stockade.core.attacked_translation import TranslationRecord
from stockade.report.charts import Series, plot_rows
from stockade.report.document import Block, Document, Heading, Note, Plot, Prose, Table, code
from stockade.report.examples import Examples
from stockade.report.figures import BLUE, CLEAN, GREEN, ROBUST, draw_plot
from stockade.report.heat_map import HeatMap
from stockade.report.numbers import (
    NOT_AVAILABLE,
    change_cell,
    count,
    number,
    percent_cell,
    plain_percent,
    ranged,
    ranged_cell,
)
from stockade.studies.claims import claims_in_short, claims_table
from stockade.studies.frame import study_document
from stockade.studies.translation.analysis import (
    KEYWORD,
    PUBLISHED,
    AttentionShift,
    ModelNumbers,
    TranslationNumbers,
)
from stockade.workflows.translation.page import summary_table, translation_example

if TYPE_CHECKING:
    from stockade.studies.translation.study import TranslationStudyResult

_SHOWN = 4
_PAPER = "The paper's models are a two-layer BiLSTM and a Transformer of six layers, both trained on WMT."
_KEYWORD = f"Success of GS-EC with at most three changed words, with 95 % Wilson intervals. {_PAPER}"
_TYPO = (
    "BLEU of all sentences before and after one typo in each, with 95 % intervals over 1,000 bootstrap samples; lost: "
    "the share of BLEU that is gone. Lower case: sacrebleu with case:lc, as papers on Multi30k print it."
)
_CLAIMS = (
    "Decided by a 95 % interval or an exact test over the same sentences for both; undecided where that allows either. "
    "The paper had other models and data."
)
_ATTENTION = (
    "Attention: how far the shares of attention that the words of a source get move when one of them has a typo, as a "
    "total variation distance from 0 to 1; the mean with its 95 % bootstrap interval. The typos are the same for all "
    "models."
)


def translation_document(result: TranslationStudyResult) -> Document:
    """The whole page."""
    return study_document(result, about=_about(result), findings=findings(result), blocks=_blocks(result))


def _about(result: TranslationStudyResult) -> Prose:
    summary = result.summary
    size = result.manifest.inputs["data"]["size"]
    return (
        "Recurrent and self-attentive translators under attack (Hsieh et al., ACL 2019, §6): ",
        code(", ".join(result.models)),
        " on ",
        code(summary["data"]),
        f", {count(size, 'sentence')} with typos, {count(min(size, result.spec.searched), 'sentence')} with searches, "
        f"seed {summary['seed']}.",
    )


def findings(result: TranslationStudyResult) -> list[str]:
    """The study in a few sentences."""
    sentences = []
    for name, model in result.numbers.models.items():
        if not model.keyword.attacked or not model.typo.attacked:
            sentences.append(f"{name}: nothing was attacked.")
            continue
        sentences.append(
            f"{name}: the keyword appears in {plain_percent(model.keyword.success_rate['value'])} of "
            f"{count(model.keyword.attacked, 'sentence')}; one typo per sentence takes BLEU from "
            f"{number(model.typo.before['value'])} to {number(model.typo.after['value'])}."
        )
    return [*sentences, claims_in_short(result.claims)]


def _blocks(result: TranslationStudyResult) -> Iterator[Block]:
    numbers = result.numbers
    yield Heading("A keyword in the translation", aside="Table 7")
    yield _keyword_table(numbers)
    yield Heading("Typos", aside="Table 8")
    yield _typo_table(numbers)
    yield Plot(lambda: bleu_plot(numbers), "BLEU on unchanged sentences and with one typo in each.", "typos")
    yield Heading("What the paper claims, and what is seen here")
    yield claims_table(result.claims, _CLAIMS)
    yield Heading("All attacks")
    runs = [run for name in result.models for run in (result.searches(name), result.typos(name))]
    yield summary_table(runs)
    yield Heading("Adversarial sentences", aside="Table 9")
    for name in result.models:
        yield Heading(name, level=3)
        chosen = _shortest(result, name)
        yield Examples(items=[translation_example(record) for record in chosen]) if chosen else Note("No success.")
    yield Heading("Where attention goes", aside="Figure 3")
    yield _attention_table(numbers)
    for name in result.models:
        for shift in result.drawn(name):
            yield from _maps(name, shift)


def _keyword_table(numbers: TranslationNumbers) -> Table:
    rows = []
    for name, model in numbers.models.items():
        published = None if model.kind is None else PUBLISHED[model.kind]["keyword"]
        rows.append(
            (
                name,
                model.kind or NOT_AVAILABLE,
                f"{model.keyword.attacked:,}",
                percent_cell(model.keyword.success_rate),
                plain_percent(published),
            )
        )
    columns = ("model", "kind", "sentences", "success here", "in the paper")
    return Table(columns, tuple(rows), caption=_KEYWORD, numeric=range(2, len(columns)))


def _typo_table(numbers: TranslationNumbers) -> Table:
    columns = ("model", "sentences", "BLEU", "with typos", "change", "lost", "lower case", "paper", "paper, lost")
    rows = []
    for name, model in numbers.models.items():
        typo, published = model.typo, None if model.kind is None else PUBLISHED[model.kind]
        rows.append(
            (
                name,
                f"{typo.attacked:,}",
                ranged_cell(typo.before),
                ranged_cell(typo.after),
                change_cell(typo.change),
                percent_cell(typo.lost),
                f"{typo.lower_before:.2f} → {typo.lower_after:.2f}",
                NOT_AVAILABLE if published is None else f"{published['original']:.2f} → {published['typo']:.2f}",
                plain_percent(None if published is None else 1 - published["typo"] / published["original"]),
            )
        )
    return Table(columns, tuple(rows), caption=_TYPO)


def _attention_table(numbers: TranslationNumbers) -> Table:
    rows = [
        (name, f"{model.attention_sentences:,}", ranged(model.attention, 3)) for name, model in numbers.models.items()
    ]
    return Table(("model", "sentences", "attention moved"), tuple(rows), caption=_ATTENTION)


def bleu_plot(numbers: TranslationNumbers) -> str:
    """BLEU before and after typos for each model, and the paper's as plain points; empty when nothing was measured."""
    models = {name: model for name, model in numbers.models.items() if model.typo.attacked}
    if not models:
        return ""
    series = [
        Series("unchanged", [model.typo.before for model in models.values()], CLEAN),
        Series("with typos", [model.typo.after for model in models.values()], ROBUST),
        Series("paper, unchanged", [_published(model, "original") for model in models.values()], BLUE, marker="D"),
        Series("paper, with typos", [_published(model, "typo") for model in models.values()], GREEN, marker="D"),
    ]
    size = (8.2, 1.1 + 0.7 * len(models))
    return draw_plot("typos", size, lambda axes: plot_rows(axes, list(models), series, xlabel="BLEU", percent=False))


def _published(model: ModelNumbers, name: str) -> float | None:
    return None if model.kind is None else PUBLISHED[model.kind][name]


def _shortest(result: TranslationStudyResult, name: str) -> list[TranslationRecord]:
    """The successes of the keyword attack with the fewest changed words, the most similar first."""
    run = result.searches(name)
    key = next(attack["key"] for attack in run.manifest.spec["attacks"] if attack["name"] == KEYWORD)
    successes = list(run.records(key, "success"))
    return sorted(successes, key=lambda record: (len(record.edits), -(record.similarity or 0.0)))[:_SHOWN]


def _maps(name: str, shift: AttentionShift) -> Iterator[Block]:
    """The attention of both translations over the words of their sources."""
    sides = (
        ("before", shift.words, shift.steps_before, shift.weights_before),
        ("after", shift.changed, shift.steps_after, shift.weights_after),
    )
    for when, words, steps, weights in sides:
        if steps and words:
            yield HeatMap(
                rows=[_readable(step) for step in steps],
                columns=list(words),
                values=weights,
                title=f"{name}, example {shift.id}, {when}",
                caption=f"Steps of the translation (rows) over the words of the source, in percent of attention; "
                f"attention moved by {shift.distance:.2f}."
                if when == "after"
                else "",
                highest=1.0,
            )


def _readable(piece: str) -> str:
    """A sub-word, or a mark for a blank."""
    return piece.strip() or "␣"
