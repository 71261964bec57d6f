"""`stockade certify`: prove how many words of each text may change."""

from __future__ import annotations

from typing import Any

import click

from stockade.cli.inputs import (
    data_options,
    defense_option,
    input_options,
    job_options,
    limit_option,
    model_and_data,
    model_options,
    refuse_beside_resume,
    seed_option,
    speed_options,
    text_option,
    unlabelled_option,
    with_text,
)

_PASSED_ON = ("alpha", "familywise", "unlabelled", "limit", "seed", "max_words", "mlm", "encoder", "resume")


@click.command("certify")
@click.argument("model", required=False)
@click.argument("data", required=False)
@click.option(
    "--method",
    "methods",
    multiple=True,
    metavar="NAME[@PRESET][:OPTION=VALUE,…]",
    help="A certification method; repeat for more.  [default: the one for the defense]",
)
@click.option("--alpha", type=float, help="The probability that a certificate may be wrong.  [default: 0.05]")
@click.option("--familywise", is_flag=True, help="Let alpha be for all texts together, not for each.")
@unlabelled_option
@text_option
@limit_option
@seed_option
@defense_option
@job_options
@input_options
@click.pass_context
def command(context: click.Context, /, model: str | None, data: str | None, **options: Any) -> int:
    """Certify the texts of DATA for MODEL, which needs a certifiable defense: ranmask, partition, deletion or safer.

    \b
    stockade train builtin:reviews:train --arch CNN-W-Random-1 --defense partition:groups=8 --out models/m
    stockade certify models/m builtin:reviews:test --limit 200 --out runs/c
    stockade verify runs/c
    """
    from stockade.cli.finish import output_folder, run_job
    from stockade.kinds import resume
    from stockade.workflows.certify import certify

    out, speed = output_folder(options["out"], "certify", options["resume"]), speed_options(options)
    if options["resume"] and model is None:
        refuse_beside_resume(context)
        return run_job(out, lambda observer: resume(out, trust=options["trust_run"], observer=observer, **speed))
    reference, source = model_and_data(
        model, with_text(data, options), "stockade certify models/m builtin:reviews:test --limit 200"
    )
    return run_job(
        out,
        lambda observer: certify(
            reference,
            source,
            list(options["methods"]) or None,
            defenses=list(options["defenses"]) or None,
            out=out,
            data_options=data_options(options),
            model_options=model_options(options),
            observer=observer,
            **{name: options[name] for name in _PASSED_ON},
            **speed,
        ),
    )
