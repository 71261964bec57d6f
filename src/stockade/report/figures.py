"""Figures as SVG that stands in a page: palette, frame, panels and legends. The kinds of plots are in `charts`.

The same numbers give the same bytes. Colours of the palette are variables of the page's style with the light colour as
fallback, so that a plot follows the page into the dark.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from stockade.core.sanitize import terminal

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, GRID, PAPER, SOFT = "#20262e", "#e3e7ec", "#fffffe", "#8a94a0"
PALETTE = ("#3b6ea5", "#b5422c", "#2d7a4f", "#c98a12", "#7a4f9a", "#1f8a8a", "#5d6875", "#d9786a")
MARKERS = ("o", "s", "D", "^", "v", "P", "X", "*")
BLUE, RED, GREEN, AMBER, PURPLE, TEAL, GREY, ROSE = PALETTE
CLEAN, ROBUST = "#8aa4c0", RED
_VARIABLES = {
    INK: "--ink",
    GRID: "--line",
    PAPER: "--paper",
    SOFT: "--plot-soft",
    CLEAN: "--plot-clean",
    **{colour: f"--plot-{number}" for number, colour in enumerate(PALETTE, 1)},
}
_COLOUR = re.compile("|".join(_VARIABLES))
_STYLE = re.compile(r"\s*<defs>\s*<style[^>]*>[^<]*</style>\s*</defs>")
_JOINED = '<svg stroke-linejoin="round" stroke-linecap="butt" '
"""What matplotlib writes into a style sheet, as attributes: a page allows no style sheet but its own."""
_LONGEST_NAME = 48


def shortened(name: str) -> str:
    """A name for a legend or axis, where a long one would leave the plot no room: its middle is left out.

    Parameters
    ----------
    name
        Any name.
    """
    name = " ".join(terminal(name).split())
    half = _LONGEST_NAME // 2
    short = name if len(name) <= _LONGEST_NAME else f"{name[:half]}…{name[1 - half :]}"
    return f"\u200b{short}" if short.startswith("_") else short  # matplotlib hides labels that begin so


def draw_figure(name: str, size: tuple[float, float], draw: Callable[[Figure], None]) -> str:
    """A figure as SVG.

    Parameters
    ----------
    name
        Tells the figures of a page apart.
    size
        Width and height in inches.
    draw
        Draws on the figure.
    """
    from matplotlib import rc_context
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    look = rc_context(
        {
            "svg.fonttype": "none",
            "svg.hashsalt": f"stockade-{name}",
            "font.family": "sans-serif",
            "text.parse_math": False,  # names of users may hold a dollar sign
            **dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), INK),
        }
    )
    with look, warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # the browser draws the letters, in a font that has them
        figure = Figure(figsize=size, layout="constrained", facecolor="none")
        FigureCanvasSVG(figure)
        draw(figure)
        stream = io.StringIO()
        figure.savefig(stream, format="svg", metadata={"Date": None})
    svg = _STYLE.sub("", stream.getvalue()).replace("<svg ", _JOINED, 1)
    # What a name holds besides text (an escape character, say) is made visible here too.
    return _COLOUR.sub(lambda match: f"var({_VARIABLES[match[0]]}, {match[0]})", terminal(svg[svg.index("<svg") :]))


def draw_plot(name: str, size: tuple[float, float], draw: Callable[[Axes], None]) -> str:
    """One pair of axes as SVG.

    Parameters
    ----------
    name
        Tells the figures of a page apart.
    size
        Width and height in inches.
    draw
        Draws on the axes.
    """
    return draw_panels(name, size, [draw])


def draw_panels(
    name: str,
    size: tuple[float, float],
    draws: Sequence[Callable[[Axes], None]],
    columns: int = 3,
    legend: bool = False,
) -> str:
    """Several pairs of axes side by side as SVG; an empty string for none.

    Parameters
    ----------
    name
        Tells the figures of a page apart.
    size
        Width and height of the whole in inches.
    draws
        Each draws on the axes of its panel.
    columns
        The most panels in a row.
    legend
        Whether all share one legend above them, of everything that has a label.
    """
    if not draws:
        return ""

    def on_figure(figure: Figure) -> None:
        across = min(columns, len(draws))
        panels = [
            figure.add_subplot(-(-len(draws) // across), across, at, facecolor="none")
            for at in range(1, len(draws) + 1)
        ]
        for axes, draw in zip(panels, draws, strict=True):
            draw(axes)
            bare(axes)
        if legend:
            handles = {
                label: handle
                for axes in panels
                for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
            }
            figure.legend(
                list(handles.values()), list(handles), frameon=False, loc="outside upper left", ncols=4, fontsize=9
            )

    return draw_figure(name, size, on_figure)


def bare(axes: Axes) -> None:
    """Take the frame away on top and at the right, and put the grid behind what is drawn.

    Parameters
    ----------
    axes
        What to change.
    """
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def legend_above(axes: Axes, columns: int = 4) -> None:
    """A legend between the plot and what stands above it.

    Parameters
    ----------
    axes
        Whose legend.
    columns
        The most entries in a row.
    """
    axes.legend(
        loc="lower left", bbox_to_anchor=(0, 1), ncols=columns, frameon=False, handletextpad=0.3, borderaxespad=0.2
    )


def legend_beside(axes: Axes) -> None:
    """A legend at the right of the plot, for long names.

    Parameters
    ----------
    axes
        Whose legend.
    """
    axes.legend(loc="upper left", bbox_to_anchor=(1.02, 1), frameon=False, handletextpad=0.3)
