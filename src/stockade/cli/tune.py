"""`stockade tune`: search the options of a defense."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from stockade.cli.inputs import (
    attack_option,
    budget_option,
    constraint_option,
    data_options,
    input_options,
    job_options,
    max_changed_option,
    model_and_data,
    model_options,
    read_pairs,
    refuse_beside_resume,
    seed_option,
    speed_options,
)
from stockade.cli.screen import say
from stockade.core.errors import OptionError

if TYPE_CHECKING:
    from stockade.experiment.progress import Observer
    from stockade.workflows.tune.result import TuneResult

_PASSED_ON = (
    "premade_weight",
    "train_data",
    "train_preset",
    "ranges",
    "trials",
    "sampler",
    "objective",
    "method",
    "clean_weight",
    "least_clean",
    "preset",
    "limit",
    "seed",
    "budget",
    "max_changed",
    "constraint",
    "eot_samples",
    "max_words",
    "mlm",
    "encoder",
    "resume",
)
_EXAMPLE = "stockade tune builtin:sentiment-cnn builtin:reviews --defense ranmask --attack textfooler"


@click.command("tune")
@click.argument("model", required=False)
@click.argument("data", required=False)
@attack_option
@click.option(
    "--defense",
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
@click.option(
    "--premade",
    multiple=True,
    metavar="FILE",
    help="Adversarial texts that exist already, in place of an --attack or beside it; repeat for more.",
)
@click.option(
    "--premade-weight", type=float, default=1.0, show_default=True, help="What accuracy on --premade texts counts for."
)
@click.option(
    "--train-data", metavar="DATA", help="Each trial trains MODEL further on these, with the defense (fact, pgd …)."
)
@click.option("--train-preset", metavar="NAME", help="Training options by name, such as fact.  [default: by model]")
@click.option("--train-option", "train_options", multiple=True, metavar="KEY=VALUE", help="A training option; repeat.")
@click.option("--trials", type=int, default=20, show_default=True, help="How many choices of options to try.")
@click.option(
    "--sampler", default="random", show_default=True, help="random, grid, or optuna's: tpe, gp (extra `tune`)."
)
@click.option(
    "--objective",
    type=click.Choice(["robust", "mcb"]),
    default="robust",
    show_default=True,
    help="What is maximised: accuracies, or how many words may change in half of the texts, certified (MCB).",
)
@click.option("--method", metavar="NAME[:OPTION=VALUE,…]", help="The certificate behind --objective mcb.")
@click.option("--clean-weight", type=float, default=0.0, show_default=True, help="What clean accuracy counts for.")
@click.option("--least-clean", type=float, help="Options with less clean accuracy lose to all others.")
@click.option("--preset", help="Options of all attacks as in a paper or another tool: paper, authors, textattack.")
@click.option("--limit", type=int, default=100, show_default=True, help="Attack a seeded sample of this many rows.")
@seed_option
@budget_option
@max_changed_option
@constraint_option
@click.option(
    "--eot-samples",
    type=int,
    default=3,
    show_default=True,
    help="Answers that a search averages where the defense is randomised; 1 leaves that view out.",
)
@click.option("--workers", type=int, default=1, show_default=True, help="Trials at once, each in a process of its own.")
@click.option("--seconds", type=float, help="A time limit: no trial is begun after it.")
@job_options
@input_options
@click.pass_context
def command(context: click.Context, /, model: str | None, data: str | None, **options: Any) -> int:
    """Search the options of a defense around MODEL for those that hold out best against the attacks on DATA.

    The last line is the best defense, ready for --defense. A search may be resumed with more --trials. With --premade
    in place of --attack a trial only asks about texts. A defense that acts in training, such as fact, is trained in
    each trial, on --train-data.

    \b
    stockade tune builtin:sentiment-cnn builtin:reviews --defense ranmask:copies=30 --range rate=0.1..0.9 \\
        --attack textfooler --limit 50 --trials 20 --out runs/t
    stockade tune models/m dev.csv --defense fact --train-data train.csv --train-preset fact --premade made.jsonl
    """
    from stockade.cli.finish import output_folder, run_job
    from stockade.kinds import resume
    from stockade.workflows.tune import tune

    out = output_folder(options["out"], "tune", options["resume"])
    speed = {**speed_options(options), "seconds": options["seconds"], "workers": options["workers"]}
    best: list[TuneResult] = []

    def start(observer: Observer) -> TuneResult:
        if options["resume"] and model is None:
            refuse_beside_resume(context)
            result: TuneResult = resume(out, trust=options["trust_run"], observer=observer, **speed)
        else:
            if options["defense"] is None:
                raise OptionError(f"No defense was named, as in: {_EXAMPLE}")
            model_reference, data_reference = model_and_data(model, data, _EXAMPLE)
            result = tune(
                model_reference,
                data_reference,
                options["defense"],
                options["attacks"],
                premade=list(options["premade"]),
                train_options=read_pairs("--train-option", options["train_options"]),
                out=out,
                data_options=data_options(options),
                model_options=model_options(options),
                observer=observer,
                **{name: options[name] for name in _PASSED_ON},
                **speed,
            )
        best.append(result)
        return result

    code = run_job(out, start)
    if code == 0:
        if best[0].best_model is not None:
            say(f"The trained model: {best[0].best_model}")
        say(f"--defense {best[0].best_defense}")
    return code
