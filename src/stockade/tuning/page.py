"""`tune.html`: what was tried and what it was worth, as a page that needs nothing else."""

from __future__ import annotations

import json
from collections.abc import Container, Sequence
from pathlib import Path
from typing import Any

from stockade.core.files import write_text
from stockade.report.drawing import GRID, INK, bare, draw_figure, draw_plot
from stockade.report.plots import CLEAN, ROBUST
from stockade.studies.html import fill_page
from stockade.tuning.attacking import averaged_in_retries
from stockade.tuning.running import Tuned
from stockade.tuning.space import LOGARITHMIC
from stockade.tuning.trials import Trial, best_of

HTML_NAME = "tune.html"
_PACKAGE = "stockade.tuning"


def write_page(tuned: Tuned) -> Path:
    """Write the page into the search's folder."""
    path = tuned.folder / HTML_NAME
    write_text(path, render_page(tuned))
    return path


def render_page(tuned: Tuned) -> str:
    rated = [trial for trial in tuned.trials if trial.objective is not None]
    logarithmic = {name for name, values in tuned.config["ranges"].items() if values.endswith(LOGARITHMIC)}
    return fill_page(
        _PACKAGE,
        {
            "title": f"search {tuned.folder.name}",
            "heading": f"Search {tuned.folder.name}",
            "about": about(tuned),
            "best_defense": tuned.best_defense,
            "best_number": None if tuned.best is None else tuned.best.number,
            "plots": (trials_plot(rated), options_plot(rated, logarithmic)),
            "trials": tuned.trials,
            "expectation": tuned.config["expectation"],
            "most_averaged": averaged_in_retries(tuned.config["expectation"])[-1],
            "manifest": json.dumps(tuned.config, indent=2, ensure_ascii=False),
        },
    )


def about(tuned: Tuned) -> str:
    """What was searched, on what, and what was made larger."""
    found, trials = tuned.config, len(tuned.trials)
    ranges = ", ".join(f"{name} in {values}" for name, values in found["ranges"].items())
    fixed = "".join(f", {name}={value}" for name, value in found["fixed"].items())
    goal = found["goal"]
    weight = f" + {goal['clean_weight']:g} × clean accuracy" if goal["clean_weight"] else ""
    least = "" if goal["least_clean"] is None else f", where clean accuracy is at least {goal['least_clean']:g}"
    budget = "" if found["budget"] is None else f", at most {found['budget']:,} queries per text"
    return (
        f"{trials} {'trial' if trials == 1 else 'trials'} of {found['defense']} ({ranges}{fixed}) around "
        f"{found['model']}, attacked by {found['attack']} on {found['texts']:,} texts of {found['data']}{budget}; "
        f"sampler {found['sampler']}, seed {found['seed']}. Objective: robust accuracy{weight}{least}."
    )


def trials_plot(rated: Sequence[Trial]) -> str:
    """Objective and both accuracies of each trial, and the best objective so far; empty without trials."""
    if not rated:
        return ""

    def draw(axes: Any) -> None:
        numbers = [trial.number for trial in rated]
        clean = {"markersize": 8, "markerfacecolor": "none"}  # a ring, seen around a dot of the same height too
        axes.plot(numbers, [trial.clean for trial in rated], "o", color=CLEAN, label="clean accuracy", **clean)
        axes.plot(numbers, [trial.robust for trial in rated], "o", color=ROBUST, markersize=5, label="robust accuracy")
        axes.plot(numbers, [trial.objective for trial in rated], "_", color=INK, markersize=9, label="objective")
        axes.step(numbers, _best_so_far(rated), where="post", color=INK, linewidth=1, label="best objective so far")
        axes.set_xlabel("trial")
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.grid(axis="y", color=GRID)
        axes.legend(frameon=False, fontsize=8)

    return draw_plot("tune-trials", (8.2, 3.4), draw)


def options_plot(rated: Sequence[Trial], logarithmic: Container[str] = ()) -> str:
    """The objective against the value of each option that was searched, one panel each."""
    names = sorted({name for trial in rated for name in trial.options})
    if not names:
        return ""
    columns = min(3, len(names))
    rows = -(-len(names) // columns)

    def draw(figure: Any) -> None:
        for at, name in enumerate(names):
            axes = figure.add_subplot(rows, columns, at + 1, facecolor="none")
            values = [trial.options[name] for trial in rated]
            if not all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
                values = [str(value) for value in values]
            axes.plot(values, [trial.objective for trial in rated], "o", color=ROBUST, alpha=0.7, markersize=5)
            if name in logarithmic:
                axes.set_xscale("log")
                axes.xaxis.get_major_locator().set_params(subs=(1, 2, 5))  # a range may hold no power of ten
                axes.xaxis.set_major_formatter("{x:g}")
                axes.xaxis.set_minor_formatter("")
            axes.set_xlabel(name)
            axes.set_ylabel("objective")
            axes.grid(color=GRID)
            bare(axes)

    return draw_figure("tune-options", (8.2, 2.6 * rows), draw)


def _best_so_far(rated: Sequence[Trial]) -> list[float]:
    found = []
    for count in range(1, len(rated) + 1):
        best = best_of(rated[:count])
        found.append(best.objective if best is not None and best.objective is not None else float("nan"))
    return found
