"""`stockade export`: a run's rows for other tools."""

from __future__ import annotations

import sys
from pathlib import Path

import click


@click.command("export")
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--format", "format_", default="jsonl", show_default=True, metavar="jsonl|csv|parquet")
@click.option("--out", type=click.Path(path_type=Path), help="A file.  [default: standard output]")
@click.option("--attack", help="Only this attack.")
def command(run: Path, format_: str, out: Path | None, attack: str | None) -> None:
    """Write the rows of RUN as JSON lines, CSV or Parquet."""
    from stockade.core.errors import unknown_name
    from stockade.runs import export as exporting
    from stockade.runs.run import Run

    opened = Run(run)
    if attack is not None and attack not in opened.attacks:
        raise unknown_name("attack in this run", attack, opened.attacks)
    records = opened.records(attack)
    if out is None:
        exporting.export(records, format_, sys.stdout.buffer)
        return
    count = exporting.export_to(records, format_, out)
    click.echo(f"{count} rows written to {out}", err=True)
