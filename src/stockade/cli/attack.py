"""`stockade attack`: attack a model on data and keep the results as a run."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import click

from stockade.cli.inputs import (
    data_options,
    defense_option,
    input_options,
    max_changed_option,
    model_and_data,
    model_options,
    refuse_beside_resume,
    refuse_if_all_failed,
)
from stockade.core.errors import OptionError


def _read_config(ctx: click.Context, _: click.Parameter, path: Path | None) -> Path | None:
    """Options from a TOML file become defaults; what stands on the command line wins."""
    if path is None:
        return None
    import tomllib

    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise OptionError(f"{path} does not exist.") from None
    except (OSError, ValueError) as error:
        raise OptionError(f"{path} is not a TOML file that can be read ({error}).") from None
    attack_options = content.pop("attack_options", {})
    known = {parameter.name for parameter in ctx.command.params} - {"config"}
    defaults = {name.replace("-", "_"): value for name, value in content.items()}
    unknown = sorted(set(defaults) - known)
    if unknown:
        raise OptionError(f"{path} sets {', '.join(unknown)}, which `stockade attack` does not know.")
    ctx.default_map = {**(ctx.default_map or {}), **defaults}
    ctx.meta["attack_options"] = attack_options
    return path


@click.command("attack")
@click.argument("model", required=False)
@click.argument("data", required=False)
@click.option(
    "--attack", "attack", multiple=True, metavar="NAME[@PRESET][:OPTION=VALUE,…]", help="An attack; repeat for more."
)
@click.option("--preset", help="Options as in a paper or another tool: paper, authors, textattack.")
@click.option("--limit", type=int, help="Attack a seeded sample of this many rows.  [default: all]")
@click.option("--seed", type=int, default=0, show_default=True, help="Decides the sample and every random choice.")
@click.option("--budget", type=int, help="The most queries per text.")
@max_changed_option
@click.option(
    "--constraint",
    metavar="EXPRESSION",
    help="What candidates must keep, such as 'same-pos & similarity(cosine, 0.9) & edit-distance(30)'.",
)
@click.option("--repair-articles", is_flag=True, default=None, help='Put "a" and "an" right in front of new words.')
@click.option("--exhaustive", is_flag=True, help="Attacks that estimate try every word of the vocabulary instead.")
@click.option("--targeted", metavar="LABEL", help="Succeed only when the model says this class.")
@click.option("--out", type=click.Path(path_type=Path), help="The run's folder.  [default: runs/attack-DATE-TIME]")
@click.option("--resume", is_flag=True, help="Go on with the run in --out; MODEL and DATA may be left out.")
@defense_option
@input_options
@click.option(
    "--similarity/--no-similarity", default=True, help="Measure the similarity of each success to its original."
)
@click.option(
    "--neighbours", metavar="FILE", help="Word neighbours of your own: a table of `stockade lexicon build`, or vectors."
)
@click.option(
    "--config", type=click.Path(path_type=Path), is_eager=True, callback=_read_config, help="Options from a TOML file."
)
@click.pass_context
def command(ctx: click.Context, /, model: str | None, data: str | None, **options: Any) -> int:
    """Attack MODEL on DATA.

    MODEL is a Hugging Face folder or hub name, python:package.module:callable, or builtin:NAME (see `stockade ls
    models`). DATA is a csv, tsv, jsonl or parquet file, hf:NAME[:SPLIT], or builtin:reviews.

    \b
    stockade attack builtin:sentiment-cnn builtin:reviews --attack pwws --limit 100
    stockade attack ./my-bert reviews.csv --attack deepwordbug@textattack --budget 200 --out runs/a
    """
    from stockade import api
    from stockade.cli.progress import watch
    from stockade.cli.tables import print_run
    from stockade.report import write_report

    out = options["out"] or Path("runs") / f"attack-{datetime.now():%Y%m%d-%H%M%S}"
    if options["resume"] and options["out"] is None:
        raise OptionError("--resume needs the run's folder: name it with --out.")
    speed = {name: options[name] for name in ("concurrency", "batch_tokens")}
    try:
        with watch() as observer:
            if options["resume"] and model is None:
                refuse_beside_resume(ctx)
                run = api.resume(out, observer=observer, **speed)
            else:
                run = api.attack(
                    *model_and_data(model, data, "stockade attack builtin:sentiment-cnn builtin:reviews --attack pwws"),
                    *_attacks(options["attack"], ctx.meta.get("attack_options", {}), options["exhaustive"]),
                    preset=options["preset"],
                    seed=options["seed"],
                    budget=options["budget"],
                    max_changed=options["max_changed"],
                    constraint=options["constraint"],
                    repair_articles=options["repair_articles"],
                    target=options["targeted"],
                    out=out,
                    resume=options["resume"],
                    similarity=options["similarity"],
                    max_words=options["max_words"],
                    mlm=options["mlm"],
                    encoder=options["encoder"],
                    neighbours=options["neighbours"],
                    data_options=data_options(options, options["limit"]),
                    model_options=model_options(options),
                    observer=observer,
                    **speed,
                )
    except KeyboardInterrupt:
        click.echo(f"stockade: interrupted; go on with: stockade attack --resume --out {out}", err=True)
        return 130
    write_report([run], out / "report.html")
    print_run(run)
    refuse_if_all_failed(run)
    return 0


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
    given = [f"{name}={'+'.join(value) if isinstance(value, list) else value}" for name, value in from_file.items()]
    together = ",".join([*given, *filter(None, [written])])
    return f"{key}:{together}" if together else key
