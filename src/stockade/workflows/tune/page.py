"""The report of a search: what was tried and what it was worth."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from typing import TYPE_CHECKING

from stockade.report.document import Block, Cell, Details, Document, Heading, Note, Plot, Table, code
from stockade.report.figures import CLEAN, GRID, INK, PURPLE, ROBUST, draw_panels, draw_plot
from stockade.report.numbers import NOT_AVAILABLE, count, number
from stockade.report.render_json import indented
from stockade.workflows.tune.objective import averaged_in_retries
from stockade.workflows.tune.ranges import LOGARITHMIC
from stockade.workflows.tune.result import TuneResult
from stockade.workflows.tune.trials import Trial, best_of, written_options

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MEASURES = {
    "clean": "clean",
    "robust": "robust",
    "first_flip_robust": "robust, first flip",
    "premade": "pre-made",
    "median_radius": "MCB",
    "objective": "objective",
}
"""What trials have, and what the table calls it."""


def tune_document(result: TuneResult) -> Document:
    """The report: the best defense, objective by trial and by option, all trials, how it was made."""
    rated = [trial for trial in result.trials if trial.objective is not None]
    logarithmic = {name for name, values in result.manifest.spec["ranges"].items() if values.endswith(LOGARITHMIC)}
    blocks: list[Block] = [
        *_findings(result),
        Plot(lambda: trials_plot(rated), "Accuracies and objective of each trial.", "tune-trials"),
        Plot(lambda: options_plot(rated, logarithmic), "The objective by the value of each option.", "tune-options"),
        Heading("Trials"),
        trial_table(result),
        Details("Manifest", indented(result.manifest.described())),
    ]
    best = result.best
    title = "No trial could be rated" if best is None else f"{result.best_defense} is the best of the trials"
    return Document(title=title, about=f"Search {result.name}: {about(result)}", blocks=blocks, data=result.summary)


def _findings(result: TuneResult) -> Iterator[Note]:
    best = result.best
    if best is None:
        yield Note("No trial could be rated.", kind="warning")
    else:
        named = (
            ("robust accuracy", best.robust),
            ("robust accuracy by the first flip", best.first_flip_robust),
            ("accuracy on pre-made texts", best.premade),
        )
        measured = [(name, value) for name, value in (*named, ("clean accuracy", best.clean)) if value is not None]
        accuracies = ", ".join(f"{name} {number(value, 3)}" for name, value in measured)
        accuracies = f"MCB {best.median_radius}, {accuracies}" if result.by_certificates else accuracies
        yield Note(
            (f"The best of {count(len(result.trials), 'trial')}: ", code(f"--defense {result.best_defense}"),
             f" (trial {best.number}, {accuracies})."),
            kind="finding",
        )  # fmt: skip
        if result.best_model is not None:
            yield Note(("Its model is in ", code(str(result.best_model)), "."))
        yield Note(
            "It was chosen because it was the best on these texts: attack it on others before you quote a number."
        )
    if not result.complete:
        yield Note(("Not complete. Resume it with ", code(f"stockade resume {result.folder}")), kind="warning")


def about(result: TuneResult) -> str:
    """What was searched, on what, and what was maximised."""
    spec, inputs, goal = result.manifest.spec, result.manifest.inputs, result.goal
    ranges = ", ".join(f"{name} in {values}" for name, values in spec["ranges"].items())
    fixed = "".join(f", {name}={value}" for name, value in result.fixed_options.items())
    terms = ["robust accuracy"] if spec["attacks"] else []
    if inputs.get("premade"):
        weight = "" if goal.premade_weight == 1 else f"{goal.premade_weight:g} × "
        terms.append(f"{weight}accuracy on pre-made texts")
    terms += [f"{goal.clean_weight:g} × clean accuracy"] if goal.clean_weight else []
    if result.by_certificates:
        method = spec.get("method")
        terms = ["MCB" + (f" by {method}" if method else "")]
    least = "" if goal.least_clean is None else f", where clean accuracy is at least {goal.least_clean:g}"
    budget = "" if spec["budget"] is None else f", at most {spec['budget']:,} queries per text"
    attacks = " and ".join(attack["key"] for attack in spec["attacks"])
    under = f"attacked by {attacks} on" if attacks else "certified on" if result.by_certificates else "asked about"
    trained = f", trained on {inputs['train_data']['reference']}" if inputs.get("train_data") else ""
    sets = "".join(
        f" and {'asked about ' if attacks else ''}{item['size']:,} pre-made texts of {item['reference']}"
        for item in inputs.get("premade", {}).values()
    )
    return (
        f"{count(len(result.trials), 'trial')} of {spec['defense']['name']} ({ranges}{fixed}) around "
        f"{inputs['model']['reference']}{trained}, {under} {inputs['data']['size']:,} texts of "
        f"{inputs['data']['reference']}{budget}{sets}; sampler {spec['sampler']}, seed {spec['seed']}. Objective: "
        f"{' + '.join(terms)}{least}."
    )


def trial_table(result: TuneResult) -> Table:
    """Every trial, the best in bold."""
    eot_samples = result.manifest.spec["eot_samples"]
    mean = (
        f"; if it is randomised the mean of {eot_samples} of its answers, and of up to "
        f"{averaged_in_retries(eot_samples)[-1]} where the model is undecided about what was found"
        if eot_samples > 1
        else ""
    )
    caption = (
        "Robust: right on the clean text, and every attack fails in every view: searches see the bare model; the "
        f"defense, with mean probabilities in place of votes or logits{mean}. Every success was confirmed on the "
        "defended model itself."
    )
    attacked, premade = bool(result.manifest.spec["attacks"]), bool(result.manifest.inputs.get("premade"))
    if premade:
        asked = "Pre-made: the share of those texts that is right, from one answer to each; of several sets the mean."
        caption = f"{caption} {asked}" if attacked else asked
    if result.by_certificates:
        caption = (
            "MCB: the most words that may change in at least half of all texts without changing the right answer; a "
            "text that is wrong or undecided counts as less than 0. Of equal MCB the more accurate trial is the best."
        )
    left_out = {"robust": not attacked, "premade": not premade, "median_radius": not result.by_certificates}
    best = None if result.best is None else result.best.number
    two_rules = any(trial.first_flip_robust is not None for trial in result.trials)
    if two_rules:
        caption += (
            " A randomised defense is fooled by what fools at least half of its answers: the objective counts that; "
            "first flip: one wrong answer is enough, as papers count."
        )
    left_out["first_flip_robust"] = not two_rules
    shown = [name for name in _MEASURES if not left_out.get(name)]
    rows = [_cells(trial, trial.number == best, shown) for trial in result.trials]
    columns = ("trial", "options", "n", *(_MEASURES[name] for name in shown), "seconds")
    return Table(columns, rows, caption=caption, numeric=(0, *range(2, len(columns))))


def _cells(trial: Trial, is_best: bool, shown: Sequence[str]) -> list[str | Cell]:
    options = written_options(trial.options)
    if trial.error is not None:
        return [str(trial.number), Cell(options, trial.error, "warning"), *[NOT_AVAILABLE] * (len(shown) + 2)]
    values = [str(trial.number), options, f"{trial.n:,}"]
    values += [number(getattr(trial, name), 3) for name in shown]
    values.append(number(trial.seconds))
    return [Cell(value, tone="strong") if is_best else value for value in values]


def trials_plot(rated: Sequence[Trial]) -> str:
    """Objective and both accuracies of each trial, and the best objective so far; empty without trials."""
    if not rated:
        return ""

    def draw(axes: Axes) -> None:
        from matplotlib.ticker import MaxNLocator

        numbers = [trial.number for trial in rated]
        plotted = ("clean", "robust", "premade", "objective")
        clean, robust, premade, objective = (_values(rated, name) for name in plotted)
        # A ring, visible around a dot of the same height too.
        axes.plot(numbers, clean, "o", color=CLEAN, markersize=8, markerfacecolor="none", label="clean accuracy")
        if any(trial.robust is not None for trial in rated):
            axes.plot(numbers, robust, "o", color=ROBUST, markersize=5, label="robust accuracy")
        if any(trial.premade is not None for trial in rated):
            axes.plot(numbers, premade, "^", color=PURPLE, markersize=5, label="accuracy on pre-made texts")
        axes.plot(numbers, objective, "_", color=INK, markersize=9, label="objective")
        axes.step(numbers, _best_so_far(rated), where="post", color=INK, linewidth=1, label="best objective so far")
        axes.set_xlabel("trial")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.grid(axis="y", color=GRID)
        axes.legend(frameon=False, fontsize=8)

    return draw_plot("tune-trials", (8.2, 3.4), draw)


def options_plot(rated: Sequence[Trial], logarithmic: Container[str] = ()) -> str:
    """The objective against the value of each option that was searched, one panel each."""
    names = sorted({name for trial in rated for name in trial.options})
    draws = [_option_panel(rated, name, name in logarithmic) for name in names]
    return draw_panels("tune-options", (8.2, 2.6 * -(-len(names) // 3)), draws)


def _option_panel(rated: Sequence[Trial], name: str, logarithmic: bool) -> Callable[[Axes], None]:
    def draw(axes: Axes) -> None:
        from matplotlib.ticker import LogLocator, NullFormatter

        values = [trial.options[name] for trial in rated]
        numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
        xs = numbers if len(numbers) == len(values) else [str(value) for value in values]
        axes.plot(xs, _values(rated, "objective"), "o", color=ROBUST, alpha=0.7, markersize=5)
        if logarithmic:
            axes.set_xscale("log")
            axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))  # a range may hold no power of ten
            axes.xaxis.set_major_formatter("{x:g}")
            axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set_xlabel(name)
        axes.set_ylabel("objective")
        axes.grid(color=GRID)

    return draw


def _values(rated: Sequence[Trial], name: str) -> list[float]:
    values = [getattr(trial, name) for trial in rated]
    return [float("nan") if value is None else value for value in values]


def _best_so_far(rated: Sequence[Trial]) -> list[float]:
    best = [best_of(rated[: at + 1]) for at in range(len(rated))]
    return [float("nan") if trial is None or trial.objective is None else trial.objective for trial in best]
