"""The plot of an evaluation: what a defense costs in clean accuracy against what it leaves in the worst case."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stockade.report.drawing import GRID, INK, draw_plot

COLOURS = ("#3b6ea5", "#b5422c", "#2d7a4f", "#c98a12", "#5d6875", "#7a4f9a")
MARKERS = ("o", "s", "D", "^", "v", "P", "X", "*")
_LONGEST = 48


def shortened(name: str) -> str:
    """A name for the legend, which would else leave the plot no room: the middle of a long one is left out."""
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST // 2]}…{name[-_LONGEST // 2 + 1 :]}"


def trade_plot(numbers: Mapping[str, Any]) -> str:
    """One point for each model and defense with 95 % intervals: a colour is a model, a shape a defense; hollow where
    something could not be run, so that the worst case may be worse. Empty when nothing was measured.
    """
    points = [
        row
        for row in numbers["rows"]
        if row["made"] and None not in (row["clean"]["accuracy"]["value"], row["worst"]["robust_accuracy"]["value"])
    ]
    if not points:
        return ""
    colours = {name: COLOURS[at % len(COLOURS)] for at, name in enumerate(numbers["models"])}
    markers = {name: MARKERS[at % len(MARKERS)] for at, name in enumerate(numbers["defenses"])}

    def draw(axes: Any) -> None:
        axes.plot([0, 100], [0, 100], color=GRID, linewidth=1.2, linestyle="--")
        for row in points:
            clean, robust, colour = row["clean"]["accuracy"], row["worst"]["robust_accuracy"], colours[row["model"]]
            x, y = 100 * clean["value"], 100 * robust["value"]
            axes.plot([100 * clean["low"], 100 * clean["high"]], [y, y], color=colour, linewidth=1.4, alpha=0.4)
            axes.plot([x, x], [100 * robust["low"], 100 * robust["high"]], color=colour, linewidth=1.4, alpha=0.4)
            inside, edge = (colour, "white") if row["worst"]["complete"] else ("white", colour)
            axes.plot([x], [y], markers[row["defense"]], color=inside, markersize=8, markeredgecolor=edge)
        left = min(100 * row["clean"]["accuracy"]["low"] for row in points)
        axes.set_xlim(max(-2, left - 4), 101.5)
        axes.set_ylim(-3, 103)
        axes.set_xlabel("clean accuracy, %")
        axes.set_ylabel("worst-case accuracy, %")
        axes.grid(color=GRID)
        for model, colour in colours.items():
            axes.plot([], [], "o", color=colour, label=shortened(model))
        for defense, marker in markers.items():
            axes.plot([], [], marker, color=INK, markerfacecolor="none", label=shortened(defense))
        axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.02, 1), handletextpad=0.3)

    return draw_plot("evaluation", (8.2, 4.2), draw)
