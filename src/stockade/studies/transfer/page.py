"""The page of the transfer study."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from stockade.report.charts import plot_bars
from stockade.report.diff import premise_pieces, record_pieces
from stockade.report.document import Block, Cell, Details, Document, Heading, Note, Plot, Prose, Table, code
from stockade.report.examples import Example, Examples
from stockade.report.figures import draw_plot
from stockade.report.heat_map import HeatMap
from stockade.report.numbers import (
    Interval,
    count,
    number,
    p_value,
    percent,
    percent_cell,
    plain_percent,
    ranged_cell,
)
from stockade.studies.claims import claims_in_short, claims_table
from stockade.studies.frame import study_document
from stockade.studies.transfer import published
from stockade.studies.transfer.analysis import AttackTransfer, TransferNumbers
from stockade.studies.transfer.importance_page import word_blocks
from stockade.studies.transfer.statistics import FACTOR_ORDER
from stockade.studies.transfer.universal import Universal
from stockade.studies.transferability.matrix import OTHER, traits_of

if TYPE_CHECKING:
    from stockade.studies.transfer.study import TransferResult

_HIGHEST = 0.75
"""The rate of the deepest colour, the same on all maps so that they can be compared."""
_CLAIMS = (
    "Section 3.4 of the paper. A claim is held if its difference has the right sign and p < 0.05 by resampled texts, "
    "not held if the opposite has, and undecided otherwise. The test is about texts, not about other models. A rate "
    "on all texts also counts what the target gets wrong anyway; the second rate does not."
)
_MATRIX = (
    "Rows are sources, columns are targets: the share of the source's adversarial texts that the target gets wrong, in "
    "percent. On the diagonal the base rate: the source's texts on a second training of it; hatched where there is "
    "none. Rest the pointer on a cell for its 95 % interval."
)
_CLEAN = (
    "The same on the texts that the target gets right before they are changed: what it gets wrong anyway is left out."
)
_FACTORS = (
    "The mean of |r(s, t) − r0(t)| over pairs of models that differ in one factor alone, r0(t) being the base rate of "
    "the target. By chance: what the choice of texts alone would give, because absolute differences of noisy rates are "
    "never 0. Intervals by resampled texts. The last four columns are the paper's, which has no intervals."
)
_CHOSEN = (
    "Texts of 6 to 25 words that the first attack fools most sources on, and of these the ones with the fewest changed "
    "words; then the text that was named with --map-text."
)
_CLASSES = (
    "Mean rates from class to class in percent, base rates among them; rows are sources. Intervals under the pointer."
)


def transfer_document(result: TransferResult) -> Document:
    """The whole page."""
    return study_document(result, about=_about(result), findings=findings(result), blocks=_blocks(result))


def _about(result: TransferResult) -> Prose:
    summary, numbers = result.summary, result.numbers
    return (
        "Adversarial texts made on one model, given to all others. ",
        f"{count(len(result.models), 'model')} on ",
        code(summary["data"]),
        f", {count(numbers.texts, 'text')} attacked on each, at most {summary['sampled']:,} adversarial texts of each "
        f"source scored by every other model, seed {summary['seed']}. Attacks: {', '.join(numbers.attacks)}.",
    )


def findings(result: TransferResult) -> list[str]:
    """The study in a few sentences; every one follows from the tables."""
    sentences = []
    for attack, transfer in result.numbers.attacks.items():
        before = f"{attack}: " if len(result.numbers.attacks) > 1 else ""
        if transfer.others["value"] is None:
            sentences.append(f"{before}No adversarial text of one model was scored by another.")
            continue
        own = transfer.own["value"]
        sentences.append(
            f"{before}An adversarial text of one model fools another in {percent(transfer.others)} of cases"
            + (f", and a second training of the same model in {percent(transfer.own)}." if own is not None else ".")
        )
        sentences += [
            f"{before}{sentence}" for sentence in (*_extremes(transfer), *_universal_sentence(transfer.universal))
        ]
    return [*sentences, claims_in_short(result.claims)]


def _extremes(transfer: AttackTransfer) -> Iterator[str]:
    rates = {name: source.mean_rate["value"] for name, source in transfer.sources.items()}
    measured = {name: rate for name, rate in rates.items() if rate is not None}
    robust = {name: rate for name, rate in _as_targets(transfer).items() if rate is not None}
    if len(measured) > 1 and len(robust) > 1:
        best, hardest = max(measured, key=lambda name: measured[name]), min(robust, key=lambda name: robust[name])
        yield (
            f"The texts of {best} transfer best ({plain_percent(measured[best])} on average); {hardest} is hardest to "
            f"fool by texts of others ({plain_percent(robust[hardest])})."
        )


def _as_targets(transfer: AttackTransfer) -> dict[str, float | None]:
    """The mean rate of the other models' texts on each model."""
    means: dict[str, float | None] = {}
    for column, name in enumerate(transfer.models):
        rates = [row[column] for source, row in zip(transfer.models, transfer.rates, strict=True) if source != name]
        measured = [rate for rate in rates if rate is not None]
        means[name] = sum(measured) / len(measured) if measured else None
    return means


