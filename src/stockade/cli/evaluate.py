"""`stockade evaluate`: models in defenses under attacks, a grid on the same texts."""

from __future__ import annotations

from typing import Any

import click

from stockade.cli.inputs import (
    attack_option,
    budget_option,
    constraint_option,
    data_options,
    input_options,
    job_options,
    limit_option,
    max_changed_option,
    model_options,
    refuse_beside_resume,
    speed_options,
)
from stockade.core.errors import OptionError

_PASSED_ON = (
    "preset",
    "limit",
    "seed",
    "seeds",
    "eot_samples",
    "transfer_from",
    "budget",
    "max_changed",
    "constraint",
    "resume",
    "max_words",
    "mlm",
    "encoder",
)


@click.command("evaluate")
@click.argument("inputs", metavar="[MODEL… DATA]", nargs=-1)
@attack_option
@click.option(
    "--defense",
    "defenses",
    multiple=True,
    metavar="CHAIN",
    help="A chain of defenses, as in five:samples=8+fact; repeat for more; own: what a model's folder records.",
)
@click.option("--preset", help="Options of all attacks as in a paper or another tool: paper, authors, textattack.")
@click.option(
    "--premade",
    multiple=True,
    metavar="FILE",
    help="Adversarial texts to score: an export of a run, or data with true labels; repeat for more.",
)
@limit_option
@click.option("--seed", type=int, default=0, show_default=True, help="Decides the sample; the first of the seeds.")
@click.option("--seeds", type=int, default=1, show_default=True, help="Repeat every random choice with so many seeds.")
@click.option(
    "--eot-samples",
    type=int,
    default=5,
    show_default=True,
    help="Answers that a search averages where a defense is randomised; 1 leaves that view out.",
)
@click.option(
    "--transfer-from",
    metavar="MODEL",
    help="Try what fools this model, an undefended one say, on every row, as one more view.",
)
@budget_option
@max_changed_option
@constraint_option
@click.option("--seconds", type=float, help="A time limit for the whole evaluation: nothing new is started after it.")
@job_options
@input_options
@click.pass_context
def command(context: click.Context, /, inputs: tuple[str, ...], **options: Any) -> int:
    """Evaluate MODEL… on DATA: bare and in each --defense, under each --attack, on the same texts.

    MODEL and DATA are as for `stockade attack`. Each --defense is a column of the grid; a chain is written from the
    outside in, as in five+fact. The bare model is always there. Randomised defenses are attacked directly, through
    the mean of several answers, through a surrogate that does not vote, and with texts found on the bare model; a text
    is robust in the worst case only if it survives all of it.

    \b
    stockade evaluate builtin:sentiment-cnn builtin:reviews --attack pwws --defense ranmask --limit 50 --out runs/e
    stockade evaluate ./bert ./lstm reviews.csv --attack textfooler --defense ranmask --defense five+fact --seeds 3
    stockade resume runs/e
    """
    from stockade.cli.finish import output_folder, run_job
    from stockade.kinds import resume
    from stockade.workflows.evaluate import evaluate

    out = output_folder(options["out"], "evaluate", options["resume"])
    speed = {**speed_options(options), "seconds": options["seconds"]}
    if options["resume"] and not inputs:
        refuse_beside_resume(context)
        return run_job(out, lambda observer: resume(out, trust=options["trust_run"], observer=observer, **speed))
    if len(inputs) < 2:
        missing = "DATA is" if inputs else "MODEL and DATA are"
        raise OptionError(
            f"{missing} missing, as in: stockade evaluate builtin:sentiment-cnn builtin:reviews --attack pwws"
        )
    return run_job(
        out,
        lambda observer: evaluate(
            list(inputs[:-1]),
            inputs[-1],
            options["attacks"],
            list(options["defenses"]),
            premade=list(options["premade"]),
            out=out,
            data_options=data_options(options),
            model_options=model_options(options),
            observer=observer,
            **{name: options[name] for name in _PASSED_ON},
            **speed,
        ),
    )
