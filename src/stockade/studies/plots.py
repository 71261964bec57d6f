"""Drawing for studies, in the look of the other reports."""

from __future__ import annotations

from stockade.report.drawing import GRID, bare, draw_figure, draw_plot

__all__ = ["GRID", "bare", "draw_figure", "draw_plot"]
