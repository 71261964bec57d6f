"""`stockade evaluate`: models in defenses under attacks, a grid on the same texts."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stockade.cli.inputs import (
    data_options,
    input_options,
    max_changed_option,
    model_options,
    refuse_beside_resume,
)
from stockade.core.errors import InputError, OptionError

if TYPE_CHECKING:
    from rich.console import Console

    from stockade.evaluation.running import Evaluation
    from stockade.studies.tables import Table

_PASSED_ON = (
    "premade",
    "limit",
    "seed",
    "seeds",
    "expectation",
    "transfer_from",
    "budget",
    "max_changed",
    "constraint",
    "preset",
    "resume",
    "max_words",
    "mlm",
    "encoder",
    "concurrency",
    "batch_tokens",
)


@click.command("evaluate")
@click.argument("inputs", metavar="[MODEL… DATA]", nargs=-1)
@click.option("--attack", multiple=True, metavar="NAME[@PRESET][:OPTION=VALUE,…]", help="An attack; repeat for more.")
@click.option(
    "--defense",
    multiple=True,
    metavar="CHAIN",
    help="A chain of defenses, as in five:samples=8+fact; repeat for more; own: what a folder says.",
)
@click.option("--preset", help="Options of all attacks as in a paper or another tool: paper, authors, textattack.")
@click.option(
    "--premade",
    multiple=True,
    metavar="FILE",
    help="Adversarial texts to score: an export of a run, or data with true labels; repeat for more.",
)
@click.option("--limit", type=int, help="Evaluate on a seeded sample of this many rows.  [default: all]")
@click.option("--seed", type=int, default=0, show_default=True, help="Decides the sample; the first of the seeds.")
@click.option("--seeds", type=int, default=1, show_default=True, help="Repeat every random choice with so many seeds.")
@click.option(
    "--expectation",
    type=int,
    default=5,
    show_default=True,
    help="Answers that a search averages where a defense is randomised; 1 leaves that way out.",
)
@click.option(
    "--transfer-from",
    metavar="MODEL",
    help="Try what fools this model, an undefended one say, on every row, as one more way to attack it.",
)
@click.option("--budget", type=int, help="The most queries per text.")
@max_changed_option
@click.option(
    "--constraint",
    metavar="EXPRESSION",
    help="What candidates must keep, such as 'same-pos & similarity(cosine, 0.9) & edit-distance(30)'.",
)
@click.option("--out", type=click.Path(path_type=Path), help="The folder.  [default: runs/evaluate-DATE-TIME]")
@click.option("--resume", is_flag=True, help="Go on with the evaluation in --out; leave MODEL and DATA out.")
@input_options
@click.pass_context
def command(context: click.Context, /, inputs: tuple[str, ...], **options: Any) -> int:
    """Evaluate MODEL… on DATA: bare and in each --defense, under each --attack, on the same texts.

    MODEL and DATA are as for `stockade attack`. Each --defense is a column of the grid; a chain is written from the
    outside in, as in five+fact. The bare model is always there. Randomised defenses are attacked directly, through
    the mean of several answers, through their twin that does not vote, and with texts found on the bare model; a text
    is robust in the worst case only if it survives all of it.

    \b
    stockade evaluate builtin:sentiment-cnn builtin:reviews --attack pwws --defense ranmask --limit 50 --out runs/e
    stockade evaluate ./bert ./lstm reviews.csv --attack textfooler --defense ranmask --defense five+fact --seeds 3
    stockade evaluate --resume --out runs/e
    """
    from stockade.cli.progress import watch
    from stockade.evaluation.running import evaluate

    out = options["out"] or Path("runs") / f"evaluate-{datetime.now():%Y%m%d-%H%M%S}"
    if options["resume"] and options["out"] is None:
        raise OptionError("--resume needs the evaluation's folder: name it with --out.")
    if options["resume"] and not inputs:
        refuse_beside_resume(context)
    models, data = (list(inputs[:-1]), inputs[-1]) if len(inputs) > 1 else (list(inputs), None)
    try:
        with watch() as observer:
            found = evaluate(
                models or None,
                data,
                attacks=options["attack"],
                defenses=options["defense"],
                out=out,
                data_options=data_options(options),
                model_options=model_options(options),
                observer=observer,
                **{name: options[name] for name in _PASSED_ON},
            )
    except KeyboardInterrupt:
        click.echo(f"stockade: interrupted; go on with: stockade evaluate --resume --out {out}", err=True)
        return 130
    _print(found)
    if not any(row["made"] and row["clean"]["accuracy"]["value"] is not None for row in found.numbers["rows"]):
        raise InputError(
            f"No model has a usable answer to any of the {found.numbers['data']['size']} texts; the first: "
            f"{_first_reason(found)}"
        )
    return 0


def _first_reason(found: Evaluation) -> str:
    """Why the first part of the grid that failed did so, or the first text in the first of its runs."""
    from stockade.runs.run import Run

    for failure in found.numbers["failures"]:
        return str(failure["reason"])
    runs = (Run(path.parent) for path in sorted((found.folder / "models").rglob("manifest.json")))
    reasons = (record.reason for run in runs for record in run.records(status="error"))
    return next((reason for reason in reasons if reason), "no reason was recorded.")


def _print(found: Evaluation) -> None:
    from stockade.cli.tables import console, print_warnings
    from stockade.evaluation import tables
    from stockade.evaluation.about import about, headline, remarks

    screen, numbers = console(), found.numbers
    screen.print(about(numbers), highlight=False, soft_wrap=True)
    screen.print()
    _print_table(screen, tables.without_intervals(tables.main_table(numbers)))
    shown = [
        ("Robust accuracy by way:", tables.without_intervals(tables.way_table(numbers))),
        ("Votes:", tables.vote_table(numbers)),
    ]
    for title, table in [*shown, ("Each defense against none (McNemar):", tables.test_table(numbers))]:
        if table is not None:
            screen.print(f"\n{title}", highlight=False)
            _print_table(screen, table)
    screen.print()
    screen.print(f"95 % intervals: {found.folder / 'evaluation.md'}", highlight=False, soft_wrap=True)
    for sentence in [*headline(numbers), *remarks(numbers)]:
        screen.print(sentence, highlight=False, soft_wrap=True)
    for sentence in tables.failure_sentences(numbers):
        screen.print(f"not measured: {sentence}", highlight=False, soft_wrap=True)
    print_warnings(screen, numbers["warnings"])
    page = found.folder / "evaluation.html"
    screen.print(f"Evaluation: {found.folder}  ·  page: {page}", soft_wrap=True, highlight=False)


def _print_table(screen: Console, table: Table) -> None:
    from rich.table import Table as Grid

    grid = Grid(box=None, pad_edge=False, header_style="bold", collapse_padding=True)
    for column in table.columns:
        is_name = column in ("model", "defense", "attack")
        grid.add_column(column, justify="left" if is_name else "right", overflow="fold")
    for row in table.rows:
        grid.add_row(*row)
    screen.print(grid)
