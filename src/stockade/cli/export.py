"""`stockade export`: the rows of a result for other tools."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from stockade.cli.screen import for_screen, say


@click.command("export")
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--format", "format_", default="jsonl", show_default=True, metavar="jsonl|csv|parquet")
@click.option("--out", type=click.Path(path_type=Path), help="A file.  [default: standard output]")
@click.option("--attack", help="Only this attack.")
@click.option("--method", help="Only this method, of certificates.")
@click.option("--cells", is_flag=True, help="Of an evaluation: every text of every cell, not the worst case of each.")
@click.option("--premade", is_flag=True, help="Of an evaluation: accuracy and F1 on clean and pre-made texts.")
@click.option(
    "--keep-failed",
    is_flag=True,
    help="Of an attack: a set for evaluate --premade that keeps the texts the attack failed on, as it left them.",
)
def command(
    run: Path,
    format_: str,
    out: Path | None,
    attack: str | None,
    method: str | None,
    cells: bool,
    premade: bool,
    keep_failed: bool,
) -> None:
    """Write the rows of RUN as JSON lines, CSV or Parquet."""
    from stockade.cli.opened import chosen_part, exported
    from stockade.core.files import reading
    from stockade.experiment.export import export, export_to
    from stockade.kinds import load

    result = load(run)
    with reading(run):
        part, column = chosen_part(result, attack, method)
        all_rows, layout = exported(result, cells, part, premade=premade, keep_failed=keep_failed)
        rows = (row for row in all_rows if part is None or row[column] == part)
        if out is None:
            export(for_screen(rows, format_), format_, sys.stdout.buffer, layout)
            return
        count = export_to(rows, format_, out, layout)
    say(f"{count} rows written to {out}", err=True)
