"""`stockade tune`: search the options of a defense."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stockade.cli.inputs import data_options, input_options, model_options
from stockade.core.errors import InputError, OptionError

if TYPE_CHECKING:
    from stockade.tuning.running import Tuned
    from stockade.tuning.trials import Trial

_SHARED = (
    "ranges",
    "trials",
    "seconds",
    "sampler",
    "clean_weight",
    "least_clean",
    "limit",
    "seed",
    "budget",
    "expectation",
    "workers",
    "max_words",
    "concurrency",
    "batch_tokens",
    "resume",
    "mlm",
    "encoder",
)


@click.command("tune")
@click.argument("model", required=False)
@click.argument("data", required=False)
@click.option(
    "--attack", required=True, metavar="NAME[@PRESET][:OPTION=VALUE,…]", help="The attack to hold out against."
)
@click.option(
    "--defense",
    required=True,
    metavar="NAME[@PRESET][:OPTION=VALUE,…]",
    help="The defense whose options are searched; those written here stay as they are.",
)
@click.option(
    "--range",
    "ranges",
    multiple=True,
    metavar="OPTION=LOW..HIGH",
    help="An option to search, also OPTION=A|B|C or 'OPTION=LOW..HIGH log'; repeat.  [default: docs/tune.md]",
)
@click.option("--trials", type=int, default=20, show_default=True, help="How many choices of options to try.")
@click.option("--seconds", type=float, help="A time box: no trial is begun after it.")
@click.option("--sampler", default="random", show_default=True, help="random, or optuna's: tpe, gp (extra `tune`).")
@click.option("--clean-weight", type=float, default=0.0, show_default=True, help="What clean accuracy counts for.")
@click.option("--least-clean", type=float, help="Options with less clean accuracy lose to all others.")
@click.option("--limit", type=int, default=100, show_default=True, help="Attack a seeded sample of this many rows.")
@click.option("--seed", type=int, default=0, show_default=True, help="Decides the sample and every random choice.")
@click.option("--budget", type=int, help="The most queries per text.")
@click.option(
    "--expectation",
    type=int,
    default=3,
    show_default=True,
    help="Answers that a search averages where the defense is randomised; 1 leaves that way out.",
)
@click.option("--workers", type=int, default=1, show_default=True, help="Trials at once, each in a process of its own.")
@click.option("--out", type=click.Path(path_type=Path), help="The search's folder.  [default: runs/tune-DATE-TIME]")
@click.option("--resume", is_flag=True, help="Go on with the search in --out, with the same options.")
@input_options
def command(model: str | None, data: str | None, **options: Any) -> int:
    """Search the options of a defense around MODEL for those that hold out best against an attack on DATA.

    The last line is the best defense, ready for --defense.

    \b
    stockade tune builtin:sentiment-cnn builtin:reviews --defense ranmask:copies=30 --range rate=0.1..0.9 \\
        --attack textfooler --limit 50 --trials 20 --out runs/t
    """
    from stockade.tuning.page import write_page
    from stockade.tuning.running import tune

    if model is None or data is None:
        raise OptionError(
            "MODEL and DATA are missing. A search is gone on with by the same command with --resume --out FOLDER."
        )
    if options["resume"] and options["out"] is None:
        raise OptionError("--resume needs the search's folder: name it with --out.")
    out = options["out"] or Path("runs") / f"tune-{datetime.now():%Y%m%d-%H%M%S}"
    try:
        tuned = tune(
            model,
            data,
            options["defense"],
            attack=options["attack"],
            out=out,
            data_options=data_options(options),
            model_options=model_options({**options, "defense": ()}),
            observer=_print_trial,
            **{name: options[name] for name in _SHARED},
        )
    except KeyboardInterrupt:
        click.echo(f"stockade: interrupted; repeat the command with --resume --out {out} to go on.", err=True)
        return 130
    page = write_page(tuned)
    _print_best(tuned, page)
    return 0


def _print_trial(trial: Trial) -> None:
    options = ", ".join(f"{name}={value}" for name, value in trial.options.items())
    if trial.error is not None:
        click.echo(f"trial {trial.number}: {options}: {trial.error}", err=True)
        return
    click.echo(
        f"trial {trial.number}: {options}: clean {trial.clean:.3f}, robust {trial.robust:.3f}, "
        f"objective {trial.objective:.3f} ({trial.seconds:.0f} s)"
    )


def _print_best(tuned: Tuned, page: Path) -> None:
    cleanest = max((trial.clean for trial in tuned.trials if trial.clean is not None), default=None)
    if tuned.best is None and cleanest is not None:
        raise InputError(
            f"None of {len(tuned.trials)} trials keeps the clean accuracy of --least-clean; the most is "
            f"{cleanest:.3f}. Allow less, or search more with --resume and more --trials."
        )
    if tuned.best is None:
        reason = next((trial.error for trial in tuned.trials if trial.error), "there was no time for one")
        raise InputError(f"No trial could be rated; the first: {reason}")
    click.echo(f"{len(tuned.trials)} trials; the best is trial {tuned.best.number}. Page: {page}")
    click.echo(f"--defense {tuned.best_defense}")
