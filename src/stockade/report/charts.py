"""The kinds of plots that reports share, drawn on axes.

    plot_rows      points with intervals, a row for each name        which attack fools which model how often
    plot_curves    lines with bands or bars over numbers             accuracy against the words that may change
    plot_points    points with intervals both ways                   clean against robust accuracy
    plot_bars      bars with intervals                               shares of a whole
    plot_histogram how often each value occurs                       changed words, queries

Each takes the axes that `draw_plot` or `draw_panels` of `figures` hands out:

    series = [Series("clean", clean_accuracies, CLEAN), Series("under attack", robust_accuracies, ROBUST)]
    svg = draw_plot("accuracy", (8.2, 2.4), lambda axes: plot_rows(axes, attacks, series, xlabel="accuracy, %"))
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import TYPE_CHECKING, Literal

from stockade.report.figures import (
    BLUE,
    CLEAN,
    GRID,
    INK,
    MARKERS,
    PALETTE,
    PAPER,
    legend_above,
    legend_beside,
    shortened,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Interval = Mapping[str, float | None]
"""`value`, `low` and `high`, as summaries hold them; None where nothing was measured."""
Spread = Literal["band", "bars", "none"]
Legend = Literal["above", "beside", "none"]
_SHARES = (-0.02, 1.02)
_MOST_BINS = 24


@dataclass(frozen=True, slots=True)
class Series:
    """What one entry of a legend stands for.

    Parameters
    ----------
    label
        Its name in the legend.
    values
        A number or interval for each row, or for each of `xs`; None for what was not measured.
    colour
        From the palette in the order of the series, if empty.
    xs
        Where the values of a curve stand.
    line
        The line of a curve: "-", "--", ":" or "" for none.
    marker
        The shape of the points: in the order of the series if None, no points if empty.
    """

    label: str
    values: Sequence[Interval | float | None]
    colour: str = ""
    xs: Sequence[float] = ()
    line: str = "-"
    marker: str | None = None

    def measured(self) -> list[tuple[int, Interval]]:
        """The values that there are, with their index."""
        intervals = [(index, _interval(value)) for index, value in enumerate(self.values)]
        return [(index, interval) for index, interval in intervals if interval["value"] is not None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A point with intervals in both directions.

    Parameters
    ----------
    x
        A number or interval.
    y
        A number or interval.
    label
        Its name in the legend; none if empty.
    colour
        Its colour.
    marker
        Its shape.
    hollow
        Drawn as a ring: something about it is not complete.
    """

    x: Interval | float | None
    y: Interval | float | None
    label: str = ""
    colour: str = BLUE
    marker: str = "o"
    hollow: bool = False


def plot_rows(axes: Axes, names: Sequence[str], series: Sequence[Series], *, xlabel: str, percent: bool = True) -> None:
    """Points with intervals, a row for each name; the series of a row one below the other.

    Parameters
    ----------
    axes
        Where to draw.
    names
        The rows, from above.
    series
        Values in the order of the rows.
    xlabel
        What is measured.
    percent
        Whether the values are shares, written in percent.
    """
    step = min(0.28, 0.7 / max(1, len(series)))
    for order, entry in enumerate(series):
        colour = entry.colour or PALETTE[order % len(PALETTE)]
        shift = (order - (len(series) - 1) / 2) * step
        for row, interval in entry.measured():
            _draw_interval(axes, interval, row + shift, colour, width=2)
        rows, values = _columns(entry)
        marker = entry.marker or "o"
        axes.plot(
            values, [row + shift for row in rows], marker, color=colour, markersize=7, label=shortened(entry.label)
        )
    _name_rows(axes, names)
    _scale(axes, "x", percent)
    axes.set_xlabel(xlabel)
    _finish(axes, "above" if len(series) > 1 else "none", grid="x")


def plot_curves(
    axes: Axes,
    series: Sequence[Series],
    *,
    xlabel: str,
    ylabel: str,
    percent: bool = True,
    spread: Spread = "band",
    aside: float = 0.0,
    mark_missing: bool = False,
    legend: Legend = "above",
) -> None:
    """Lines over numbers.

    Parameters
    ----------
    axes
        Where to draw.
    series
        Each with its `xs`.
    xlabel
        What `xs` are.
    ylabel
        What is measured.
    percent
        Whether the values are shares, written in percent.
    spread
        How intervals are drawn.
    aside
        How far each series is moved aside from the one before, so that bars can be told apart.
    mark_missing
        Whether what was not measured is a cross at 0.
    legend
        Where the names of the series stand.
    """
    for order, entry in enumerate(series):
        colour = entry.colour or PALETTE[order % len(PALETTE)]
        marker = MARKERS[order % len(MARKERS)] if entry.marker is None else entry.marker
        places = [x + aside * (order - (len(series) - 1) / 2) for x in entry.xs]
        indices, values = _columns(entry)
        xs = [places[index] for index in indices]
        axes.plot(
            xs,
            values,
            linestyle=entry.line or "none",
            marker=marker,
            color=colour,
            markersize=5,
            linewidth=1.8,
            label=shortened(entry.label),
        )
        ranges = [_range(interval) for _, interval in entry.measured()]
        lows, highs = [low for low, _ in ranges], [high for _, high in ranges]
        if spread == "band":
            axes.fill_between(xs, lows, highs, color=colour, alpha=0.1, linewidth=0)
        elif spread == "bars":
            axes.vlines(xs, lows, highs, color=colour, alpha=0.4, linewidth=1.6)
        if mark_missing:
            missing = [x for index, x in enumerate(places) if index not in indices]
            axes.plot(missing, [0] * len(missing), "x", color=colour, markersize=6)
    _scale(axes, "y", percent)
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)
    _finish(axes, legend, grid="both")


