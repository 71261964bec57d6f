"""`stockade report`: results as one page."""

from __future__ import annotations

from pathlib import Path

import click

from stockade.cli.screen import say


@click.command("report")
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--format", "format_", type=click.Choice(["html", "md", "json"]), default="html", show_default=True)
@click.option(
    "--out", type=click.Path(path_type=Path), help="A file.  [default: report.FORMAT in the first run's folder]"
)
def command(runs: tuple[Path, ...], format_: str, out: Path | None) -> None:
    """Write a report of RUNS: findings, numbers, plots, texts, manifest. Several attacks, or several certifications,
    go on one page.
    """
    from stockade.cli.opened import document_of
    from stockade.core.files import reading
    from stockade.kinds import load

    results = [load(folder) for folder in runs]
    target = out or results[0].folder / f"report.{format_}"
    with reading(results[0].folder):
        document_of(results).write(target, format_)
    say(str(target))
