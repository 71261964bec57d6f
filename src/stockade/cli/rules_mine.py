"""`stockade rules mine` and `stockade rules explain`: where rules come from, and what data have to do with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from stockade.cli.inputs import (
    column_options,
    data_options,
    input_options,
    job_options,
    limit_option,
    model_options,
    refuse_beside_resume,
    seed_option,
)
from stockade.cli.screen import say
from stockade.core.errors import OptionError

_FORMATS = {".html": "html", ".htm": "html", ".md": "md", ".json": "json"}
_PASSED_ON = ("method", "score", "min_count", "limit", "seed", "max_words", "mlm", "encoder")


@click.command("mine")
@click.argument("inputs", metavar="[MODEL… DATA]", nargs=-1)
@click.option(
    "--method",
    type=click.Choice(["uawr", "pmi", "pmi-smoothed"]),
    default="uawr",
    show_default=True,
    help="Ask the models what each replacement does (uawr), or count words (no MODEL).",
)
@click.option(
    "--score",
    type=click.Choice(["logits", "log-likelihood"]),
    default="logits",
    show_default=True,
    help="With uawr: what should change, the mean of the models' logits or the log-softmax of it.",
)
@click.option(
    "--min-count", type=int, default=2, show_default=True, help="Leave out rules with fewer places in the data."
)
@click.option(
    "--max-count",
    default="2",
    show_default=True,
    metavar="N|all",
    help="With uawr: score a rule at a seeded sample of so many places.",
)
@limit_option
@seed_option
@click.option("--seconds", type=float, help="A time limit: no chunk of texts is begun after it.")
@job_options
@input_options
@click.pass_context
def mine(context: click.Context, /, inputs: tuple[str, ...], **options: Any) -> int:
    """Mine word replacement rules from DATA, best the training data of MODEL….

    The rules are in rules.jsonl in the job's folder. Several models, or an ensemble:A,B,…, are asked together: what
    moves the mean of their logits often moves models that were not asked. MODEL and DATA are as for `stockade attack`.

    \b
    stockade rules mine builtin:sentiment-cnn builtin:sentiment-lstm builtin:reviews:train --limit 500 --out runs/rules
    stockade rules mine reviews.csv --method pmi-smoothed --out runs/pmi
    stockade resume runs/rules
    """
    from stockade.cli.finish import output_folder, run_job
    from stockade.kinds import resume
    from stockade.workflows.mine import mine_rules

    out = output_folder(options["out"], "rules", options["resume"])
    speed = {"batch_tokens": options["batch_tokens"], "seconds": options["seconds"]}
    if options["resume"] and not inputs:
        refuse_beside_resume(context)
        return run_job(out, lambda observer: resume(out, trust=options["trust_run"], observer=observer, **speed))
    if not inputs:
        raise OptionError(
            "MODEL and DATA are missing, as in: stockade rules mine builtin:sentiment-cnn builtin:reviews:train"
        )
    *models, data = inputs
    chosen = {name: options[name] for name in _PASSED_ON}
    return run_job(
        out,
        lambda observer: mine_rules(
            models,
            data,
            max_count=_count(options["max_count"]),
            out=out,
            resume=options["resume"],
            data_options=data_options(options),
            model_options=model_options(options),
            observer=observer,
            **chosen,
            **speed,
        ),
    )


def _count(written: str) -> int | None:
    if written == "all":
        return None
    if not written.isdecimal():
        raise OptionError(f"--max-count is {written}, expected a whole number from 1 up, or all.")
    return int(written)


@click.command("explain")
@click.argument("rules", type=click.Path(path_type=Path))
@click.argument("data")
@click.option("--top", type=int, default=20, show_default=True, help="Words of each class to show with their texts.")
@limit_option
@seed_option
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Write the report to a file ending in .html, .md or .json.  [default: print it]",
)
@column_options
def explain(rules: Path, data: str, top: int, limit: int | None, seed: int, out: Path | None, **options: Any) -> None:
    """Say what DATA have to do with RULES: which words they tie to a class, how strongly, and in which texts.

    RULES is a file of rules or the folder of `stockade rules mine`; DATA are best those that the rules were mined from.

    \b
    stockade rules explain runs/rules builtin:reviews:train --top 5
    stockade rules explain rules.jsonl reviews.csv --out bias.html
    """
    from stockade.workflows.mine.explain import explain_rules

    if out is not None and out.suffix.lower() not in _FORMATS:
        raise OptionError(f'The report "{out}" has no known ending, expected {", ".join(_FORMATS)}.')
    explanation = explain_rules(rules, data, top=top, limit=limit, seed=seed, data_options=data_options(options))
    document = explanation.document()
    if out is None:
        document.print()
    else:
        document.write(out, _FORMATS[out.suffix.lower()])
        say(str(out))
