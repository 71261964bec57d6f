"""`stockade export`: a run's rows for other tools."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from stockade.runs.export import Layout, Row


@click.command("export")
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--format", "format_", default="jsonl", show_default=True, metavar="jsonl|csv|parquet")
@click.option("--out", type=click.Path(path_type=Path), help="A file.  [default: standard output]")
@click.option("--attack", help="Only this attack.")
@click.option("--method", help="Only this method, in a run of certificates.")
def command(run: Path, format_: str, out: Path | None, attack: str | None, method: str | None) -> None:
    """Write the rows of RUN as JSON lines, CSV or Parquet."""
    from stockade.runs.export import export, export_to

    rows, layout = _rows(run, attack, method)
    if out is None:
        export(rows, format_, sys.stdout.buffer, layout)
        return
    count = export_to(rows, format_, out, layout)
    click.echo(f"{count} rows written to {out}", err=True)


def _rows(folder: Path, attack: str | None, method: str | None) -> tuple[Iterable[Row], Layout]:
    from stockade.certificates.export import DOCUMENTS
    from stockade.certificates.run import CertificateRun
    from stockade.cli.opened import check_name, open_run, refuse_other_kind
    from stockade.runs.export import RECORDS, as_row

    run = open_run(folder)
    if isinstance(run, CertificateRun):
        refuse_other_kind("--attack", attack, "certificates", "--method")
        check_name("method", method, run.methods)
        return run.documents(method), DOCUMENTS
    refuse_other_kind("--method", method, "attacks", "--attack")
    check_name("attack", attack, run.attacks)
    return (as_row(record) for record in run.records(attack)), RECORDS
