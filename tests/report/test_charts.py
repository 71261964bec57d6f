"""Plots show the numbers they are given, in the order they are given, and survive any name."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree

import pytest
from matplotlib.figure import Figure

from stockade.core.statistics import wilson
from stockade.report.charts import Point, Series, plot_bars, plot_curves, plot_histogram, plot_points, plot_rows
from stockade.report.figures import BLUE, INK, PALETTE, PAPER, RED, draw_panels, draw_plot, shortened

HALF = {"value": 0.5, "low": 0.25, "high": 0.75}
HOSTILE = "_<script>$x^{$ & \x1b[2J"


def drawn(draw: Callable[[Any], None]) -> Any:
    """The axes after drawing."""
    axes = Figure().add_subplot()
    draw(axes)
    return axes


def points(axes: Any, marker: str) -> list[tuple[Any, Any]]:
    """Where lines with such a marker stand."""
    return [(list(line.get_xdata()), list(line.get_ydata())) for line in axes.lines if line.get_marker() == marker]


def intervals(axes: Any) -> list[tuple[Any, Any]]:
    return points(axes, "None")


def test_rows_have_a_point_and_an_interval_for_what_was_measured() -> None:
    series = [Series("clean", [HALF, 0.75]), Series("robust", [None, {"value": None, "low": None, "high": None}])]
    axes = drawn(lambda axes: plot_rows(axes, ["pwws", "bae"], series, xlabel="accuracy, %"))
    (clean, robust) = points(axes, "o")
    assert clean == ([0.5, 0.75], pytest.approx([-0.14, 0.86]))
    assert robust == ([], [])
    assert intervals(axes)[0] == ([0.25, 0.75], pytest.approx([-0.14, -0.14]))
    assert [label.get_text() for label in axes.get_yticklabels()] == ["pwws", "bae"]
    assert axes.get_ylim() == (1.5, -0.5)  # the first row on top
    assert axes.xaxis.get_major_formatter()(0.4, 0) == "40"
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["clean", "robust"]


def test_curves_have_bands_or_bars_and_crosses_for_what_is_missing() -> None:
    series = [Series("a", [HALF, None, 0.25], xs=[0, 1, 2]), Series("b", [0.5, 0.5, 0.5], RED, [0, 1, 2], "--", "")]
    axes = drawn(lambda axes: plot_curves(axes, series, xlabel="x", ylabel="y", mark_missing=True, aside=0.2))
    assert points(axes, "o") == [(pytest.approx([-0.1, 1.9]), [0.5, 0.25])]
    assert points(axes, "x")[0] == (pytest.approx([0.9]), [0])
    assert len(axes.collections) == 2
    band = axes.collections[0].get_paths()[0].vertices
    assert {tuple(corner) for corner in band.round(3).tolist()} >= {(-0.1, 0.25), (-0.1, 0.75), (1.9, 0.25)}
    dashed = next(line for line in axes.lines if line.get_linestyle() == "--")
    assert dashed.get_color() == RED
    assert axes.get_ylim() == (-0.02, 1.02)
    bars = drawn(lambda axes: plot_curves(axes, series[:1], xlabel="x", ylabel="y", percent=False, spread="bars"))
    assert bars.collections[0].get_segments()[0].tolist() == [[0, 0.25], [0, 0.75]]


def test_points_have_intervals_both_ways_and_rings_for_what_is_not_complete() -> None:
    data = [
        Point(x=HALF, y=0.9, label="whole"),
        Point(x=0.3, y=HALF, colour=RED, marker="s", hollow=True),
        Point(x=None, y=0.1),
    ]
    axes = drawn(lambda axes: plot_points(axes, data, xlabel="x", ylabel="y", percent="x"))
    assert intervals(axes) == [
        ([0.25, 0.75], [0.9, 0.9]),
        ([0.5, 0.5], [0.9, 0.9]),
        ([0.3, 0.3], [0.5, 0.5]),
        ([0.3, 0.3], [0.25, 0.75]),
    ]
    (whole,) = [line for line in axes.lines if line.get_marker() == "o"]
    (ring,) = [line for line in axes.lines if line.get_marker() == "s"]
    assert (whole.get_markerfacecolor(), ring.get_markerfacecolor()) == (BLUE, PAPER)
    assert ring.get_markeredgecolor() == RED
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["whole"]
    assert axes.get_xlim() == (-0.02, 1.02)
    assert axes.get_ylim() != (-0.02, 1.02)


def test_bars_have_their_length_and_interval() -> None:
    axes = drawn(lambda axes: plot_bars(axes, ["A", "B"], [HALF, None], xlabel="share, %"))
    (bar,) = axes.patches
    assert (bar.get_width(), bar.get_y() + bar.get_height() / 2) == (0.5, 0)
    assert intervals(axes) == [([0.25, 0.75], [0, 0])]
    assert axes.get_xlim()[0] == 0


def test_the_same_numbers_give_the_same_bytes_and_names_tell_plots_apart() -> None:
    def draw(name: str) -> str:
        series = [Series("a", [wilson(3, 5)] * 4, xs=range(4))]
        return draw_plot(name, (4, 2), lambda axes: plot_curves(axes, series, xlabel="x", ylabel="y"))

    assert draw("one") == draw("one")
    assert set(re.findall(r'clipPath id="(\w+)"', draw("one"))).isdisjoint(
        re.findall(r'clipPath id="(\w+)"', draw("two"))
    )


def test_colours_of_the_palette_follow_the_page() -> None:
    svg = draw_plot("p", (4, 2), lambda axes: plot_bars(axes, ["a"], [HALF], xlabel="x", colour=PALETTE[2]))
    assert f"fill: var(--plot-3, {PALETTE[2]})" in svg
    assert f"var(--ink, {INK})" in svg
    assert "#000000" not in svg.replace("<defs>", "")


@pytest.mark.parametrize(("kind", "names"), [("rows", 3), ("points", 2)])
def test_any_name_can_be_drawn(kind: str, names: int) -> None:
    def draw(axes: Any) -> None:
        if kind == "rows":
            plot_rows(axes, [HOSTILE], [Series(HOSTILE, [HALF]), Series("b", [HALF])], xlabel=HOSTILE)
        else:
            plot_points(axes, [Point(x=0.5, y=0.5, label=HOSTILE)], xlabel="x", ylabel=HOSTILE)

    svg = draw_plot(HOSTILE, (6, 3), draw)
    assert "<script" not in svg
    assert "\x1b" not in svg
    texts = [text.text for text in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]
    assert sum("<script>$x^{$ & ␛[2J" in (text or "") for text in texts) == names


def test_panels_share_a_legend() -> None:
    def panel(axes: Any) -> None:
        axes.plot([0, 1], [0, 1], label="shared")

    svg = draw_panels("p", (6, 3), [panel, panel, panel], columns=2, legend=True)
    assert svg.count(">shared<") == 1
    assert draw_panels("p", (6, 3), []) == ""


def test_long_names_are_shortened_in_the_middle() -> None:
    assert shortened("pwws") == "pwws"
    name = shortened("ranmask:" + "rate=0.3," * 20 + "ensemble=vote")
    assert len(name) == 48
    assert name.startswith("ranmask:")
    assert name.endswith("ensemble=vote")


def test_histograms_share_bins_that_begin_at_whole_numbers() -> None:
    axes = drawn(lambda axes: plot_histogram(axes, {"a": [1, 1, 2, 100]}, xlabel="words", ylabel="texts"))
    (patch,) = axes.patches
    heights = patch.get_xy()[:, 1]
    assert heights.max() == 3, "1, 1 and 2 are in one bin of five"
    assert axes.get_ylim()[0] == 0
    several = drawn(lambda axes: plot_histogram(axes, {"a": [1, 2], "b": [2, 3]}, xlabel="words", ylabel="texts"))
    assert len(several.patches) == 2
    assert [patch.get_xy()[0][0] for patch in several.patches] == [1, 1]
    drawn(lambda axes: plot_histogram(axes, {"a": []}, xlabel="words", ylabel="texts"))
