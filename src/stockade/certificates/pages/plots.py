"""The plot of certificates: the share of certified texts against the radius."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stockade.certificates.pages.tables import MethodNumbers
from stockade.report.drawing import GRID, draw_plot

PROVED = ("#3b6ea5", "#2d7a4f", "#c98a12", "#7a4f9a", "#5d6875", "#1f8a8a")
CLAIMED = ("#b5422c", "#d9786a")
_MARKERS = "osD^vPX*"
_FEW_RADII, _FEW_BANDS = 12, 3


def curve_plot(methods: Sequence[MethodNumbers]) -> str:
    """One line per method with the band that holds at all radii at once; what proves nothing is dashed and red. Empty
    when nothing was certified yet.
    """
    measured = [method for method in methods if method.numbers["n"]]
    if not measured:
        return ""
    longest = max(len(method.numbers["curve"]) for method in measured)
    labelled = any(method.numbers["accuracy"] is not None for method in measured)

    def draw(axes: Any) -> None:
        seen = {True: 0, False: 0}
        for at, method in enumerate(measured):
            sound = bool(method.numbers["sound"])
            colours = PROVED if sound else CLAIMED
            colour = colours[seen[sound] % len(colours)]
            seen[sound] += 1
            aside = 0.05 * (at - (len(measured) - 1) / 2) if longest < _FEW_RADII else 0.0
            points = [method.point(radius) for radius in range(longest + 1)]
            places = [radius + aside for radius in range(longest + 1)]
            low, high = [100 * point["low"] for point in points], [100 * point["high"] for point in points]
            if len(measured) <= _FEW_BANDS or longest >= _FEW_RADII:
                axes.fill_between(places, low, high, color=colour, alpha=0.1, linewidth=0)
            axes.plot(
                places,
                [100 * point["share"] for point in points],
                "-" if sound else "--",
                marker=_MARKERS[at % len(_MARKERS)] if longest < _FEW_RADII else None,
                color=colour,
                markersize=6,
                linewidth=1.8,
                label=method.title,
            )
            if longest < _FEW_RADII:
                axes.vlines(places, low, high, color=colour, alpha=0.35, linewidth=1.2)
        axes.set_xlim(-0.3, longest + 0.3)
        axes.set_ylim(-2, 102)
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.set_xlabel("radius d")
        axes.set_ylabel(f"{'true ' if labelled else ''}class certified at d or more, %")
        axes.grid(color=GRID)
        axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.02, 1))

    return draw_plot("certificates", (8.6, 3.8), draw)
