"""The plots of the study."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stockade.report.plots import INK
from stockade.studies.plots import GRID, draw_plot

COLOURS = {
    "bae-r": "#3b6ea5",
    "bae-i": "#2d7a4f",
    "bae-r/i": "#c98a12",
    "bae-r+i": "#b5422c",
    "textfooler": "#5d6875",
}
_MARKERS = {"bae-r": "o", "bae-i": "s", "bae-r/i": "D", "bae-r+i": "^", "textfooler": "x"}


def curve_plot(numbers: Mapping[str, Any]) -> str:
    """Figure 2: accuracy after the attack against the largest perturbation allowed; empty when there is nothing to
    show.
    """
    caps = [100 * cap for cap in numbers["curve"]["caps"]]
    curves = {name: [point["value"] for point in curve] for name, curve in numbers["curve"]["attacks"].items()}
    unknown = any(value is None for curve in curves.values() for value in curve)
    if unknown or not any(found["attacked"] for found in numbers["attacks"].values()):
        return ""

    def draw(axes: Any) -> None:
        last = _where_flat(curves)
        for name, curve in curves.items():
            style = "--" if name == "textfooler" else "-"
            axes.plot(
                caps[: last + 1],
                [100 * value for value in curve[: last + 1]],
                style,
                color=COLOURS[name],
                marker=_MARKERS[name],
                markersize=5,
                linewidth=1.8,
                label=name,
            )
        axes.set_xlabel("largest perturbation allowed, % of the words")
        axes.set_ylabel("accuracy after the attack, %")
        axes.set_ylim(-3, 103)
        axes.grid(color=GRID)
        axes.legend(frameon=False)

    return draw_plot("curve", (8.2, 3.8), draw)


def trade_plot(numbers: Mapping[str, Any]) -> str:
    """How often each attack succeeds, with its 95 % interval, against how similar its texts stay: up and to the right
    is worse for the model's owner.
    """
    points = {
        name: (found["success_rate"], found["mean_similarity"])
        for name, found in numbers["attacks"].items()
        if found["mean_similarity"] is not None and found["success_rate"]["value"] is not None
    }
    if not points:
        return ""

    def draw(axes: Any) -> None:
        for name, (rate, similarity) in points.items():
            axes.plot(
                [100 * rate["low"], 100 * rate["high"]], [similarity] * 2, color=COLOURS[name], linewidth=2, alpha=0.45
            )
            axes.plot(
                [100 * rate["value"]],
                [similarity],
                _MARKERS[name],
                color=COLOURS[name],
                markersize=9,
                markeredgewidth=2,
                label=name,
            )
        axes.set_xlim(-2, 102)
        axes.margins(y=0.25)
        axes.set_xlabel("success rate, %")
        axes.set_ylabel("mean similarity")
        axes.grid(color=GRID)
        axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(0, 1.16), ncols=5, handletextpad=0.2)

    return draw_plot("trade", (8.2, 3.4), draw)


def split_plot(numbers: Mapping[str, Any]) -> str:
    """Table 5 as bars with 95 % intervals."""
    found = numbers["splits"]["splits"]
    if not numbers["splits"]["attacked"]:
        return ""

    def draw(axes: Any) -> None:
        for line, name in enumerate(found):
            share = found[name]["share"]
            axes.barh([line], [100 * share["value"]], height=0.55, color="#8aa4c0")
            axes.plot([100 * share["low"], 100 * share["high"]], [line, line], color=INK, linewidth=1.5)
        axes.set_yticks(range(len(found)), list(found))
        axes.set_ylim(len(found) - 0.5, -0.5)
        axes.set_xlim(left=0)
        axes.set_xlabel("% of the attacked texts")
        axes.grid(axis="x", color=GRID)
        axes.tick_params(axis="y", length=0)

    return draw_plot("splits", (8.2, 1.9), draw)


def _where_flat(curves: Mapping[str, list[float]]) -> int:
    """The first point after which no curve changes any more, with a little room behind it."""
    length = min(map(len, curves.values()))
    moving = [at for curve in curves.values() for at in range(1, length) if curve[at] != curve[at - 1]]
    return min(length - 1, max([*moving, 5]) + 2)
