"""`tune.html`: what was tried and what it was worth, as a page that needs nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from stockade import __version__
from stockade.core.files import write_text
from stockade.report.drawing import GRID, INK, bare, draw_figure, draw_plot
from stockade.report.plots import CLEAN, ROBUST
from stockade.tuning.running import Tuned
from stockade.tuning.trials import Trial, best_of

HTML_NAME = "tune.html"
_STYLE = """
body { margin: 0 auto; max-width: 900px; padding: 2rem 1.25rem 4rem; background: #fbfcfd; color: #20262e;
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif; }
h1 { font-size: 1.5rem; margin: 0 0 .25rem; } h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; }
figure { margin: 1rem 0; } figure svg { max-width: 100%; height: auto; } .about { color: #5d6875; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .9rem; }
th, td { border-bottom: 1px solid #dfe4ea; padding: .35rem .9rem .35rem 0; text-align: left; }
code { background: #eef1f5; padding: .1rem .3rem; }
"""


def write_page(tuned: Tuned) -> Path:
    """Write the page into the search's folder."""
    path = tuned.folder / HTML_NAME
    write_text(path, render_page(tuned))
    return path


def render_page(tuned: Tuned) -> str:
    rated = [trial for trial in tuned.trials if trial.objective is not None]
    best = "No trial could be rated." if tuned.best_defense is None else f"--defense {tuned.best_defense}"
    parts = [
        '<!doctype html><html lang="en"><head><meta charset="utf-8">',
        f"<title>Search: {escape(tuned.folder.name)}</title><style>{_STYLE}</style></head><body>",
        f"<h1>{escape(tuned.folder.name)}</h1>",
        f'<p class="about">{escape(about(tuned))} The best was chosen because it was the best on these texts: attack '
        f"it on others before you quote a number. Stockade {__version__}.</p>",
        f"<p>Best: <code>{escape(best)}</code></p>",
        *(f"<figure>{plot}</figure>" for plot in (trials_plot(rated), options_plot(rated)) if plot),
        "<h2>Trials</h2>",
        _table(tuned.trials),
        "</body></html>",
    ]
    return "\n".join(parts) + "\n"


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


def options_plot(rated: Sequence[Trial]) -> str:
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


def _table(trials: Sequence[Trial]) -> str:
    head = "".join(f"<th>{name}</th>" for name in ("trial", "options", "n", "clean", "robust", "objective", "seconds"))
    return f"<table><tr>{head}</tr>{''.join(map(_row, trials))}</table>"


def _row(trial: Trial) -> str:
    options = ", ".join(f"{name}={value}" for name, value in trial.options.items())
    if trial.error is not None:
        return f"<tr><td>{trial.number}</td><td>{escape(options)}</td><td colspan=5>{escape(trial.error)}</td></tr>"
    numbers = [f"{value:.3f}" for value in (trial.clean, trial.robust, trial.objective) if value is not None]
    cells = [str(trial.number), escape(options), str(trial.n), *numbers, f"{trial.seconds:.1f}"]
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"
