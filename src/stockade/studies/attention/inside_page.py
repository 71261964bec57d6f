"""What the page shows of the inside of the models: attention strips, maps of embeddings, Theorem 1."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from stockade.report.document import Block, Cell, Heading, Note, Plot, Table
from stockade.report.examples import Word, Words
from stockade.report.figures import AMBER, BLUE, GRID, INK, bare, draw_figure, draw_plot, legend_above, shortened
from stockade.report.numbers import NOT_AVAILABLE, count, number, ranged_cell
from stockade.studies.attention.analysis import ModelNumbers
from stockade.studies.attention.inside import EmbeddingChange, TextChange
from stockade.studies.attention.theorem import HeadCheck, MovesByDirection, TheoremCheck

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Models = Mapping[str, ModelNumbers]
_STRIP_WORDS, _MAP_WORDS = 60, 40
"""The most words of a text that a strip of attention and a map of embeddings show."""
_FAR = 5
_NO_SUCCESS = Note("gs-ec has no success to show.", kind="aside")
_ATTENTION = (
    "Over the successes of gs-ec, means with 95 % bootstrap intervals. Attention of a word: BERT-like models layer 0, "
    "mean over heads and query tokens, summed over the word's tokens (special tokens have the rest); BiLSTM-attention "
    "its pooling weights. Moved: half the sum of all absolute changes."
)
_EMBEDDINGS = (
    "R_e = ‖z − z′‖₂ / ‖z‖₂ of the sentence vector (what the last linear layer reads), mean over the successes of "
    "gs-ec with a 95 % bootstrap interval. The maps show ‖z − z′‖₂ of each word's hidden vector, the mean of its "
    "tokens; colours follow its square root, and layers of different width or scale are not comparable. Input vectors "
    "hold positions: behind a word of another number of tokens they move too."
)
_THEOREM = (
    "If one vector moves by Δ of length δ, a score s_ij moves by x_i′ W_Q W_K′ Δ. With x_i uniform on the unit sphere "
    "its mean size is at most ‖W_Q‖ ‖W_K‖ δ / √d, and by Markov's inequality it exceeds ε with a chance of at most "
    "that over ε: 0.5 at two bounds, 0.25 at four. The tables show the lowest and highest ratio of the mean to the "
    "bound over the heads of a layer, for the worst Δ and for one of random direction, and the largest chances of the "
    "worst Δ. The query's bias and the division by the root of the head's width are left out, the key's bias cancels. "
    "“Real” takes the model's own vectors, brought to length 1, for x_i: that is outside of the theorem's assumption, "
    "and ratios above 1 do not contradict it."
)


def attention_blocks(models: Models) -> Iterator[Block]:
    """Attention before and after: means, then a few texts word by word."""
    yield Heading("Attention before and after", aside="Figures 1 and 2")
    yield _attention_table(models)
    for name, model in models.items():
        yield Heading(name, level=3)
        strips = [attention_strip(change) for change in model.examples if change.attention is not None]
        if model.without_attention:
            yield Note(f"n/a: {model.without_attention}.", kind="aside")
        elif not strips:
            yield _NO_SUCCESS
        yield from strips


def _attention_table(models: Models) -> Table:
    rows: list[tuple[str | Cell, ...]] = []
    for name, model in models.items():
        shift = model.attention
        cells = (
            [NOT_AVAILABLE] * 5
            if shift is None
            else [
                f"{shift.texts:,}",
                ranged_cell(shift.others, 4),
                ranged_cell(shift.relative, 3),
                ranged_cell(shift.replaced, 3),
                ranged_cell(shift.moved, 3),
            ]
        )
        rows.append((name, *cells))
    columns = ("model", "texts", "change of another word", "relative to its attention", "of the replaced word")
    return Table((*columns, "attention moved"), rows, caption=_ATTENTION)


def attention_strip(change: TextChange) -> Words:
    """The words of a success with their attention before and after, one above the other."""
    assert change.attention is not None
    start, end = _window(len(change.words), change.index, _STRIP_WORDS)
    before, after = change.attention.before, change.attention.after
    top = max([*before, *after, 1e-9])
    changed = [*change.words[: change.index], change.replacement, *change.words[change.index + 1 :]]

    def row(words: Sequence[str], scores: Sequence[float]) -> list[Word]:
        return [
            Word(words[index], index == change.index, round(scores[index] / top, 3), f"{scores[index]:.3f}")
            for index in range(start, end)
        ]

    part = " · a part of the text" if end - start < len(change.words) else ""
    title = f"example {change.id}, {change.label} → {change.prediction}{part}"
    return Words([("before", row(change.words, before)), ("after", row(changed, after))], title)


def _window(length: int, index: int, most: int) -> tuple[int, int]:
    """Where a text is cut to at most so many words around the replaced one."""
    start = max(0, min(index - most // 2, length - most))
    return start, min(length, start + most)


def embedding_blocks(models: Models) -> Iterator[Block]:
    """How far embeddings move: R_e, then a text and the mean over all texts, layer by layer."""
    yield Heading("How far embeddings move", aside="Figure 4")
    yield _embedding_table(models)
    for name, model in models.items():
        yield Heading(name, level=3)
        change = model.embedding_change
        if model.without_layers:
            yield Note(f"n/a: {model.without_layers}.", kind="aside")
        elif change is None:
            yield _NO_SUCCESS
        else:
            yield from _maps(name, change, next((text for text in model.examples if text.layers), None))


def _maps(name: str, mean: EmbeddingChange, example: TextChange | None) -> Iterator[Block]:
    if example is not None:
        text = example
        caption = f"Example {text.id}, {text.label} → {text.prediction}; the replaced word is framed."
        yield Plot(lambda: example_map(name, text), caption, f"embeddings of an example, {name}")
    caption = (
        f"Mean over {count(mean.texts, 'success', 'successes')}, by distance from the replaced word; grey where no "
        "text reaches."
    )
    yield Plot(lambda: mean_map(name, mean), caption, f"mean change of embeddings, {name}")


def _embedding_table(models: Models) -> Table:
    """R_e, with what the last layer does at the replaced word and far from it."""
    rows = []
    for name, model in models.items():
        relative = model.relative_embedding_change
        near, far = _near_and_far(model.embedding_change)
        cells = (f"{relative.texts:,}", ranged_cell(relative.mean, 3), number(near, 3), number(far, 3))
        rows.append((name, *cells))
    columns = ("model", "texts", "R_e", "last layer, replaced word", "last layer, 5 to 10 words away")
    return Table(columns, rows, caption=_EMBEDDINGS)


def _near_and_far(change: EmbeddingChange | None) -> tuple[float | None, float | None]:
    if change is None:
        return None, None
    last = dict(zip(change.distances, change.layers[-1], strict=True))
    far = [move for distance, move in last.items() if abs(distance) >= _FAR and move is not None]
    return last[0], sum(far) / len(far) if far else None


def example_map(name: str, change: TextChange) -> str:
    """Figure 4: how far each word's vector moved in each layer, for one text."""
    assert change.layers is not None
    start, end = _window(len(change.words), change.index, _MAP_WORDS)
    words = list(change.words)
    words[change.index] = f"{change.words[change.index]} → {change.replacement}"
    rows = [layer[start:end] for layer in change.layers]
    columns = [shortened(word) for word in words[start:end]]
    return _heat_map(f"example-{name}", rows, columns, change.index - start, "‖z − z′‖₂", 55)


