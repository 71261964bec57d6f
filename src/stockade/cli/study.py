"""`stockade study`: several attacks on the same texts, and what they say together."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stockade.cli.inputs import data_options, input_options, model_options, refuse_if_all_failed
from stockade.core.errors import OptionError

if TYPE_CHECKING:
    from rich.console import Console

    from stockade.studies.running import Study
    from stockade.studies.tables import Table


@click.command("study")
@click.argument("name")
@click.argument("model", required=False)
@click.argument("data", required=False)
@click.option("--limit", type=int, help="Attack a seeded sample of this many rows.  [default: all]")
@click.option("--seed", type=int, default=0, show_default=True, help="Decides the sample and every random choice.")
@click.option("--budget", type=int, help="The most queries per text.")
@click.option("--preset", help="Options of all attacks as in a paper or another tool: paper, authors.")
@click.option(
    "--score-first", is_flag=True, help="BAE asks the victim before the sentence encoder: more queries, often faster."
)
@click.option("--fluency/--no-fluency", default=True, help="Measure pseudo-perplexities.")
@click.option("--out", type=click.Path(path_type=Path), help="The run's folder.  [default: runs/study-NAME-DATE-TIME]")
@click.option(
    "--resume", is_flag=True, help="Go on with the study in --out, or analyse it anew; leave MODEL and DATA out."
)
@input_options
def command(name: str, model: str | None, data: str | None, **options: Any) -> int:
    """Run the study NAME of MODEL on DATA: its attacks on the same texts, then study.json, study.md and study.html.

    \b
    bae    the four modes of BAE and TextFooler: who succeeds, at what similarity, with how many words

    MODEL and DATA are as for `stockade attack`.

    \b
    stockade study bae builtin:sentiment-cnn builtin:reviews --limit 100 --score-first --out runs/bae
    stockade study bae --resume --out runs/bae
    """
    from stockade.cli.progress import watch
    from stockade.studies.running import find_study, study

    find_study(name)
    out = options["out"] or Path("runs") / f"study-{name}-{datetime.now():%Y%m%d-%H%M%S}"
    if options["resume"] and options["out"] is None:
        raise OptionError("--resume needs the run's folder: name it with --out.")
    same = ("preset", "score_first", "fluency", "limit", "seed", "budget", "resume", "max_words", "mlm", "encoder")
    given = {option: options[option] for option in (*same, "concurrency", "batch_tokens")}
    try:
        with watch() as observer:
            found = study(
                name,
                model,
                data,
                out=out,
                data_options=data_options(options),
                model_options=model_options(options),
                observer=observer,
                **given,
            )
    except KeyboardInterrupt:
        click.echo(f"stockade: interrupted; go on with: stockade study {name} --resume --out {out}", err=True)
        return 130
    _print(found)
    refuse_if_all_failed(found.run)
    return 0


def _print(found: Study) -> None:
    from stockade.cli.tables import console
    from stockade.studies import tables
    from stockade.studies.headline import headline

    screen = console()
    numbers = found.numbers
    _print_table(screen, tables.main_table(numbers))
    screen.print(f"\nTable 5, {numbers['splits']['attacked']:,} attacked texts:")
    _print_table(screen, tables.split_table(numbers))
    screen.print("\nThe paper's orders:")
    for order in numbers["orders"]:
        _print_order(screen, order)
    screen.print()
    for sentence in headline(numbers):
        screen.print(sentence, highlight=False, soft_wrap=True)
    for warning in numbers["warnings"]:
        screen.print(f"[bold yellow]warning:[/] {warning}", soft_wrap=True, highlight=False)
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
    style = {True: "green", False: "red", None: "dim"}[order["holds"]]
    screen.print(f"  [{style}]{order['verdict']:<13}[/] {order['claim']}: ", end="", highlight=False, soft_wrap=True)
    screen.print(order["numbers"], style="dim", highlight=False, soft_wrap=True)
