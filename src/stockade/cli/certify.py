"""`stockade certify`: prove how many words of each text may change."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import click

from stockade.cli.inputs import (
    data_options,
    defense_option,
    input_options,
    model_and_data,
    model_options,
    refuse_beside_resume,
)
from stockade.core.errors import OptionError


@click.command("certify")
@click.argument("model", required=False)
@click.argument("data", required=False)
@click.option(
    "--method",
    "methods",
    multiple=True,
    metavar="NAME[@PRESET][:OPTION=VALUE,…]",
    help="A way to certify; repeat for more.  [default: the one for the defense]",
)
@click.option("--alpha", type=float, help="The chance that a certificate may be wrong.  [default: 0.05]")
@click.option("--whole-set", is_flag=True, help="Let alpha be for all texts together, not for each.")
@click.option("--no-labels", is_flag=True, help="The data have no labels: certify the class that the model gives.")
@click.option("--limit", type=int, help="Certify a seeded sample of this many rows.  [default: all]")
@click.option("--seed", type=int, default=0, show_default=True, help="Decides the sample and every random copy.")
@click.option("--out", type=click.Path(path_type=Path), help="The run's folder.  [default: runs/certify-DATE-TIME]")
@click.option("--resume", is_flag=True, help="Go on with the run in --out; MODEL and DATA may be left out.")
@defense_option
@input_options
@click.pass_context
def command(context: click.Context, /, model: str | None, data: str | None, **options: Any) -> int:
    """Certify the texts of DATA for MODEL, which stands in a defense that can be certified: ranmask, partition,
    deletion or safer.

    \b
    stockade train builtin:reviews:train --arch CNN-W-Random-1 --defense ranmask:rate=0.7 --out models/m
    stockade certify models/m builtin:reviews:test --limit 200 --out runs/c
    stockade verify runs/c
    """
    from stockade.certificates.pages.report import write_certificate_report
    from stockade.certificates.running import certify, resume_certification
    from stockade.cli.certificates import print_certificates
    from stockade.cli.progress import watch

    out = options["out"] or Path("runs") / f"certify-{datetime.now():%Y%m%d-%H%M%S}"
    if options["resume"] and options["out"] is None:
        raise OptionError("--resume needs the run's folder: name it with --out.")
    speed = {name: options[name] for name in ("concurrency", "batch_tokens")}
    try:
        with watch() as observer:
            if options["resume"] and model is None:
                refuse_beside_resume(context)
                run = resume_certification(out, observer=observer, **speed)
            else:
                run = certify(
                    *model_and_data(model, data, "stockade certify models/m builtin:reviews:test --limit 200"),
                    *options["methods"],
                    alpha=options["alpha"],
                    seed=options["seed"],
                    whole_set=options["whole_set"],
                    max_words=options["max_words"],
                    labelled=not options["no_labels"],
                    out=out,
                    resume=options["resume"],
                    data_options=data_options(options, options["limit"]),
                    model_options=model_options(options),
                    observer=observer,
                    **speed,
                )
    except KeyboardInterrupt:
        click.echo(f"stockade: interrupted; go on with: stockade certify --resume --out {out}", err=True)
        return 130
    write_certificate_report([run], out / "report.html")
    print_certificates(run)
    return 0
