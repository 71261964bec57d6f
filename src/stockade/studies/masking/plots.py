"""The plots of the study: what the mask rate does."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from stockade.report.plots import INK
from stockade.studies.masking.published import DATA_SETS, ROWS
from stockade.studies.masking.tables import masked
from stockade.studies.plots import GRID, bare, draw_figure, draw_plot

COLOURS = {"vote": "#b5422c", "logit": "#3b6ea5", "probability": "#2d7a4f"}
_MARKERS = {"vote": "^", "logit": "o", "probability": "s"}
_SHIFTS = {"vote": -1.2, "logit": 0.0, "probability": 1.2}
_SOUND, _CLAIMED, _CORRECTED, _SOFT = "#2d7a4f", "#b5422c", "#c98a12", "#8a94a0"
_PUBLISHED = {"AG-News": (0, (1, 1.5)), "SST-2": (0, (5, 2))}
_PER_ROW = 2
Numbers = Mapping[str, Any]
Points = Sequence[tuple[float, float | None]]


def rate_plot(numbers: Numbers) -> str:
    """Accuracy, MCB and MCR against the mask rate (Tables 2 and 3)."""
    found = masked(numbers)
    rates = [100 * one["rate"] for one in found]
    certificates = [one["certificates"] for one in found]

    def draw(figure: Any) -> None:
        left, middle, right = figure.subplots(1, 3)
        accuracies = [one["accuracy"] for one in certificates]
        proved = [one["sound"]["accuracy"] for one in certificates]
        _band(left, rates, accuracies, INK, "right")
        _band(left, rates, proved, _SOUND, "right and certain")
        left.set_ylim(-3, 103)
        _finish(left, "accuracy, %")
        for axes, name, factor, label in (
            (middle, "median_radius", 1, "MCB, words"),
            (right, "median_rate", 100, "MCR, % of the words"),
        ):
            for kind, colour, style, title in (
                ("claimed", _CLAIMED, "--", "as published: not a certificate"),
                ("corrected", _CORRECTED, ":", "as published, one less: not a certificate"),
                ("sound", _SOUND, "-", "proved (ranmask-gap)"),
            ):
                points = [
                    (rate, _scaled(one[kind][name], factor)) for rate, one in zip(rates, certificates, strict=True)
                ]
                _line(axes, points, colour, style, title)
            _finish(axes, label)
        if numbers["published"]:
            _draw_published(left, middle, right)
        handles = {label: handle for axes in (left, middle) for handle, label in zip(*_legend(axes), strict=True)}
        figure.legend(handles.values(), handles.keys(), frameon=False, loc="outside upper left", ncols=3, fontsize=9)
        for axes in (middle, right):
            axes.set_ylim(bottom=min(-0.05 * axes.get_ylim()[1], axes.get_ylim()[0] if axes.get_ylim()[0] < 0 else 0))

    return draw_figure("masking-rates", (9.6, 3.6), draw) if found else ""


def attack_plot(numbers: Numbers) -> str:
    """Robust accuracy against the mask rate, a pair of axes for each attack (Figure 3)."""
    attacks = numbers["attacks"]
    rows = -(-len(attacks) // _PER_ROW)
    found = masked(numbers)
    undefended = next((one for one in numbers["rates"] if one["certificates"] is None), None)

    def draw(figure: Any) -> None:
        grid = figure.subplots(rows, min(_PER_ROW, len(attacks)), squeeze=False, sharey=True)
        places = list(grid.flat)
        for axes in places[len(attacks) :]:
            axes.set_visible(False)
        for axes, attack in zip(places, attacks, strict=False):
            for ensemble, shift in _SHIFTS.items():
                known = [(one, one["attacks"].get(ensemble, {}).get(attack)) for one in found]
                intervals = [(100 * one["rate"], cell["robust_accuracy"]) for one, cell in known if cell is not None]
                _bars(axes, intervals, shift, ensemble)
            bare_cell = None if undefended is None else undefended["attacks"].get("none", {}).get(attack)
            if bare_cell is not None and bare_cell["robust_accuracy"]["value"] is not None:
                level = 100 * bare_cell["robust_accuracy"]["value"]
                axes.axhline(level, color=_SOFT, linewidth=1.4, linestyle="--", label="undefended")
            axes.set_title(attack, fontsize=10, loc="left")
            axes.set_ylim(-3, 103)
            _finish(axes, "robust accuracy, %")
        handles, labels = _legend(places[0])
        figure.legend(handles, labels, frameon=False, loc="outside upper left", ncols=4, fontsize=9)

    return draw_figure("masking-attacks", (8.2 if len(attacks) > 1 else 5.6, 0.5 + 3 * rows), draw) if attacks else ""


def choice_plot(numbers: Numbers) -> str:
    """How far β is above p_c, a point for each text: for random words, and for the word that an attacker takes."""
    found = [one for one in masked(numbers) if one["check"]["excesses"]]
    if not found:
        return ""

    def draw(axes: Any) -> None:
        for at, one in enumerate(found):
            check = one["check"]
            for name, colour, shift, title in (
                ("random_excesses", _SOFT, 0.16, "mean over random words: what the published check sees"),
                ("excesses", _CLAIMED, -0.16, "the word that an attacker chooses"),
            ):
                values = sorted(check[name])
                if not values:
                    continue
                label = title if not at else "_nolegend_"
                heights = [at - shift] * len(values)
                axes.plot(values, heights, "o", color=colour, alpha=0.35, markersize=5, markeredgewidth=0, label=label)
                mean = sum(values) / len(values)
                axes.plot([mean, mean], [at - shift - 0.11, at - shift + 0.11], color=INK, linewidth=1.8)
        axes.axvline(0, color=INK, linewidth=0.8)
        axes.set_yticks(range(len(found)), [f"{100 * one['rate']:g} %" for one in found])
        axes.set_ylim(-0.55, len(found) - 0.45)
        axes.set_ylabel("mask rate")
        axes.set_xlabel("β − p, a point for each text; bars are means")
        axes.grid(axis="x", color=GRID)
        axes.tick_params(axis="y", length=0)
        axes.legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 1), ncols=2, handletextpad=0.2, fontsize=9)

    return draw_plot("masking-choice", (8.2, 1.3 + 0.6 * len(found)), draw)


def _draw_published(left: Any, middle: Any, right: Any) -> None:
    for data in DATA_SETS:
        rows = [row for row in ROWS if row.data == data]
        rates, style = [100 * row.rate for row in rows], _PUBLISHED[data]
        measures: tuple[tuple[Any, Callable[[Any], float | None]], ...] = (
            (left, lambda row: row.accuracy),
            (middle, lambda row: row.median_radius),
            (right, lambda row: row.median_rate),
        )
        for axes, measure in measures:
            points = [(rate, measure(row)) for rate, row in zip(rates, rows, strict=True)]
            known = [(x, y) for x, y in points if y is not None]
            axes.plot(
                *zip(*known, strict=True), linestyle=style, color=_SOFT, linewidth=1.2, label=f"{data}, the paper"
            )


def _band(axes: Any, rates: Sequence[float], intervals: Sequence[Numbers], colour: str, label: str) -> None:
    """Shares in percent with their intervals."""
    known = [(rate, one) for rate, one in zip(rates, intervals, strict=True) if one["value"] is not None]
    if not known:
        return
    xs = [rate for rate, _ in known]
    low, high = ([100 * one[end] for _, one in known] for end in ("low", "high"))
    axes.fill_between(xs, low, high, color=colour, alpha=0.1, linewidth=0)
    values = [100 * one["value"] for _, one in known]
    axes.plot(xs, values, marker="o", color=colour, linewidth=1.8, markersize=5, label=label)


def _line(axes: Any, points: Points, colour: str, style: str, label: str) -> None:
    known = [(x, y) for x, y in points if y is not None]
    xs, ys = zip(*known, strict=True) if known else ((), ())
    axes.plot(xs, ys, style, marker="o", color=colour, linewidth=1.8, markersize=5, label=label)
    missing = [x for x, y in points if y is None]
    if missing:
        axes.plot(missing, [0] * len(missing), "x", color=colour, markersize=6, label="_nolegend_")


def _bars(axes: Any, intervals: Sequence[tuple[float, Numbers]], shift: float, ensemble: str) -> None:
    """Shares in percent with their intervals, a little aside so that those of other ensembles can be seen."""
    known = [(rate + shift, one) for rate, one in intervals if one["value"] is not None]
    colour = COLOURS[ensemble]
    for x, one in known:
        axes.plot([x, x], [100 * one["low"], 100 * one["high"]], color=colour, linewidth=1.6, alpha=0.4)
    xs, ys = [x for x, _ in known], [100 * one["value"] for _, one in known]
    axes.plot(xs, ys, marker=_MARKERS[ensemble], color=colour, linewidth=1.8, markersize=5, label=ensemble)


def _legend(axes: Any) -> tuple[list[Any], list[str]]:
    handles, labels = axes.get_legend_handles_labels()
    return list(handles), list(labels)


def _finish(axes: Any, label: str) -> None:
    axes.set_xlim(0, 100)
    axes.set_xlabel("mask rate, %")
    axes.set_ylabel(label)
    axes.grid(color=GRID)
    bare(axes)


def _scaled(found: float | None, factor: float) -> float | None:
    return None if found is None else factor * found