def _universal_sentence(universal: Universal) -> list[str]:
    if not universal.texts:
        return []
    return [
        f"{universal.all_but[0]:,} of {count(universal.texts, 'adversarial text')} "
        f"{'fools' if universal.all_but[0] == 1 else 'fool'} every model that is right on the original."
    ]


def _blocks(result: TransferResult) -> Iterator[Block]:
    numbers = result.numbers
    for attack, transfer in numbers.attacks.items():
        named = attack if len(numbers.attacks) > 1 else ""
        yield Heading(f"Who fools whom{f': {named}' * bool(named)}", aside="Figure 3")
        yield rate_map(transfer, transfer.rates, _MATRIX)
        clean = rate_map(transfer, transfer.clean_rates, _CLEAN)
        yield Details("Only texts that the target gets right before", (clean,))
    yield Heading("What the paper finds, and what is seen here")
    yield claims_table(result.claims, _CLAIMS)
    yield Heading("The models")
    yield _model_table(result, numbers)
    for attack, transfer in numbers.attacks.items():
        yield from _attack_blocks(result, attack, transfer, attack if len(numbers.attacks) > 1 else "")
    yield from word_blocks(numbers.spread, numbers.maps, _CHOSEN)


def rate_map(transfer: AttackTransfer, rates: Sequence[Sequence[float | None]], caption: str) -> HeatMap:
    """The transfer matrix as a heat map, by families."""
    groups = [traits_of(name).architecture for name in transfer.models]
    hovers = [
        [_hover(transfer, rates, row, column) for column in range(len(transfer.models))]
        for row in range(len(transfer.models))
    ]
    grouped = groups if set(groups) != {OTHER} else ()
    return HeatMap(
        rows=transfer.models,
        columns=transfer.models,
        values=rates,
        caption=caption,
        row_groups=grouped,
        column_groups=grouped,
        hovers=hovers,
        highest=_HIGHEST,
    )


def _hover(transfer: AttackTransfer, rates: Sequence[Sequence[float | None]], row: int, column: int) -> str:
    rate = rates[row][column]
    if rate is None:
        return ""
    second = " on its second training" if row == column else ""
    if rates is transfer.clean_rates:
        return f"{plain_percent(rate)}{second}"
    interval = {"value": rate, "low": transfer.low[row][column], "high": transfer.high[row][column]}
    return f"{percent(interval)}{second}, {count(transfer.counts[row][column], 'text')}"


def _model_table(result: TransferResult, numbers: TransferNumbers) -> Table:
    """Each model with what it is, its accuracy, and what it computed."""
    rows = []
    for name in result.models:
        model = numbers.models[name]
        failed = Cell(name, detail="not used to the end", tone="warning")
        rows.append(
            (
                failed if model.failure else name,
                model.architecture,
                model.input_class,
                percent_cell(model.clean_accuracy),
                percent_cell(model.second_accuracy),
                f"{model.model_rows:,}",
                number(model.model_seconds),
            )
        )
    columns = ("model", "architecture", "input", "accuracy", "second training", "texts scored", "seconds")
    caption = (
        "Accuracy on the studied texts, of the model and of a second training of it. Texts scored: the different texts "
        "that the model computed as a target, originals and adversarial ones, and how long it took for them."
    )
    return Table(columns, rows, caption=caption, numeric=range(3, len(columns)))


def _role_table(transfer: AttackTransfer) -> Table:
    """Each model as a source and as a target."""
    targets = _as_targets(transfer)
    rows: list[tuple[str | Cell, ...]] = []
    for place, name in enumerate(transfer.models):
        source = transfer.sources.get(name)
        rows.append(
            (
                name,
                "n/a" if source is None else f"{source.succeeded:,} of {source.attacked:,}",
                "n/a" if source is None else number(source.mean_perturbed_percent, 1, " %"),
                "n/a" if source is None else percent_cell(source.mean_rate),
                plain_percent(targets[name]),
                plain_percent(transfer.rates[place][place]),
            )
        )
    caption = (
        "Fooled: texts that the attack found a wrong answer to, of those that the model gets right. Changed words: in "
        "the sampled adversarial texts. To others: the mean rate of these texts on the other models. From others: the "
        "mean rate of the other models' texts."
    )
    columns = ("model", "fooled", "changed words", "to others", "from others", "base rate")
    return Table(columns, rows, caption=caption)