def plot_points(
    axes: Axes,
    points: Sequence[Point],
    *,
    xlabel: str,
    ylabel: str,
    percent: Literal["x", "y", "both", "none"] = "both",
    legend: Legend = "above",
) -> None:
    """Points with intervals in both directions.

    Parameters
    ----------
    axes
        Where to draw.
    points
        What to draw; those without a number are left out.
    xlabel
        What is measured from left to right.
    ylabel
        What is measured upwards.
    percent
        Which of the two are shares, written in percent.
    legend
        Where the points' labels stand.
    """
    for point in points:
        across, up = _interval(point.x), _interval(point.y)
        x, y = across["value"], up["value"]
        if x is None or y is None:
            continue
        _draw_interval(axes, across, y, point.colour, width=1.6)
        _draw_interval(axes, up, x, point.colour, width=1.6, upright=True)
        inside, edge = (PAPER, point.colour) if point.hollow else (point.colour, PAPER)
        label = shortened(point.label) if point.label else "_"
        axes.plot([x], [y], point.marker, color=inside, markeredgecolor=edge, markersize=9, label=label)
    axes.margins(0.25)
    _scale(axes, "x", percent in ("x", "both"))
    _scale(axes, "y", percent in ("y", "both"))
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)
    _finish(axes, legend, grid="both")


def plot_bars(
    axes: Axes,
    names: Sequence[str],
    values: Sequence[Interval | float | None],
    *,
    xlabel: str,
    percent: bool = True,
    colour: str = CLEAN,
) -> None:
    """Bars with intervals, a row for each name.

    Parameters
    ----------
    axes
        Where to draw.
    names
        The rows, from above.
    values
        In the order of the rows.
    xlabel
        What is measured.
    percent
        Whether the values are shares, written in percent.
    colour
        Of the bars.
    """
    rows, lengths = _columns(Series("", values))
    axes.barh(rows, lengths, height=0.55, color=colour)
    for row, interval in Series("", values).measured():
        _draw_interval(axes, interval, row, INK, width=1.5)
    _name_rows(axes, names)
    _scale(axes, "x", percent, whole=False)
    axes.set_xlim(left=0)
    axes.set_xlabel(xlabel)
    _finish(axes, "none", grid="x")


def plot_histogram(axes: Axes, values: Mapping[str, Sequence[float]], *, xlabel: str, ylabel: str) -> None:
    """How often each value occurs: bars for one series, outlines for several.

    Parameters
    ----------
    axes
        Where to draw.
    values
        The numbers of each series, by its name; all share the same bins, which begin at whole numbers.
    xlabel, ylabel
        What is counted, and what the counts are of.
    """
    everything = [value for series in values.values() for value in series]
    if everything:
        low, high = math.floor(min(everything)), math.floor(max(everything)) + 1
        width = max(1, math.ceil((high - low) / _MOST_BINS))
        edges = list(range(low, high + width, width))
        for (name, series), colour in zip(values.items(), cycle(PALETTE), strict=False):
            single_valued = len(values) == 1
            axes.hist(
                list(series),
                bins=edges,
                histtype="stepfilled" if single_valued else "step",
                color=CLEAN if single_valued else colour,
                linewidth=1.6,
                label=shortened(name),
            )
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)
    axes.locator_params(integer=True)
    axes.set_ylim(bottom=0)
    _finish(axes, "none", grid="y")


def _interval(value: Interval | float | None) -> Interval:
    return value if isinstance(value, Mapping) else {"value": value, "low": None, "high": None}


def _range(interval: Interval) -> tuple[float, float]:
    value, low, high = interval["value"], interval["low"], interval["high"]
    assert value is not None
    return (value, value) if low is None or high is None else (low, high)


def _columns(series: Series) -> tuple[list[int], list[float]]:
    """The indices and values of what was measured."""
    measured = [(index, interval["value"]) for index, interval in series.measured()]
    return [index for index, _ in measured], [value for _, value in measured if value is not None]


def _draw_interval(
    axes: Axes, interval: Interval, at: float, colour: str, *, width: float, upright: bool = False
) -> None:
    ends, other = list(_range(interval)), [at, at]
    xs, ys = (other, ends) if upright else (ends, other)
    axes.plot(xs, ys, color=colour, linewidth=width, alpha=1.0 if colour == INK else 0.45)


def _name_rows(axes: Axes, names: Sequence[str]) -> None:
    axes.set_yticks(range(len(names)), [shortened(name) for name in names])
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)


def _scale(axes: Axes, axis: Literal["x", "y"], percent: bool, whole: bool = True) -> None:
    """Write shares in percent, from 0 to 100 if the whole range is shown."""
    if not percent:
        return
    chosen = axes.xaxis if axis == "x" else axes.yaxis
    chosen.set_major_formatter(lambda share, _: f"{100 * share:g}")
    if whole:
        (axes.set_xlim if axis == "x" else axes.set_ylim)(*_SHARES)


def _finish(axes: Axes, legend: Legend, grid: Literal["x", "y", "both"]) -> None:
    axes.grid(axis=grid, color=GRID)
    if legend != "none" and axes.get_legend_handles_labels()[0]:
        (legend_above if legend == "above" else legend_beside)(axes)
