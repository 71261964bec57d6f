"""How reports show the importance of words: the spread of each model, and maps of single texts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stockade.report.charts import Series, plot_rows
from stockade.report.document import Block, Details, Heading, Note, Plot, Table
from stockade.report.figures import draw_plot
from stockade.report.heat_map import HeatMap
from stockade.report.numbers import count, number, p_value, ranged_cell
from stockade.studies.transfer.importance_maps import Spread, WordMap
from stockade.studies.transferability.matrix import OTHER, traits_of

_SPREAD = (
    "The entropy of the positive importances of a text's words, divided by the logarithm of their number: 0 if a "
    "single word matters, 1 if all matter alike. Means over the texts that the model gets right, with 95 % bootstrap "
    "intervals."
)


def word_blocks(spread: Spread | None, maps: Sequence[WordMap], chosen: str) -> Iterator[Block]:
    """How many words models look at, and maps of single texts.

    Parameters
    ----------
    spread
        The spread of every model; None if it was not measured.
    maps
        The texts.
    chosen
        How they were chosen.
    """
    if spread is not None:
        yield Heading("How many words models look at", aside="appendix C")
        yield from _spread_blocks(spread)
    if maps:
        yield Heading("What words are worth to each model", aside="Figures 5 and 6")
        yield Note(chosen, kind="aside")
    for entry in maps:
        yield from _map_blocks(entry)


def _spread_blocks(spread: Spread) -> Iterator[Block]:
    yield Plot(lambda: spread_plot(spread), _SPREAD, "spread")
    rows = [
        (
            f"{family} ({count(entry.models, 'model')}) against the other {entry.others}",
            number(entry.spread, 3),
            number(entry.others_spread, 3),
            ranged_cell(entry.difference, 3),
            "n/a" if entry.p is None else p_value(entry.p),
            f"{entry.texts:,}",
        )
        for family, entry in spread.families.items()
    ]
    caption = f"Measured on {count(spread.texts, 'text')}, compared text by text; p by random signs."
    if rows:
        yield Table(("models", "spread", "others", "difference", "test", "texts"), rows, caption=caption)
    models = [(name, traits_of(name).input_class, ranged_cell(value, 3)) for name, value in spread.models.items()]
    yield Details("The spread of every model", (Table(("model", "input", "spread"), models, numeric=(2,)),))


def spread_plot(spread: Spread) -> str:
    """The mean spread of every model."""
    names = list(spread.models)
    series = [Series("spread", [spread.models[name] for name in names])]
    return draw_plot(
        "spread",
        (8.2, 0.8 + 0.24 * len(names)),
        lambda axes: plot_rows(axes, names, series, xlabel="spread of the importances of words", percent=False),
    )


def _map_blocks(entry: WordMap) -> Iterator[Block]:
    groups = [traits_of(name).input_class for name in entry.models]
    groups = groups if set(groups) != {OTHER} else []
    yield HeatMap(
        rows=entry.models,
        columns=entry.words,
        values=entry.importances,
        title=f"Importance of the words of example {entry.id} ({entry.label})",
        caption="How far the log-likelihood of the true class falls when the word becomes unknown; blue: it rises.",
        row_groups=groups,
        percent=False,
        digits=2,
    )
    if entry.replaced is not None and entry.substitutes:
        yield HeatMap(
            rows=entry.models,
            columns=entry.substitutes,
            values=entry.drops,
            title=f"Substitutes for “{entry.words[entry.replaced]}”",
            caption="How far it falls when the substitute stands in the word's place. The word is the one that matters "
            "most to the mean of the models, of those that have several synonyms.",
            row_groups=groups,
            percent=False,
            digits=2,
        )
