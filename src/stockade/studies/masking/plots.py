"""The plots of the study of RanMASK: what the mask rate does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from stockade.report.charts import Series, plot_curves
from stockade.report.figures import (
    AMBER,
    BLUE,
    GREEN,
    GRID,
    INK,
    RED,
    SOFT,
    draw_panels,
    draw_plot,
    legend_above,
)
from stockade.studies.masking.analysis import MaskingNumbers, RateNumbers
from stockade.studies.masking.claims import PUBLISHED, PublishedRow

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ENSEMBLES = {"vote": (RED, "^"), "logit": (BLUE, "o"), "probability": (GREEN, "s")}
_PUBLISHED = {"AG-News": ":", "SST-2": "--"}
_ASIDE = 1.2
"""How far the ensembles stand apart, in percent of the mask rate."""
_PER_ROW = 2


def rate_plot(rates: Sequence[RateNumbers], *, published: bool) -> str:
    """Accuracy, MCB and MCR against the mask rate (Tables 2 and 3); the paper's beside them if `published`."""
    xs = [100 * entry.rate for entry in rates]
    certificates = [entry.certificates for entry in rates]

    def draw_accuracy(axes: Axes) -> None:
        series = [
            Series("right", [entry.accuracy for entry in certificates], INK, xs, marker="o"),
            Series("right and certain", [entry.sound.accuracy for entry in certificates], GREEN, xs, marker="o"),
            *_published_series(lambda row: row.accuracy / 100, published),
        ]
        plot_curves(axes, series, xlabel="mask rate, %", ylabel="accuracy, %", legend="none")
        axes.set_xlim(0, 100)

    def draw_radii(axes: Axes) -> None:
        claimed = [entry.claimed.median_radius for entry in certificates]
        corrected = [entry.corrected.median_radius for entry in certificates]
        sound = [entry.sound.median_radius for entry in certificates]
        series = _median_series(xs, claimed, corrected, sound)
        _draw_medians(axes, [*series, *_published_series(lambda row: row.median_radius, published)], "MCB, words")

    def draw_shares(axes: Axes) -> None:
        claimed = [_percent(entry.claimed.median_rate) for entry in certificates]
        corrected = [_percent(entry.corrected.median_rate) for entry in certificates]
        sound = [_percent(entry.sound.median_rate) for entry in certificates]
        series = _median_series(xs, claimed, corrected, sound)
        _draw_medians(
            axes, [*series, *_published_series(lambda row: row.median_rate, published)], "MCR, % of the words"
        )

    return draw_panels("masking-rates", (9.6, 3.6), [draw_accuracy, draw_radii, draw_shares], legend=True)


def _median_series(
    xs: Sequence[float],
    claimed: Sequence[float | None],
    corrected: Sequence[float | None],
    sound: Sequence[float | None],
) -> list[Series]:
    return [
        Series("as published: not a certificate", claimed, RED, xs, "--", "o"),
        Series("as published, one less: not a certificate", corrected, AMBER, xs, ":", "o"),
        Series("proved (ranmask-gap)", sound, GREEN, xs, "-", "o"),
    ]


def _published_series(measure: Callable[[PublishedRow], float | None], published: bool) -> list[Series]:
    """The paper's curves, one for each of its data sets."""
    series = []
    for data, line in _PUBLISHED.items() if published else ():
        rows = [row for row in PUBLISHED if row.data == data and measure(row) is not None]
        values, xs = [measure(row) for row in rows], [100 * row.rate for row in rows]
        series.append(Series(f"{data}, the paper", values, SOFT, xs, line, ""))
    return series


def _draw_medians(axes: Axes, series: Sequence[Series], ylabel: str) -> None:
    plot_curves(
        axes,
        series,
        xlabel="mask rate, %",
        ylabel=ylabel,
        percent=False,
        spread="none",
        mark_missing=True,
        legend="none",
    )
    low, high = axes.get_ylim()
    axes.set_ylim(min(low, -0.05 * high), high)
    axes.set_xlim(0, 100)


def attack_plot(numbers: MaskingNumbers, attacks: Sequence[str]) -> str:
    """Robust accuracy against the mask rate, a panel for each attack (Figure 3): by the first flip, as published, and
    dotted by what fools repeatedly.
    """
    rows = -(-len(attacks) // _PER_ROW)
    size = (8.2 if len(attacks) > 1 else 5.6, 0.5 + 3 * rows)
    return draw_panels(
        "masking-attacks", size, [_draw_attack(numbers, attack) for attack in attacks], _PER_ROW, legend=True
    )


def _draw_attack(numbers: MaskingNumbers, attack: str) -> Callable[[Axes], None]:
    xs = [100 * entry.rate for entry in numbers.rates]

    def draw(axes: Axes) -> None:
        series = []
        for ensemble, (colour, marker) in _ENSEMBLES.items():
            cells = [entry.attacks.get(ensemble, {}).get(attack) for entry in numbers.rates]
            values = [None if cell is None else cell.published_robust_accuracy for cell in cells]
            series.append(Series(ensemble, values, colour, xs, marker=marker))
            if any(cell is not None and cell.first_flip_robust_accuracy is not None for cell in cells):
                repeatable = [None if cell is None else cell.robust_accuracy["value"] for cell in cells]
                series.append(Series(f"{ensemble}, repeatable", repeatable, colour, xs, line=":", marker=""))
        xlabel, ylabel = "mask rate, %", "robust accuracy, %"
        plot_curves(axes, series, xlabel=xlabel, ylabel=ylabel, spread="bars", aside=_ASIDE, legend="none")
        undefended = None if numbers.undefended is None else numbers.undefended.attacks.get(attack)
        level = None if undefended is None else undefended.robust_accuracy["value"]
        if level is not None:
            axes.axhline(level, color=SOFT, linewidth=1.4, linestyle="--", label="undefended")
        axes.set_title(attack, fontsize=10, loc="left")
        axes.set_xlim(0, 100)

    return draw


def excess_plot(rates: Sequence[RateNumbers]) -> str:
    """How far β is above p, a point for each text: for random words, and for the word that an attacker chooses."""
    measured = [entry for entry in rates if entry.check.excesses]
    if not measured:
        return ""

    def draw(axes: Axes) -> None:
        for row, entry in enumerate(measured):
            for values, colour, shift, label in (
                (entry.check.random_excesses, SOFT, 0.16, "mean over random words: what the published check sees"),
                (entry.check.excesses, RED, -0.16, "the word that an attacker chooses"),
            ):
                if not values:
                    continue
                height = row - shift
                axes.plot(
                    sorted(values),
                    [height] * len(values),
                    "o",
                    color=colour,
                    alpha=0.35,
                    markersize=5,
                    markeredgewidth=0,
                    label="_nolegend_" if row else label,
                )
                mean = sum(values) / len(values)
                axes.plot([mean, mean], [height - 0.11, height + 0.11], color=INK, linewidth=1.8)
        axes.axvline(0, color=INK, linewidth=0.8)
        axes.set_yticks(range(len(measured)), [f"{100 * entry.rate:g} %" for entry in measured])
        axes.set_ylim(-0.55, len(measured) - 0.45)
        axes.set_ylabel("mask rate")
        axes.set_xlabel("β − p, a point for each text; bars are means")
        axes.grid(axis="x", color=GRID)
        axes.tick_params(axis="y", length=0)
        legend_above(axes, columns=2)

    return draw_plot("masking-excess", (8.2, 1.3 + 0.6 * len(measured)), draw)


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share
