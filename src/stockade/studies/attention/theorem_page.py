"""What the page says of Theorem 1: every head of a model against the bound."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from stockade.report.document import Block, Heading, Note, Plot, Table
from stockade.report.figures import AMBER, BLUE, GRID, INK, draw_plot, legend_above
from stockade.report.numbers import NOT_AVAILABLE
from stockade.studies.attention.analysis import ModelNumbers
from stockade.studies.attention.theorem import HeadCheck, MovesByDirection, TheoremCheck

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Models = Mapping[str, ModelNumbers]
_THEOREM = (
    "If one vector moves by Δ of length δ, a score s_ij moves by x_i′ W_Q W_K′ Δ. With x_i uniform on the unit sphere "
    "its mean size is at most ‖W_Q‖ ‖W_K‖ δ / √d, and by Markov's inequality it exceeds ε with a chance of at most "
    "that over ε: 0.5 at two bounds, 0.25 at four. The tables show the lowest and highest ratio of the mean to the "
    "bound over the heads of a layer, for the worst Δ and for one of random direction, and the largest chances of the "
    "worst Δ. The query's bias and the division by the root of the head's width are left out, the key's bias cancels. "
    "“Real” takes the model's own vectors, brought to length 1, for x_i: that is outside of the theorem's assumption, "
    "and ratios above 1 do not contradict it."
)


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
