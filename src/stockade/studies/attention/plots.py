"""The plots of the study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stockade.report.plots import INK
from stockade.studies.attention.victims import ATTACKS, RANDOM
from stockade.studies.plots import GRID, bare, draw_figure, draw_plot

COLOURS = ("#3b6ea5", "#b5422c", "#2d7a4f", "#c98a12", "#5d6875", "#7a4f9a")
_UNIFORM, _REAL = "#3b6ea5", "#c98a12"
_SHOWN_WORDS = 40
Numbers = Mapping[str, Any]


def success_plot(numbers: Numbers) -> str:
    """Success rates with 95 % intervals, a group of points for each attack."""
    models = numbers["models"]

    def draw(axes: Any) -> None:
        step = 0.7 / max(1, len(models))
        for at, (name, model) in enumerate(models.items()):
            colour, label = COLOURS[at % len(COLOURS)], name
            for line, attack in enumerate(ATTACKS):
                rate = model["attacks"].get(attack, {}).get("rate")
                if rate is None or rate["value"] is None:
                    continue
                y = line + (at - (len(models) - 1) / 2) * step
                if rate["low"] is not None:
                    axes.plot([100 * rate["low"], 100 * rate["high"]], [y, y], color=colour, linewidth=2, alpha=0.45)
                axes.plot([100 * rate["value"]], [y], "o", color=colour, markersize=6, label=label)
                label = "_nolegend_"
        names = [f"{attack} (draws)" if attack == RANDOM else attack for attack in ATTACKS]
        axes.set_yticks(range(len(ATTACKS)), names)
        axes.set_ylim(len(ATTACKS) - 0.4, -0.6)
        axes.set_xlim(-2, 102)
        axes.set_xlabel("success rate, %")
        axes.grid(axis="x", color=GRID)
        axes.tick_params(axis="y", length=0)
        if models:
            axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(0, 1.12), ncols=4, handletextpad=0.2)

    return draw_plot("attention-success", (8.2, 3.8), draw)


def example_map(name: str, look: Numbers) -> str:
    """Figure 4: how far each word's vector moved in each layer, for one text."""
    if not look["layers"]:
        return ""
    start, end = _window(len(look["words"]), look["index"])
    rows = [layer[start:end] for layer in look["layers"]]
    words = [
        f"{word} → {look['replacement']}" if at == look["index"] else word for at, word in enumerate(look["words"])
    ]
    return _heat_map(f"example-{name}", rows, words[start:end], look["index"] - start, "‖z − z′‖₂", 55)


def mean_map(name: str, change: Numbers | None) -> str:
    """The mean change by layer and distance from the replaced word."""
    if change is None:
        return ""
    labels = [f"{distance:+d}" if distance else "word" for distance in change["distances"]]
    return _heat_map(f"mean-{name}", change["layers"], labels, change["distances"].index(0), "mean ‖z − z′‖₂", 0)


def theorem_plot(numbers: Numbers, name: str) -> str:
    """Every head against the bound, layer by layer."""
    theorem = numbers["models"][name]["theorem"]
    if theorem is None:
        return ""
    heads = theorem["heads"]

    def draw(axes: Any) -> None:
        for kind, colour, shift in (("uniform", _UNIFORM, -0.12), ("real", _REAL, 0.12)):
            points = [
                (head["layer"] + shift, head[kind]["worst"]["ratio"])
                for head in heads
                if head[kind] is not None and head[kind]["worst"]["ratio"] is not None
            ]
            told = "uniform vectors (the theorem)" if kind == "uniform" else "the model's own vectors (outside of it)"
            if points:
                axes.plot(*zip(*points, strict=True), "o", color=colour, markersize=4, alpha=0.7, label=told)
        axes.axhline(1, color=INK, linewidth=1)
        axes.set_xticks(sorted({head["layer"] for head in heads}))
        axes.set_ylim(bottom=0)
        axes.set_xlabel("layer, a point for each head")
        axes.set_ylabel("E|s′ − s| / bound")
        axes.grid(axis="y", color=GRID)
        axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(0, 1.18), ncols=2, handletextpad=0.2)

    return draw_plot(f"theorem-{name}", (8.2, 2.8), draw)


def _heat_map(
    name: str, rows: Sequence[Sequence[float | None]], columns: Sequence[str], marked: int, label: str, turned: int
) -> str:
    """Layers from the input at the bottom to the last on top; the replaced word is framed."""
    import numpy as np

    values = np.array([[np.nan if value is None else value for value in row] for row in rows], dtype=np.float64)
    if not np.isfinite(values).any():
        return ""

    def draw(figure: Any) -> None:
        from matplotlib.colors import PowerNorm
        from matplotlib.patches import Rectangle

        scale = PowerNorm(0.5, vmin=0, vmax=max(float(np.nanmax(values)), 1e-9))  # inputs often dwarf later layers
        axes = figure.add_subplot(facecolor="#f2f4f6")
        image = axes.imshow(values, aspect="auto", origin="lower", cmap="YlOrRd", norm=scale, interpolation="nearest")
        axes.set_xticks(range(len(columns)), columns, rotation=turned, ha="right" if turned else "center", fontsize=8)
        axes.set_yticks(range(len(rows)), ["input", *map(str, range(1, len(rows)))], fontsize=8)
        axes.set_ylabel("layer")
        axes.tick_params(length=0)
        axes.add_patch(
            Rectangle((marked - 0.5, -0.5), 1, len(rows), fill=False, edgecolor=INK, linewidth=1.2, clip_on=False)
        )
        bare(axes)
        for side in ("left", "bottom"):
            axes.spines[side].set_visible(False)
        bar = figure.colorbar(image, ax=axes, label=label, pad=0.01, fraction=0.04)
        bar.outline.set_visible(False)
        bar.ax.tick_params(labelsize=8)

    longest = max(map(len, columns), default=1) if turned else 2
    return draw_figure(name, (8.2, 0.9 + 0.26 * len(rows) + 0.055 * longest), draw)


def _window(length: int, index: int) -> tuple[int, int]:
    """At most so many words, around the replaced one."""
    start = max(0, min(index - _SHOWN_WORDS // 2, length - _SHOWN_WORDS))
    return start, min(length, start + _SHOWN_WORDS)
