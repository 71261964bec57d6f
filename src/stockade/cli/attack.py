"""`stockade attack`: attack a model on data and keep the results as a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from stockade.cli.config import read_config
from stockade.cli.inputs import (
    attack_option,
    budget_option,
    constraint_option,
    data_options,
    defense_option,
    input_options,
    job_options,
    limit_option,
    max_changed_option,
    model_and_data,
    model_options,
    parallel_options,
    refuse_beside_resume,
    seed_option,
    sides_option,
    speed_options,
    text_option,
    unlabelled_option,
    with_text,
)
from stockade.core.errors import OptionError

_PASSED_ON = (
    "preset",
    "limit",
    "seed",
    "budget",
    "max_changed",
    "constraint",
    "repair_articles",
    "targeted",
    "sides",
    "unlabelled",
    "similarity",
    "max_words",
    "mlm",
    "encoder",
    "neighbours",
    "resume",
)


@click.command("attack")
@click.argument("model", required=False)
@click.argument("data", required=False)
@attack_option
@click.option("--preset", help="Options as in a paper or another tool: paper, authors, textattack.")
@limit_option
@seed_option
@budget_option
@max_changed_option
@constraint_option
@click.option("--repair-articles", is_flag=True, default=None, help='Put "a" and "an" right in front of new words.')
@click.option("--exhaustive", is_flag=True, help="Attacks that estimate try every word of the vocabulary instead.")
@click.option("--targeted", metavar="LABEL", help="Succeed only when the model predicts this class.")
@sides_option
@unlabelled_option
@text_option
@defense_option
@click.option(
    "--similarity/--no-similarity", default=True, help="Measure the similarity of each success to its original."
)
@click.option(
    "--neighbours", metavar="FILE", help="Word neighbours of your own: a table of `stockade lexicon build`, or vectors."
)
@click.option("--seconds", type=float, help="A time limit for each attack: no search is started after it.")
@click.option("--workers", type=int, default=1, show_default=True, help="Processes that attack at the same time.")
@click.option("--ray", metavar="ADDRESS", help="The workers are on this Ray cluster (or: auto).")
@job_options
@input_options
@parallel_options
@click.option(
    "--config", type=click.Path(path_type=Path), is_eager=True, callback=read_config, help="Options from a TOML file."
)
@click.pass_context
def command(ctx: click.Context, /, model: str | None, data: str | None, **options: Any) -> int:
    """Attack MODEL on DATA.

    MODEL is a Hugging Face folder or hub name, python:package.module:callable, or builtin:NAME (see `stockade ls
    models`). DATA is a csv, tsv, jsonl or parquet file, hf:NAME[:SPLIT], or builtin:reviews. With attacks for
    translators (mt-…) MODEL is a translator and DATA has source sentences and their translations.

    \b
    stockade attack builtin:sentiment-cnn builtin:reviews --attack pwws --limit 100
    stockade attack ./my-bert reviews.csv --attack deepwordbug@textattack --budget 200 --out runs/a
    stockade attack ./my-translator pairs.csv --attack mt-keyword --attack mt-typo --limit 200
    stockade attack ./my-bert --text "A warm and funny film." --attack pwws
    """
    from stockade.cli.finish import output_folder, run_job
    from stockade.kinds import resume
    from stockade.workflows.attack import attack

    out = output_folder(options["out"], "attack", options["resume"])
    speed = {**speed_options(options), **{name: options[name] for name in ("seconds", "workers", "ray")}}
    if options["resume"] and model is None:
        refuse_beside_resume(ctx)
        return run_job(out, lambda observer: resume(out, trust=options["trust_run"], observer=observer, **speed))
    reference, source = model_and_data(
        model, with_text(data, options), "stockade attack builtin:sentiment-cnn builtin:reviews --attack pwws"
    )
    attacks = _attacks(options["attacks"], ctx.meta.get("attack_options", {}), options["exhaustive"])
    code = run_job(
        out,
        lambda observer: attack(
            reference,
            source,
            attacks,
            defenses=list(options["defenses"]) or None,
            out=out,
            data_options=data_options(options),
            model_options=model_options(options),
            observer=observer,
            **{name: options[name] for name in _PASSED_ON},
            **speed,
        ),
    )
    if options["text"] is not None and code == 0:
        _show_text(out)
    return code


def _show_text(out: Path) -> None:
    """What became of the one text, which is what the user wants to know."""
    from stockade.kinds import load
    from stockade.report.document import Document
    from stockade.report.examples import Examples, record_example

    items = [record_example(record, labelled=False) for record in load(out).records()]
    Document(title="", blocks=(Examples(items=items, preview=len(items)),)).print()


def _attacks(references: tuple[str, ...], tables: dict[str, dict[str, Any]], exhaustive: bool) -> list[str]:
    if not references:
        raise OptionError("No attack was named. Add --attack NAME; list them with: stockade ls attacks")
    named = [_with_options(reference, tables) for reference in references]
    return [_exhaustive(reference) for reference in named] if exhaustive else named


def _exhaustive(reference: str) -> str:
    """The reference of an attack that can estimate, told not to; any other as it is."""
    from stockade.attacks.registry import attacks

    entry = attacks().get(reference.partition(":")[0].partition("@")[0])
    if entry is None or "exhaustive" not in entry.options:
        return reference
    return f"{reference}{',' if ':' in reference else ':'}exhaustive=true"


def _with_options(reference: str, tables: dict[str, dict[str, Any]]) -> str:
    """An attack reference with the options that the config file's table `attack_options.NAME` gives it."""
    key, _, written = reference.partition(":")
    from_file = tables.get(key, tables.get(key.partition("@")[0], {}))
    options = [f"{name}={'+'.join(value) if isinstance(value, list) else value}" for name, value in from_file.items()]
    together = ",".join([*options, *filter(None, [written])])
    return f"{key}:{together}" if together else key
