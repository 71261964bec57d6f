"""The page of the study of FireBERT's neighbourhoods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from stockade.report.document import Block, Cell, Document, Heading, Note, Plot, Prose, Table, code, strong
from stockade.report.figures import INK, PALETTE, SOFT, draw_panels, shortened
from stockade.report.numbers import Interval, count, percent_cell, plain_percent
from stockade.studies.claims import claims_in_short, claims_table
from stockade.studies.firebert.analysis import FirebertNumbers, ModelNumbers, SideNumbers
from stockade.studies.firebert.neighbourhoods import TextPair, noised_vectors
from stockade.studies.firebert.study import FirebertResult
from stockade.studies.firebert.tsne import tsne
from stockade.studies.frame import study_document

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SIDES = (("original", "o"), ("adversarial", "^"))
_CAPTION = (
    "Of the texts that fool the first model. Right: the text itself has the true class. Neighbours: the nearest words "
    "in place of the most important one; noise: Gaussian noise on its input vector. Most: more than half of them, the "
    "text among them, have the true class. The word is the one that matters most to the first model, for all models "
    "alike. Shares with 95 % Wilson intervals, means with bootstrap intervals."
)
_CLAIMS = (
    "The paper shows one text and says that not all work out so well. Here: held if the 95 % interval over all texts "
    "lies above one half."
)
_NEAR = (
    "Each column is a word in place of the important one, which stands at the left, the nearest next to it; its colour "
    "is the class that the whole text then has."
)


def firebert_document(result: FirebertResult) -> Document:
    """The whole page."""
    return study_document(
        result, about=_about(result), findings=findings(result), blocks=_blocks(result, result.numbers)
    )


def _about(result: FirebertResult) -> Prose:
    summary = result.summary
    first, *others = result.models
    beside = f", and what {', '.join(others)} say of the same texts" if others else ""
    return (
        "What a model says around original and adversarial texts (Mein et al. 2020, FireBERT, section 3.4, Figures 5 "
        "to 7). Data ",
        code(summary["data"]),
        f", {summary['texts']:,} of {count(summary['total'], 'text')}, seed {summary['seed']}; {summary['attack']} on "
        f"{first}{beside}. {summary['neighbours']} neighbours of a word, {summary['samples']} copies with noise of "
        f"standard deviation {summary['deviation']:g}.",
    )


def findings(result: FirebertResult) -> list[str]:
    """The study in a few sentences."""
    numbers = result.numbers
    if not numbers.successes:
        return ["No text was fooled, so there is nothing to look around."]
    return [*map(_in_short, numbers.models), claims_in_short(result.claims)]


def _in_short(entry: ModelNumbers) -> str:
    original, adversarial = entry.original, entry.adversarial
    near = _both(original.near_majority, adversarial.near_majority)
    noised = _both(original.noised_majority, adversarial.noised_majority)
    return (
        f"{entry.model} is right on {plain_percent(adversarial.right['value'])} of the adversarial texts. Most "
        f"neighbours of the important word have the true class around {near}, most noise around {noised}."
    )


def _both(original: Interval, adversarial: Interval) -> str:
    first, second = plain_percent(original["value"]), plain_percent(adversarial["value"])
    return f"{first} of the originals and {second} of the adversarial texts"


def _blocks(result: FirebertResult, numbers: FirebertNumbers) -> Iterator[Block]:
    yield Heading("Around originals and adversarial texts")
    yield side_table(numbers)
    if numbers.without_word:
        yield Note(
            f"{count(numbers.without_word, 'text has', 'texts have')} no important word with neighbours: left out."
        )
    for text in result.shown():
        yield from _figures(result, [pair for pair in result.pairs if pair.id == text])
    yield Heading("What the paper says, and what is seen here")
    yield claims_table(result.claims, _CLAIMS)


def side_table(numbers: FirebertNumbers) -> Table:
    """What every model says around both kinds of texts."""
    rows: list[Sequence[str | Cell]] = []
    for entry in numbers.models:
        for name, side in (("original", entry.original), ("adversarial", entry.adversarial)):
            rows.append((entry.model, name, f"{side.texts:,}", *_cells(side)))
    columns = ("model", "around", "texts", "right", "neighbours", "most neighbours", "noise", "most noise")
    return Table(columns, rows, caption=_CAPTION, numeric=range(2, len(columns)), grouped=1)


def _cells(side: SideNumbers) -> tuple[Cell, ...]:
    return tuple(map(percent_cell, (side.right, side.near, side.near_majority, side.noised, side.noised_majority)))


def _figures(result: FirebertResult, pairs: Sequence[TextPair]) -> Iterator[Block]:
    if not pairs:
        return
    first, deviation = pairs[0], result.spec.deviation
    classes = tuple(result.manifest.inputs["models"][first.model]["labels"])
    yield Heading(f"Text {first.id}", aside="Figures 5 to 7")
    yield Note((strong("Original"), f" ({first.label}): {first.original.text}"))
    yield Note((strong("Adversarial"), f" ({first.adversarial.predicted}): {first.adversarial.text}"))
    if any(pair.original.near or pair.adversarial.near for pair in pairs):
        yield Plot(lambda: neighbour_plot(pairs, classes), _NEAR, name=f"neighbours-{first.id}")
    drawn = [pair for pair in pairs if pair.original.vector is not None and pair.adversarial.vector is not None]
    if drawn:
        caption = (
            f"t-SNE of the important word's input vector with noise of standard deviation {deviation:g}: circles "
            "around the original, triangles around the adversarial word; the colour is the class of the text with that "
            "vector. A large mark stands in the middle of a word's copies and has the class of the text itself. How "
            "far groups lie apart means nothing."
        )
        yield Plot(lambda: noise_plot(drawn, classes, deviation), caption, name=f"noise-{first.id}")
    else:
        yield Note("No picture of the noise: an important word is several tokens, or is not read.", kind="aside")


def neighbour_plot(pairs: Sequence[TextPair], classes: Sequence[str]) -> str:
    """Figures 5 and 6: the classes of the neighbours of both important words, a panel for each model.

    Parameters
    ----------
    pairs
        One text under each model.
    classes
        Of the models.
    """
    size = (9.6, 0.7 + 2.5 * len(pairs))
    name = f"firebert-neighbours-{pairs[0].id}"
    return draw_panels(name, size, [_draw_near(pair, classes) for pair in pairs], columns=1, legend=True)


def _draw_near(pair: TextPair, classes: Sequence[str]) -> Callable[[Axes], None]:
    def draw(axes: Axes) -> None:
        for row, (side, (kind, _)) in enumerate(zip((pair.original, pair.adversarial), _SIDES, strict=True)):
            words = [(side.word or "", side.predicted), *((near.word, near.predicted) for near in side.near)]
            for at, (word, predicted) in enumerate(words):
                colour = _colour(predicted, classes)
                axes.plot([at], [-row], "o", color=colour, markersize=11 if at == 0 else 7, zorder=3)
                weight = "bold" if at == 0 else "normal"
                axes.annotate(
                    shortened(word), (at, -row), (0, -9), textcoords="offset points", rotation=40, fontsize=7.5,
                    ha="right", va="top", color=INK, fontweight=weight,
                )  # fmt: skip
            axes.text(-1.2, -row, kind, ha="right", va="center", fontsize=9)
        for name in classes:
            axes.plot([], [], "o", color=_colour(name, classes), label=name)
        axes.set_title(pair.model, fontsize=10, loc="left")
        axes.set_xlim(-1, max(len(pair.original.near), len(pair.adversarial.near)) + 0.7)
        axes.set_ylim(-1.75, 0.35)
        _without_frame(axes)

    return draw


def noise_plot(pairs: Sequence[TextPair], classes: Sequence[str], deviation: float) -> str:
    """Figure 7: noise around both important words, in a plane, a panel for each model.

    Parameters
    ----------
    pairs
        One text under each model, with vectors.
    classes
        Of the models.
    deviation
        Of the noise.
    """
    size = (4.8 * min(2, len(pairs)), 0.7 + 4.2 * -(-len(pairs) // 2))
    name = f"firebert-noise-{pairs[0].id}"
    return draw_panels(name, size, [_draw_noise(pair, classes, deviation) for pair in pairs], columns=2)


def _draw_noise(pair: TextPair, classes: Sequence[str], deviation: float) -> Callable[[Axes], None]:
    import numpy as np

    sides = (pair.original, pair.adversarial)
    clouds = [noised_vectors(side, deviation) for side in sides]
    plane = tsne(np.vstack(clouds))

    def draw(axes: Axes) -> None:
        start = 0
        for side, cloud, (kind, marker) in zip(sides, clouds, _SIDES, strict=True):
            points = plane[start : start + len(cloud)]
            start += len(cloud)
            counted = Counter(side.noised)
            for name in classes:
                rows = [at for at, label in enumerate(side.noised) if label == name]
                label = f"{name}, {kind}: {counted[name]}"
                axes.plot(
                    points[rows, 0], points[rows, 1], marker, label=label, linestyle="", markersize=5, alpha=0.55,
                    markeredgewidth=0, color=_colour(name, classes),
                )  # fmt: skip
            x, y = points.mean(axis=0).tolist()
            axes.plot(
                [x], [y], marker, color=_colour(side.predicted, classes), markersize=13,
                markeredgecolor=INK, markeredgewidth=1.4, zorder=4,
            )  # fmt: skip
            axes.annotate(
                shortened(side.word or ""), (x, y), (8, 8), textcoords="offset points",
                fontsize=9, fontweight="bold", zorder=5,
            )  # fmt: skip
        axes.set_title(pair.model, fontsize=10, loc="left")
        axes.set_aspect("equal", adjustable="datalim")
        axes.legend(frameon=False, fontsize=7.5, loc="upper center", bbox_to_anchor=(0.5, -0.01), ncols=2)
        _without_frame(axes)

    return draw


def _colour(name: str, classes: Sequence[str]) -> str:
    return PALETTE[list(classes).index(name) % len(PALETTE)] if name in classes else SOFT


def _without_frame(axes: Axes) -> None:
    axes.set_xticks([])
    axes.set_yticks([])
    for side in ("left", "bottom"):
        axes.spines[side].set_visible(False)
