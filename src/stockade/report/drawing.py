"""The drawing helpers under their old name, for pages that are not documents yet."""

from stockade.report.figures import GRID, INK, bare, draw_figure, draw_plot

__all__ = ["GRID", "INK", "bare", "draw_figure", "draw_plot"]
