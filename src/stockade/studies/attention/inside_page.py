"""What the page shows of the inside of the models: attention strips, maps of embeddings, Theorem 1."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from stockade.report.document import Block, Cell, Heading, Note, Plot, Table
from stockade.report.examples import Word, Words
from stockade.report.figures import GRID, INK, bare, draw_figure, shortened
from stockade.report.numbers import NOT_AVAILABLE, count, number, ranged_cell
from stockade.studies.attention.analysis import LeastAndMost, ModelNumbers
from stockade.studies.attention.inside import AttentionView, TextChange
from stockade.studies.attention.means import EmbeddingChange

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Models = Mapping[str, ModelNumbers]
_STRIP_WORDS, _MAP_WORDS = 60, 40
"""The most words of a text that a strip of attention and a map of embeddings show."""
_FAR = 5
_NO_SUCCESS = Note("gs-ec has no success to show.", kind="aside")
_ATTENTION = (
    "Over the successes of gs-ec, means with 95 % bootstrap intervals. Attention moved: half the sum of all absolute "
    "changes, special tokens among them, the share of attention that went elsewhere. Relative changes are divided by "
    "the attention of the same words before, and have no upper bound. Attention of a word: BERT-like models {view}, "
    "summed over the word's tokens (special tokens have the rest); BiLSTM-attention its pooling weights."
)
_LEAST_AND_MOST = (
    "The same text by itself, under asmin-ec and under asmax-ec, each of which replaces the marked word. Attention is "
    "the number by which these attacks choose: BERT-like models {view}, {pieces} of a word; BiLSTM-attention its "
    "pooling weights."
)
_PIECES = {"sum": "the sum over the pieces", "mean": "the mean over the pieces", "max": "the largest of the pieces"}
_EMBEDDINGS = (
    "R_e = ‖z − z′‖₂ / ‖z‖₂ of the sentence vector (what the last linear layer reads), mean over the successes of "
    "gs-ec with a 95 % bootstrap interval. The maps show ‖z − z′‖₂ of each word's hidden vector, the mean of its "
    "tokens; colours follow its square root, and layers of different width or scale are not comparable. The means "
    "leave out successes whose new word has another number of tokens than the old one: behind it all positions shift, "
    "and every vector moves for that reason alone."
)


def attention_blocks(models: Models, view: AttentionView) -> Iterator[Block]:
    """Attention before and after: means, then a few texts word by word."""
    yield Heading("Attention before and after", aside="Figure 2")
    yield _attention_table(models, view)
    for name, model in models.items():
        yield Heading(name, level=3)
        strips = [attention_strip(change) for change in model.examples if change.attention is not None]
        if model.without_attention:
            yield Note(f"n/a: {model.without_attention}.", kind="aside")
        elif not strips:
            yield _NO_SUCCESS
        yield from strips


def least_and_most_blocks(models: Models, view: AttentionView) -> Iterator[Block]:
    """What asmin-ec and asmax-ec do to the attention of the same text."""
    yield Heading("The least and the most attended word", aside="Figure 1")
    yield Note(_LEAST_AND_MOST.format(view=_in_words(view), pieces=_PIECES[view.pieces]), kind="aside")
    for name, model in models.items():
        yield Heading(name, level=3)
        if model.without_attention:
            yield Note(f"n/a: {model.without_attention}.", kind="aside")
        elif not model.least_and_most:
            yield Note("No text is fooled by both asmin-ec and asmax-ec.", kind="aside")
        yield from (least_and_most_strip(pair) for pair in model.least_and_most)


def _in_words(view: AttentionView) -> str:
    layer = "the last layer" if view.layer == -1 else f"layer {view.layer}"
    queries = "over heads and query tokens" if view.query == "mean" else "over heads of the first query token"
    return f"{layer}, mean {queries}"


def least_and_most_strip(pair: LeastAndMost) -> Words:
    """The words of one text with their attention: by itself, under asmin-ec, under asmax-ec."""
    least, most = pair.least.attention, pair.most.attention
    assert least is not None
    assert most is not None
    part = _window(len(pair.least.words), pair.most.index, _STRIP_WORDS)
    top = max([*least.before, *least.after, *most.after, 1e-9])
    chosen = (pair.least.index, pair.most.index)
    rows = [
        ("original", _words(pair.least.words, least.before, chosen, part, top)),
        ("asmin-ec", _words(_replaced(pair.least), least.after, chosen[:1], part, top)),
        ("asmax-ec", _words(_replaced(pair.most), most.after, chosen[1:], part, top)),
    ]
    answers = f"{pair.least.prediction} (asmin-ec), {pair.most.prediction} (asmax-ec)"
    return Words(rows, f"example {pair.least.id}, {pair.least.label} → {answers}{_cut(pair.least, part)}")


def _cut(change: TextChange, part: tuple[int, int]) -> str:
    return " · a part of the text" if part[1] - part[0] < len(change.words) else ""


def _replaced(change: TextChange) -> list[str]:
    return [*change.words[: change.index], change.replacement, *change.words[change.index + 1 :]]


def _words(
    words: Sequence[str], scores: Sequence[float], marked: Sequence[int], part: tuple[int, int], top: float
) -> list[Word]:
    """Some words with their attention, the deeper in colour the more, and some of them marked."""
    return [
        Word(words[index], index in marked, round(scores[index] / top, 3), f"{scores[index]:.3f}")
        for index in range(*part)
    ]


def _attention_table(models: Models, view: AttentionView) -> Table:
    rows: list[tuple[str | Cell, ...]] = []
    for name, model in models.items():
        shift = model.attention
        cells = (
            [NOT_AVAILABLE] * 5
            if shift is None
            else [
                f"{shift.texts:,}",
                ranged_cell(shift.moved, 3),
                ranged_cell(shift.replaced, 3),
                ranged_cell(shift.others, 4),
                ranged_cell(shift.relative, 3),
            ]
        )
        rows.append((name, *cells))
    columns = ("model", "texts", "attention moved", "change of the replaced word", "of another word")
    return Table((*columns, "relative to its attention"), rows, caption=_ATTENTION.format(view=_in_words(view)))


def attention_strip(change: TextChange) -> Words:
    """The words of a success with their attention before and after, one above the other."""
    assert change.attention is not None
    part = _window(len(change.words), change.index, _STRIP_WORDS)
    before, after = change.attention.before, change.attention.after
    top, marked = max([*before, *after, 1e-9]), (change.index,)
    rows = [
        ("before", _words(change.words, before, marked, part, top)),
        ("after", _words(_replaced(change), after, marked, part, top)),
    ]
    where = "" if change.side is None else f", in the {change.side}"
    return Words(rows, f"example {change.id}, {change.label} → {change.prediction}{where}{_cut(change, part)}")


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
        if text.pieces is not None and not text.keeps_length:
            tokens = f"{count(text.pieces[0], 'token')} and is {text.pieces[1]}"
            caption += f" It was {tokens}: all positions behind it shift."
        yield Plot(lambda: example_map(name, text), caption, f"embeddings of an example, {name}")
    if not mean.texts:
        several = count(mean.left_out, "success", "successes")
        yield Note(
            f"No mean: the new word has another number of tokens than the old one in all of {several}.", kind="aside"
        )
        return
    left_out = f" ({mean.left_out:,} with another number of tokens are left out)" if mean.left_out else ""
    caption = (
        f"Mean over {count(mean.texts, 'success', 'successes')}{left_out}, by distance from the replaced word; grey "
        "where no text reaches."
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