def mean_map(name: str, change: EmbeddingChange) -> str:
    """The mean change by layer and distance from the replaced word."""
    columns = [f"{distance:+d}" if distance else "word" for distance in change.distances]
    return _heat_map(f"mean-{name}", change.layers, columns, change.distances.index(0), "mean ‖z − z′‖₂", 0)


def _heat_map(
    name: str, rows: Sequence[Sequence[float | None]], columns: Sequence[str], framed: int, label: str, turned: int
) -> str:
    """Layers from the input at the bottom to the last on top; the replaced word is framed."""
    import numpy as np

    values = np.array([[np.nan if value is None else value for value in row] for row in rows], dtype=np.float64)
    if not np.isfinite(values).any():
        return ""

    def draw(figure: Figure) -> None:
        from matplotlib.colors import PowerNorm
        from matplotlib.patches import Rectangle

        scale = PowerNorm(0.5, vmin=0, vmax=max(float(np.nanmax(values)), 1e-9))  # inputs often dwarf later layers
        axes = figure.add_subplot(facecolor=GRID)
        image = axes.imshow(values, aspect="auto", origin="lower", cmap="YlOrRd", norm=scale, interpolation="nearest")
        axes.set_xticks(range(len(columns)), columns, rotation=turned, ha="right" if turned else "center", fontsize=8)
        axes.set_yticks(range(len(rows)), ["input", *map(str, range(1, len(rows)))], fontsize=8)
        axes.set_ylabel("layer")
        axes.tick_params(length=0)
        frame = Rectangle((framed - 0.5, -0.5), 1, len(rows), fill=False, edgecolor=INK, linewidth=1.2, clip_on=False)
        axes.add_patch(frame)
        bare(axes)
        axes.spines[["left", "bottom"]].set_visible(False)
        bar = figure.colorbar(image, ax=axes, label=label, pad=0.01, fraction=0.04)
        bar.outline.set_visible(False)
        bar.ax.tick_params(labelsize=8)

    longest = max(map(len, columns), default=1) if turned else 2
    return draw_figure(name, (8.2, 0.9 + 0.26 * len(rows) + 0.055 * longest), draw)


