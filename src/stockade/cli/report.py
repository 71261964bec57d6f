"""`stockade report`: runs as one page."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("report")
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--format", "format_", type=click.Choice(["html", "md", "json"]), default="html", show_default=True)
@click.option(
    "--out", type=click.Path(path_type=Path), help="A file.  [default: report.FORMAT in the first run's folder]"
)
def command(runs: tuple[Path, ...], format_: str, out: Path | None) -> None:
    """Write a page of one or more RUNS, of attacks or of certificates: numbers, plot, every text, manifest."""
    from stockade.certificates.pages.report import write_certificate_report
    from stockade.certificates.run import CertificateRun
    from stockade.cli.opened import open_alike
    from stockade.report import write_report

    opened = open_alike(runs)
    target = out or opened[0].folder / f"report.{format_}"
    if isinstance(opened[0], CertificateRun):
        write_certificate_report(opened, target, format_)
    else:
        write_report(opened, target, format_)
    click.echo(str(target))
