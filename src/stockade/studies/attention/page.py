"""The page of the study of attention."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice

from stockade.report.charts import Series, plot_rows
from stockade.report.document import Block, Bullets, Cell, Details, Document, Heading, Note, Plot, Prose, Table, code
from stockade.report.figures import draw_plot
from stockade.report.numbers import NOT_AVAILABLE, count, number, percent_cell, plain_percent, ranged_cell
from stockade.studies.attention.analysis import ModelNumbers
from stockade.studies.attention.claims import NEAR, published_table
from stockade.studies.attention.examples_page import choice_blocks, side_by_side_blocks
from stockade.studies.attention.inputs import ATTACKS, BY_ATTENTION, GREEDY_EC, LAST_LAYER, RANDOM
from stockade.studies.attention.inside_page import attention_blocks, embedding_blocks, least_and_most_blocks
from stockade.studies.attention.ratings import RatedComparison
from stockade.studies.attention.study import AttentionResult
from stockade.studies.attention.theorem_page import theorem_blocks, theorem_in_short
from stockade.studies.claims import claims_in_short, claims_table
from stockade.studies.frame import study_document

Models = Mapping[str, ModelNumbers]
_SUCCESS = (
    "Share of texts with 95 % Wilson intervals; random is the mean share of {draws:,} draws per text that fool the "
    "model, with a bootstrap interval over texts. A* is the best of the four attention attacks, as in the paper; the "
    "row below counts a text when any of the four fools it. By the last layer: the paper's pilot study, on "
    "self-attentive models of several layers."
)
_CLAIMS = (
    "Held or not held with p < 0.05, else undecided: attacks and models are compared text by text, by McNemar's exact "
    "test or by flipping signs. Almost identical is an equivalence: held if the whole 95 % interval of the difference "
    f"is within {100 * NEAR:.0f} points, undecided while it reaches across them. No correction for many comparisons."
)
_RATINGS = (
    "Readability: times preferred, divided by that of the most preferred. Human accuracy: share of labels that are the "
    "true ones. 95 % bootstrap intervals over texts."
)


def attention_document(result: AttentionResult) -> Document:
    """The whole page."""
    return study_document(result, about=_about(result), findings=findings(result), blocks=_blocks(result))


def _about(result: AttentionResult) -> Prose:
    summary, texts = result.summary, result.numbers.texts
    budget = f", at most {summary['budget']:,} queries per text" if summary["budget"] else ""
    where = {"hypothesis": "in each text", "premise": "in each premise", "both": "in either side of each pair"}
    return (
        f"One word replaced {where[result.spec.sides]} (Hsieh et al. 2019), on several models. Data ",
        code(summary["data"]),
        f", {count(texts.chosen, 'text')}, seed {summary['seed']}{budget}.",
    )


def findings(result: AttentionResult) -> list[str]:
    """The study in a few sentences; every one follows from the tables."""
    models = result.numbers.models
    return [*_most_fooled(models), *_most_changed(models), *theorem_in_short(models), claims_in_short(result.claims)]


def _most_fooled(models: Models) -> list[str]:
    rates = {
        name: rate
        for name, model in models.items()
        if GREEDY_EC in model.attacks and (rate := model.attacks[GREEDY_EC].rate["value"]) is not None
    }
    if not rates:
        return ["No model was attacked by gs-ec."]
    listed = ", ".join(f"{name} on {plain_percent(rate)}" for name, rate in rates.items())
    return [f"One word, chosen by gs-ec, fools {listed} of the texts."]


def _most_changed(models: Models) -> list[str]:
    """Who keeps its attention and its sentence vector best, where two models can be compared."""
    sentences = []
    shifts = {name: model.attention.moved["value"] for name, model in models.items() if model.attention}
    moved = {name: share for name, share in shifts.items() if share is not None}
    if len(moved) > 1:
        listed = ", ".join(f"{name} {plain_percent(share)}" for name, share in moved.items())
        sentences.append(f"That word moves this share of all attention elsewhere: {listed}.")
    means = {name: model.relative_embedding_change.mean["value"] for name, model in models.items()}
    changed = {name: value for name, value in means.items() if value is not None}
    if changed:
        listed = ", ".join(f"{name} {value:.2f}" for name, value in changed.items())
        sentences.append(f"The sentence vector moves by this part of its length (R_e): {listed}.")
    return sentences


def _blocks(result: AttentionResult) -> Iterator[Block]:
    models, view = result.numbers.models, result.spec.view
    first = next(iter(result.runs.values()))
    pairs = any(record.premise is not None for record in islice(first.records(), 1))
    for name, run in result.runs.items():
        yield from (Note(f"{name}: {remark}") for remark in run.summary["remarks"])
    yield Heading("Models and texts")
    yield _model_table(result)
    yield Heading("How often a model is fooled", aside="Table 5" if pairs else "Table 1")
    yield _success_table(models, result.spec.draws)
    yield Bullets(_missing_attacks(models))
    yield Plot(lambda: success_plot(models), "Success rates with 95 % intervals.", "success")
    yield Details("The paper's numbers", (published_table(),))
    yield Heading("What the paper claims, and what is seen here")
    yield claims_table(result.claims, _CLAIMS)
    yield from side_by_side_blocks(models, result.results, pairs=pairs)
    yield from least_and_most_blocks(models, view)
    yield from choice_blocks(models, view)
    yield from attention_blocks(models, view)
    yield from embedding_blocks(models)
    yield from theorem_blocks(models)
    yield Heading("Human raters", aside="Tables 3 and 4")
    yield from _ratings(result)


def _model_table(result: AttentionResult) -> Table:
    texts = result.numbers.texts
    rows = [
        (name, Cell(model.reference), model.kind, percent_cell(model.accuracy), _queries(model))
        for name, model in result.numbers.models.items()
    ]
    which = f"in seeded order the first {texts.chosen:,} of" if result.spec.limit else f"all {texts.chosen:,} of"
    caption = (
        f"The texts are those that all models get right: {which} the {texts.classified:,} classified "
        f"({texts.total:,} in the data). Accuracy is over those classified. No model is excused on a text that it "
        "cannot read anyway."
    )
    columns = ("model", "reference", "kind", "accuracy", "queries of gs-ec")
    return Table(columns, rows, caption=caption, numeric=(3, 4))


def _queries(model: ModelNumbers) -> str:
    return number(model.attacks[GREEDY_EC].mean_queries) if GREEDY_EC in model.attacks else NOT_AVAILABLE


def _success_table(models: Models, draws: int) -> Table:
    """Like the paper's: a row for each attack, a column for each model."""
    rows: list[tuple[str | Cell, ...]] = []
    for attack in ATTACKS:
        title = f"{attack}, share of draws" if attack == RANDOM else attack
        rows.append((title, *(_rate(model, attack) for model in models.values())))
        if attack == BY_ATTENTION[-1]:
            rows.append(("A*, the best of the four", *map(_best, models.values())))
            rows.append(("any of the four, by text", *map(_any_of_four, models.values())))
            if any(LAST_LAYER in model.attacks for model in models.values()):
                rows.append(("asmax-ec by the last layer", *(_rate(model, LAST_LAYER) for model in models.values())))
    return Table(("attack", *models), rows, caption=_SUCCESS.format(draws=draws))


