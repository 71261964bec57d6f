"""`stockade study`: several attacks on the same texts, and what they say together."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from stockade.cli.inputs import (
    data_options,
    defense_option,
    input_options,
    model_options,
    refuse_beside_resume,
    refuse_if_all_failed,
)
from stockade.core.errors import OptionError

if TYPE_CHECKING:
    from rich.console import Console

    from stockade.studies.entry import Study
    from stockade.studies.tables import Table

_SHARED = ("limit", "seed", "budget", "resume", "max_words", "concurrency", "batch_tokens")
_OWN = (
    "preset",
    "score_first",
    "fluency",
    "mlm",
    "encoder",
    "draws",
    "samples",
    "rating_sheet",
    "compare",
    "ratings",
    "attacks",
    "copies",
    "published",
)
"""Options that only some studies have; the study says which."""


@click.command("study")
@click.argument("name")
@click.argument("inputs", metavar="[MODEL… DATA]", nargs=-1)
@click.option("--limit", type=int, help="Attack a seeded sample of this many rows.  [default: all]")
@click.option("--seed", type=int, default=0, show_default=True, help="Decides the sample and every random choice.")
@click.option("--budget", type=int, help="The most queries per text.")
@click.option("--preset", help="bae: options of all attacks as in a paper or another tool: paper, authors.")
@click.option(
    "--score-first",
    is_flag=True,
    help="bae: BAE asks the victim before the sentence encoder: more queries, often faster.",
)
@click.option("--fluency/--no-fluency", default=True, help="bae: measure pseudo-perplexities.")
@click.option("--draws", type=int, default=1000, show_default=True, help="attention: draws of random per text.")
@click.option("--samples", type=int, default=10_000, show_default=True, help="attention: draws per head for Theorem 1.")
@click.option(
    "--rating-sheet",
    type=click.Path(path_type=Path),
    metavar="FILE.csv",
    help="attention: write a blind sheet for human raters, and FILE.key.json.",
)
@click.option(
    "--compare",
    multiple=True,
    metavar="MODEL:ATTACK,MODEL:ATTACK",
    help="attention: what the sheet compares; repeat.  [default: the paper's two comparisons]",
)
@click.option(
    "--ratings",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE.csv",
    help="attention: a sheet that a rater has filled in; repeat.",
)
@click.option(
    "--attack",
    "attacks",
    multiple=True,
    metavar="NAME[@PRESET][:OPTION=VALUE,…]",
    help="masking: an attack on each ensemble of each model; repeat.",
)
@click.option("--copies", type=int, default=5000, show_default=True, help="masking: masked copies per text.")
@click.option("--published", is_flag=True, help="masking: show the paper's numbers beside.")
@click.option("--out", type=click.Path(path_type=Path), help="The run's folder.  [default: runs/study-NAME-DATE-TIME]")
@click.option(
    "--resume", is_flag=True, help="Go on with the study in --out, or analyse it anew; leave MODEL and DATA out."
)
@defense_option
@input_options
@click.pass_context
def command(context: click.Context, /, name: str, inputs: tuple[str, ...], **options: Any) -> int:
    """Run the study NAME of MODEL on DATA: its attacks on the same texts, then study.json, study.md and study.html.

    \b
    attention  one word replaced, on several models: who is fooled, where attention goes, how far embeddings move
    bae        the four modes of BAE and TextFooler: who succeeds, at what similarity, with how many words
    masking    RanMASK at several mask rates: accuracy, what is certified, what is only claimed, robust accuracy

    MODEL and DATA are as for `stockade attack`; the studies attention and masking take several models before the data,
    masking those that were trained with --defense ranmask:rate=…, one for each rate.

    \b
    stockade study bae builtin:sentiment-cnn builtin:reviews --limit 100 --score-first --out runs/bae
    stockade study bae --resume --out runs/bae
    stockade study attention builtin:sentiment-bert builtin:sentiment-lstm builtin:reviews --limit 100 --out runs/one
    stockade study attention --resume --out runs/one --rating-sheet sheet.csv
    stockade study masking models/m03 models/m08 builtin:reviews --attack pwws --limit 100 --out runs/rates
    """
    from stockade.cli.progress import watch
    from stockade.studies.running import find_study, study

    entry = find_study(name)
    out = options["out"] or Path("runs") / f"study-{name}-{datetime.now():%Y%m%d-%H%M%S}"
    if options["resume"] and options["out"] is None:
        raise OptionError("--resume needs the run's folder: name it with --out.")
    if options["resume"] and not inputs:
        refuse_beside_resume(context, taken=("name", *_OWN))
    models, data = (list(inputs[:-1]), inputs[-1]) if len(inputs) > 1 else (list(inputs), None)
    given = {option: options[option] for option in _SHARED}
    own = {option: options[option] for option in _OWN if _is_given(context, option)}
    try:
        with watch() as observer:
            found = study(
                name,
                models or None,
                data,
                out=out,
                data_options=data_options(options),
                model_options=model_options(options),
                observer=observer,
                **given,
                **own,
            )
    except KeyboardInterrupt:
        click.echo(f"stockade: interrupted; go on with: stockade study {name} --resume --out {out}", err=True)
        return 130
    _print(found, entry.headline(found.numbers), entry.tables(found.numbers))
    if options["rating_sheet"]:
        click.echo(f"Sheet: {options['rating_sheet']}  ·  keep its .key.json from the raters")
    for run in found.runs.values():
        refuse_if_all_failed(run)
    return 0


def _is_given(context: click.Context, option: str) -> bool:
    return context.get_parameter_source(option) is ParameterSource.COMMANDLINE


def _print(found: Study, headline: list[str], tables: list[tuple[str, Table]]) -> None:
    from stockade.cli.tables import console, print_warnings

    screen = console()
    numbers = found.numbers
    for at, (title, table) in enumerate(tables):
        if title:
            screen.print(f"\n{title}" if at else title, highlight=False)
        _print_table(screen, table)
    screen.print("\nThe paper's orders:")
    for order in numbers["orders"]:
        _print_order(screen, order)
    screen.print()
    for sentence in headline:
        screen.print(sentence, highlight=False, soft_wrap=True)
    print_warnings(screen, numbers["warnings"])
    screen.print(f"Study: {found.folder}  ·  page: {found.folder / 'study.html'}", soft_wrap=True, highlight=False)


def _print_table(screen: Console, table: Table) -> None:
    from rich.table import Table as Grid

    grid = Grid(box=None, pad_edge=False, header_style="bold", collapse_padding=True)
    for at, column in enumerate(table.columns):
        grid.add_column(column, justify="right" if at else "left", overflow="fold")
    for row in table.rows:
        grid.add_row(*row)
    screen.print(grid)


def _print_order(screen: Console, order: Mapping[str, Any]) -> None:
    from rich.text import Text as Line

    style = {True: "green", False: "red", None: "dim"}[order["holds"]]
    verdict = f"{order['verdict']:<13}"
    line = Line.assemble("  ", (verdict, style), f" {order['claim']}: ", (order["numbers"], "dim"))
    screen.print(line, soft_wrap=True)