def _attack_blocks(result: TransferResult, attack: str, transfer: AttackTransfer, named: str) -> Iterator[Block]:
    behind = f": {named}" if named else ""
    yield Heading(f"As sources and as targets{behind}")
    yield _role_table(transfer)
    yield Heading(f"What transfer depends on{behind}", aside="Table 2")
    if any(transfer.factors[factor].pairs for factor in FACTOR_ORDER):
        yield Plot(
            lambda: factor_plot(transfer), "The effect of each factor, with 95 % intervals.", f"factors {attack}"
        )
        yield _factor_table(transfer)
        yield _order_table(transfer)
    else:
        yield Note("No two models of the zoo differ in one factor and have a second training.", kind="aside")
    if set(transfer.architectures) - {OTHER}:
        yield Heading(f"From class to class{behind}", aside="Tables 3 and 4")
        yield _class_map(transfer.architectures, "By architecture")
        yield _class_map(transfer.inputs, "By input form and embedding")
        yield Details("The paper's Tables 3 and 4", tuple(_published_classes()))
    yield Heading(f"One way and the other{behind}", aside="r(s, t) against r(t, s)")
    yield from _asymmetry_blocks(transfer)
    yield Heading(f"Universal examples{behind}", aside="Table 1")
    yield from _universal_blocks(result, attack, transfer.universal)


def factor_plot(transfer: AttackTransfer) -> str:
    """Table 2 as bars."""
    measured = [factor for factor in FACTOR_ORDER if transfer.factors[factor].pairs]
    effects = [transfer.factors[factor].effect for factor in measured]
    return draw_plot(
        "factors",
        (8.2, 0.6 + 0.4 * len(measured)),
        lambda axes: plot_bars(axes, measured, effects, xlabel="mean distance from the base rate, percentage points"),
    )


def _factor_table(transfer: AttackTransfer) -> Table:
    rows: list[tuple[str | Cell, ...]] = [
        (
            factor,
            f"{transfer.factors[factor].pairs:,}",
            ranged_cell(transfer.factors[factor].effect, 3),
            number(transfer.factors[factor].by_chance, 3),
            *(f"{value:.3f}" for value in published.FACTORS[factor]),
        )
        for factor in FACTOR_ORDER
    ]
    return Table(("factor", "pairs", "effect", "by chance", *published.FACTOR_COLUMNS), rows, caption=_FACTORS)


def _order_table(transfer: AttackTransfer) -> Table:
    rows = [
        (
            f"{order.first} over {order.second}",
            ranged_cell(order.difference, 3),
            "n/a" if order.p is None else p_value(order.p),
            f"{order.larger} of {order.targets}",
        )
        for order in transfer.order
    ]
    caption = "The paper's order, factor by factor: differences of effects with tests by resampled texts."
    return Table(("order", "difference", "test", "targets that agree"), rows, caption=caption)


def _class_map(table: Mapping[str, Mapping[str, Interval]], title: str) -> HeatMap:
    names = list(table)
    return HeatMap(
        rows=names,
        columns=list(table[names[0]]),
        values=[[cell["value"] for cell in table[name].values()] for name in names],
        title=title,
        caption=_CLASSES,
        hovers=[
            [percent(cell) if cell["value"] is not None else "" for cell in table[name].values()] for name in names
        ],
        highest=_HIGHEST,
        digits=1,
    )


def _published_classes() -> Iterator[Block]:
    for title, names, values in (
        ("The paper's Table 3", published.ARCHITECTURES, published.BY_ARCHITECTURE),
        ("The paper's Table 4", published.INPUTS, published.BY_INPUT),
    ):
        yield HeatMap(rows=names, columns=names, values=values, title=title, highest=_HIGHEST, digits=1)


def _asymmetry_blocks(transfer: AttackTransfer) -> Iterator[Block]:
    asymmetry = transfer.asymmetry
    if asymmetry.p is None:
        yield Note("No pair of models was measured both ways.", kind="aside")
        return
    rows = [
        (
            f"{pair.source} → {pair.target}",
            plain_percent(pair.rate),
            plain_percent(pair.reverse),
            percent_cell(pair.difference),
        )
        for pair in asymmetry.largest
    ]
    caption = (
        f"The most asymmetric of {count(asymmetry.pairs, 'pair')}. Mean of |r(s, t) − r(t, s)|: "
        f"{percent(asymmetry.mean_difference)}; {plain_percent(asymmetry.by_chance)} when sources and targets change "
        f"places on a random half of the texts ({p_value(asymmetry.p)})."
    )
    yield Table(("pair", "rate", "other way", "difference"), rows, caption=caption)


def _universal_blocks(result: TransferResult, attack: str, universal: Universal) -> Iterator[Block]:
    columns = ("fool all", *(f"all but {most}" for most in universal.all_but if most))
    caption = (
        f"Of {count(universal.texts, 'different adversarial text')} whose original at least half of the models get "
        "right: those that fool every model that is right on the original, or all of these but so many."
    )
    yield Table(
        columns, [[f"{hits:,}" for hits in universal.all_but.values()]], caption=caption, numeric=range(len(columns))
    )
    records = {(source, record.id): record for source, records in result.samples[attack].items() for record in records}
    items = [
        Example(
            text=record_pieces(records[text.source, text.id]),
            status=f"fools {text.fooled} of {text.right}",
            tone="bad",
            label=f"made on {text.source}",
            verdict=f"{records[text.source, text.id].label} → {records[text.source, text.id].adversarial_prediction}",
            details=(f"example {text.id}",),
            premise=premise_pieces(records[text.source, text.id]),
        )
        for text in universal.examples
    ]
    if items:
        yield Examples(items=items, preview=3)