def theorem_blocks(models: Models) -> Iterator[Block]:
    """Every head of every model against the bound of Theorem 1."""
    yield Heading("Theorem 1 on real attention layers")
    for name, model in models.items():
        yield Heading(name, level=3)
        if model.theorem is None:
            yield Note(f"n/a: {model.without_theorem or 'not checked yet'}.", kind="aside")
        else:
            yield from _theorem_of(name, model.theorem)
    yield Note(_THEOREM, kind="aside")


def _theorem_of(name: str, theorem: TheoremCheck) -> Iterator[Block]:
    caption = (
        f"d = {theorem.dimension}, {theorem.samples:,} draws per head, {theorem.real_vectors:,} of the model's own "
        f"vectors. With W_Q = W_K = identity the ratio would be {theorem.expected_ratio:.3f}."
    )
    yield theorem_table(theorem, caption)
    yield Plot(lambda: theorem_plot(name, theorem), "Each head against the bound, which is 1.", f"Theorem 1, {name}")


def theorem_table(theorem: TheoremCheck, caption: str = "") -> Table:
    """The heads of a model by layer, as ratios to the bound."""
    rows = []
    for layer in dict.fromkeys(head.layer for head in theorem.heads):
        heads = [head for head in theorem.heads if head.layer == layer]
        tails = [max(head.uniform.worst.tails[index] or 0.0 for head in heads) for index in range(len(theorem.tails))]
        uniform, real = [head.uniform for head in heads], [head.real for head in heads if head.real]
        above = f"{sum((moves.worst.ratio or 0.0) > 1 for moves in real)}" if real else NOT_AVAILABLE
        rows.append(
            (
                str(layer),
                f"{len(heads)}",
                *_ranges(uniform),
                *(f"{tail:.3f}" for tail in tails),
                *_ranges(real),
                above,
            )
        )
    columns = ("layer", "heads", "uniform, worst Δ", "uniform, random Δ", "P at ε = 2 bounds", "P at ε = 4 bounds")
    return Table((*columns, "real, worst Δ", "real, random Δ", "heads above 1"), rows, caption=caption)


def _ranges(moves: Sequence[MovesByDirection]) -> tuple[str, str]:
    """The lowest and highest ratios for the worst Δ, and for random ones."""
    return _range([move.worst.ratio for move in moves], 2), _range([move.random.ratio for move in moves], 3)


def _range(ratios: Sequence[float | None], digits: int) -> str:
    measured = [ratio for ratio in ratios if ratio is not None]
    return f"{min(measured):.{digits}f}–{max(measured):.{digits}f}" if measured else NOT_AVAILABLE


def theorem_in_short(models: Models) -> Iterator[str]:
    """What Theorem 1 says of each model with self-attention, as a sentence."""
    for name, model in models.items():
        if model.theorem is None:
            continue
        heads = model.theorem.heads
        holding = sum((head.uniform.worst.ratio or 0.0) <= 1 for head in heads)
        above = sum((head.real.worst.ratio or 0.0) > 1 for head in heads if head.real)
        yield (
            f"{name}: the bound of Theorem 1 holds for {holding} of {len(heads)} heads with uniform vectors, as it "
            f"must; with the model's own vectors and the worst perturbation {above} heads exceed it."
        )


def theorem_plot(name: str, theorem: TheoremCheck) -> str:
    """Every head against the bound, layer by layer."""

    def points(
        axes: Axes, label: str, colour: str, shift: float, ratios: Sequence[tuple[HeadCheck, float | None]]
    ) -> None:
        measured = [(head.layer + shift, ratio) for head, ratio in ratios if ratio is not None]
        if measured:
            axes.plot(*zip(*measured, strict=True), "o", color=colour, markersize=4, alpha=0.7, label=label)

    def draw(axes: Axes) -> None:
        heads = theorem.heads
        uniform = [(head, head.uniform.worst.ratio) for head in heads]
        real = [(head, head.real.worst.ratio) for head in heads if head.real is not None]
        points(axes, "uniform vectors (the theorem)", BLUE, -0.12, uniform)
        points(axes, "the model's own vectors (outside of it)", AMBER, 0.12, real)
        axes.axhline(1, color=INK, linewidth=1)
        axes.set_xticks(sorted({head.layer for head in heads}))
        axes.set_ylim(bottom=0)
        axes.set_xlabel("layer, a point for each head")
        axes.set_ylabel("E|s′ − s| / bound")
        axes.grid(axis="y", color=GRID)
        legend_above(axes)

    return draw_plot(f"theorem-{name}", (8.2, 2.8), draw)
