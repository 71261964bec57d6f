"""The plots of the study of BAE."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from stockade.report.charts import Point, Series, plot_bars, plot_curves, plot_points
from stockade.report.figures import AMBER, BLUE, GREEN, GREY, RED, draw_plot
from stockade.studies.bae.analysis import ATTACKS, BASELINE, BaeNumbers, Curve, Splits
from stockade.studies.records import AttackNumbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = dict(zip(ATTACKS, (BLUE, GREEN, AMBER, RED, GREY), strict=True))
MARKERS = dict(zip(ATTACKS, ("o", "s", "D", "^", "X"), strict=True))


def curve_plot(numbers: BaeNumbers) -> str:
    """Figure 2: accuracy after the attack against the largest perturbation allowed; empty if nothing was attacked."""
    curve = numbers.curve
    if not any(attack.attacked for attack in numbers.attacks.values()):
        return ""
    series = curve_series(curve, where_flat(curve))

    def draw(axes: Axes) -> None:
        xlabel, ylabel = "largest share of words that may change, %", "accuracy after the attack, %"
        plot_curves(axes, series, xlabel=xlabel, ylabel=ylabel, spread="none")
        axes.xaxis.set_major_formatter(PercentFormatter(xmax=1, decimals=0, symbol=""))

    from matplotlib.ticker import PercentFormatter

    return draw_plot("curve", (8.2, 3.8), draw)


def curve_series(curve: Curve, end: int) -> list[Series]:
    """The curves of Figure 2 up to so many caps, TextFooler's dashed."""
    return [
        Series(name, points[:end], COLOURS[name], curve.caps[:end], "--" if name == BASELINE else "-", MARKERS[name])
        for name, points in curve.attacks.items()
    ]


def where_flat(curve: Curve) -> int:
    """How many points to draw: up to where no curve changes any more, and a little further."""
    moving = [
        index
        for points in curve.attacks.values()
        for index in range(1, len(points))
        if points[index]["value"] != points[index - 1]["value"]
    ]
    return min(len(curve.caps), max([*moving, 5]) + 3)


def trade_off_plot(attacks: Mapping[str, AttackNumbers]) -> str:
    """How often each attack succeeds against how similar its texts stay; empty if nothing succeeded."""
    points = [
        Point(
            x=attack.success_rate,
            y=attack.mean_similarity,
            label=name,
            colour=COLOURS[name],
            marker=MARKERS[name],
        )
        for name, attack in attacks.items()
        if attack.mean_similarity is not None
    ]
    if not points:
        return ""

    def draw(axes: Axes) -> None:
        plot_points(axes, points, xlabel="success rate, %", ylabel="mean similarity", percent="x")

    return draw_plot("trade-off", (8.2, 3.4), draw)


def split_plot(splits: Splits) -> str:
    """Table 5 as bars with 95 % intervals; empty if nothing was attacked."""
    if not splits.attacked:
        return ""
    shares = [split.share for split in splits.splits.values()]
    names = list(splits.splits)
    return draw_plot("splits", (8.2, 1.9), lambda axes: plot_bars(axes, names, shares, xlabel="% of attacked texts"))
