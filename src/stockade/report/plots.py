"""Plots of attack reports, as SVG that stands in the page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stockade.report.drawing import GRID, INK, draw_plot

__all__ = ["CLEAN", "INK", "ROBUST", "accuracy_plot"]

CLEAN, ROBUST = "#8aa4c0", "#b5422c"


def accuracy_plot(rows: Sequence[tuple[str, dict[str, Any]]]) -> str:
    """Clean and robust accuracy of each attack with 95 % intervals, one line per attack; empty when nothing was
    measured.
    """
    measured = [(name, numbers) for name, numbers in rows if numbers["n"]]
    if not measured:
        return ""

    def draw(axes: Any) -> None:
        for line, (_, numbers) in enumerate(measured):
            for key, colour, offset in (("clean_accuracy", CLEAN, -0.14), ("robust_accuracy", ROBUST, 0.14)):
                interval = numbers[key]
                axes.plot(
                    [interval["low"], interval["high"]], [line + offset] * 2, color=colour, linewidth=2, alpha=0.6
                )
                axes.plot([interval["value"]], [line + offset], "o", color=colour, markersize=8)
        axes.set_yticks(range(len(measured)), [name for name, _ in measured])
        axes.set_ylim(len(measured) - 0.5, -0.5)
        axes.set_xlim(-0.02, 1.02)
        axes.set_xlabel("accuracy")
        axes.grid(axis="x", color=GRID)
        axes.spines["left"].set_visible(False)
        axes.tick_params(axis="y", length=0)
        for label, colour in (("clean", CLEAN), ("under attack", ROBUST)):
            axes.plot([], [], "o", color=colour, label=label)
        axes.legend(loc="upper left", bbox_to_anchor=(0, 1.0), ncols=2, frameon=False, borderaxespad=-1.6)

    return draw_plot("attacks", (8.2, 0.9 + 0.5 * len(measured)), draw)
