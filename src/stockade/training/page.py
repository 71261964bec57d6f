"""`training.html`: loss and validation accuracy as a page that needs nothing else, reloaded while the training runs."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from stockade import __version__
from stockade.training.state import Epoch, State

_TRAIN, _VALIDATION, _INK = "#8aa4c0", "#b5422c", "#20262e"
_COLUMNS = ("epoch", "training loss", "validation loss", "validation accuracy", "seconds")
_STYLE = """
body { margin: 0 auto; max-width: 900px; padding: 2rem 1.25rem 4rem; background: #fbfcfd; color: #20262e;
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif; }
h1 { font-size: 1.5rem; margin: 0 0 .25rem; } h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; }
.about { color: #5d6875; } figure { margin: 1rem 0; } figure svg { max-width: 100%; height: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .9rem; }
th, td { border-bottom: 1px solid #dfe4ea; padding: .35rem .9rem .35rem 0; text-align: left; }
th { font-weight: 600; color: #5d6875; }
.warning { border-left: 4px solid #d99a1c; background: #fdf6e7; padding: .5rem .75rem; }
"""


def render_page(title: str, state: State, config: Mapping[str, Any], warnings: Sequence[str], complete: bool) -> str:
    """The page of a training as far as it is."""
    reload = "" if complete else '<meta http-equiv="refresh" content="5">'
    best = state.best
    said = f"{len(state.history)} epochs, {state.step} steps, {state.seconds:.0f} seconds"
    score = "" if best is None else f" · best epoch {best.number}: {_score(best)}"
    parts = [
        '<!doctype html><html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"{reload}<title>Training: {escape(title)}</title><style>{_STYLE}</style></head><body>",
        f"<h1>{escape(title)}</h1>",
        f'<p class="about">Training by Stockade {__version__}. {said}{score}'
        f"{'' if complete else ' · <strong>running</strong>'}</p>",
        *(f'<p class="warning">{escape(warning)}</p>' for warning in warnings),
        f"<figure>{loss_plot(state)}</figure>",
        _table(_COLUMNS, map(_row, state.history)),
        "<h2>Options</h2>",
        _table(("option", "value"), ((name, str(value)) for name, value in _options(config))),
        "</body></html>",
    ]
    return "\n".join(parts) + "\n"


def loss_plot(state: State) -> str:
    """The loss after each part of the training, and what each epoch was worth on validation, as SVG."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "stockade", "text.color": _INK}):
        figure = Figure(figsize=(8.2, 3.4), layout="constrained", facecolor="none")
        FigureCanvasSVG(figure)
        axes = figure.add_subplot(facecolor="none")
        axes.plot([step for step, _ in state.curve], [loss for _, loss in state.curve], color=_TRAIN, label="loss")
        ends = [epoch.steps for epoch in state.history]
        axes.plot(ends, [epoch.validation.loss for epoch in state.history], "o--", color=_INK, label="validation loss")
        axes.set_xlabel("step")
        axes.set_ylabel("loss")
        axes.grid(color="#e3e7ec")
        axes.spines["top"].set_visible(False)
        handles = list(axes.get_legend_handles_labels()[0])
        accuracies = [accuracy for epoch in state.history if (accuracy := epoch.validation.accuracy) is not None]
        if accuracies:
            right = axes.twinx()
            right.plot(ends, accuracies, "o-", color=_VALIDATION, label="validation accuracy")
            right.set_ylim(0, 1)
            right.set_ylabel("accuracy")
            right.spines["top"].set_visible(False)
            handles += right.get_legend_handles_labels()[0]
        axes.legend(handles=handles, loc="lower left", bbox_to_anchor=(0, 1.0), ncols=3, frameon=False)
        stream = io.StringIO()
        figure.savefig(stream, format="svg", metadata={"Date": None})
    svg = stream.getvalue()
    return svg[svg.index("<svg") :]


def _score(epoch: Epoch) -> str:
    accuracy = epoch.validation.accuracy
    return f"loss {epoch.validation.loss:.4f}" if accuracy is None else f"accuracy {accuracy:.4f}"


def _row(epoch: Epoch) -> tuple[str, ...]:
    accuracy = epoch.validation.accuracy
    shown = "–" if accuracy is None else f"{accuracy:.4f}"
    return str(epoch.number), f"{epoch.loss:.4f}", f"{epoch.validation.loss:.4f}", shown, f"{epoch.seconds:.1f}"


def _options(config: Mapping[str, Any]) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for name, value in config.items():
        found += _options(value) if isinstance(value, Mapping) else [(name, value)]
    return found


def _table(head: Sequence[str], rows: Any) -> str:
    lines = ["".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows]
    body = "\n".join(f"<tr>{line}</tr>" for line in lines)
    return f"<table><tr>{''.join(f'<th>{escape(name)}</th>' for name in head)}</tr>\n{body}</table>"
