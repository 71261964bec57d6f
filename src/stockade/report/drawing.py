"""Drawing for pages: SVG that stands in the page; the same numbers give the same bytes."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

INK, GRID = "#20262e", "#e3e7ec"


def draw_plot(name: str, size: tuple[float, float], draw: Callable[[Any], None]) -> str:
    """One pair of axes."""

    def on_figure(figure: Any) -> None:
        axes = figure.add_subplot(facecolor="none")
        draw(axes)
        bare(axes)

    return draw_figure(name, size, on_figure)


def bare(axes: Any) -> None:
    """Without the frame on top and at the right."""
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def draw_figure(name: str, size: tuple[float, float], draw: Callable[[Any], None]) -> str:
    """A whole figure."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    with rc_context(
        {"svg.fonttype": "none", "svg.hashsalt": f"stockade-{name}", "font.family": "sans-serif", "text.color": INK}
    ):
        figure = Figure(figsize=size, layout="constrained", facecolor="none")
        FigureCanvasSVG(figure)
        draw(figure)
        stream = io.StringIO()
        figure.savefig(stream, format="svg", metadata={"Date": None})
    svg = stream.getvalue()
    return svg[svg.index("<svg") :]