def _rate(model: ModelNumbers, attack: str) -> str | Cell:
    return percent_cell(model.attacks[attack].rate) if attack in model.attacks else NOT_AVAILABLE


def _best(model: ModelNumbers) -> str | Cell:
    if model.a_star is None:
        return NOT_AVAILABLE
    cell = percent_cell(model.a_star.rate)
    return Cell(cell.text, f"{cell.detail}, {model.a_star.attack}" if cell.detail else model.a_star.attack)


def _any_of_four(model: ModelNumbers) -> str | Cell:
    return NOT_AVAILABLE if model.a_star is None else percent_cell(model.a_star.union.rate)


def _missing_attacks(models: Models) -> list[str]:
    """Why a model has no number in a row: one sentence for each reason."""
    sentences = []
    for name, model in models.items():
        reasons: dict[str, list[str]] = {}
        for attack, reason in model.missing.items():
            reasons.setdefault(reason, []).append(attack)
        sentences += [f"{name}, {', '.join(attacks)}: n/a, {reason}." for reason, attacks in reasons.items()]
    return sentences


def success_plot(models: Models) -> str:
    """Success rates with 95 % intervals, a group of points for each attack."""
    names = [f"{attack} (draws)" if attack == RANDOM else attack for attack in ATTACKS]
    series = [
        Series(
            name, [model.attacks[attack].rate if attack in model.attacks else None for attack in ATTACKS], marker="o"
        )
        for name, model in models.items()
    ]
    return draw_plot(
        "attention-success", (8.2, 3.8), lambda axes: plot_rows(axes, names, series, xlabel="success rate, %")
    )


def _ratings(result: AttentionResult) -> Iterator[Block]:
    ratings = result.numbers.ratings
    if ratings is None:
        command = f"stockade study attention --resume --out {result.folder}"
        yield Note(
            (
                "Nobody has rated yet. ",
                code(f"{command} --rating-sheet sheet.csv"),
                " writes a blind sheet, ",
                code(f"{command} --ratings sheet-anna.csv"),
                " reads it back.",
            ),
            kind="aside",
        )
        return
    yield from map(_rating_table, ratings.comparisons)
    yield Note(f"{count(len(ratings.raters), 'rater')}: {', '.join(ratings.raters)}. {_RATINGS}", kind="aside")


def _rating_table(comparison: RatedComparison) -> Table:
    rows = [
        (method, f"{scores.votes:,}", ranged_cell(scores.readability, 2), percent_cell(scores.accuracy))
        for method, scores in comparison.methods.items()
    ]
    caption = f"{count(comparison.texts, 'text')} that all these methods fool."
    return Table(("method", "preferred", "readability", "human accuracy"), rows, caption=caption)
