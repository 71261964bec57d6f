"""`stockade show`: examples of a run with coloured diffs."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("show")
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--attack", help="Only this attack.")
@click.option(
    "--status",
    type=click.Choice(["success", "failed", "skipped", "error", "all"]),
    default="success",
    show_default=True,
)
@click.option("--limit", type=int, default=10, show_default=True, help="The most examples to show.")
def command(run: Path, attack: str | None, status: str, limit: int) -> None:
    """Show examples of RUN: what was changed, and what the model said before and after."""
    from itertools import islice
    from typing import cast

    from stockade.cli.tables import console, diff_line
    from stockade.core.errors import unknown_name
    from stockade.core.records import Status
    from stockade.runs.run import Run

    opened = Run(run)
    if attack is not None and attack not in opened.attacks:
        raise unknown_name("attack in this run", attack, opened.attacks)
    screen = console()
    chosen = opened.records(attack, None if status == "all" else cast(Status, status))
    shown = 0
    for record in islice(chosen, limit):
        before, after = record.original_prediction or "–", record.adversarial_prediction
        verdict = f"{before} → {after}" if after else f"{before}, {record.status}: {record.reason}"
        pushed = f", {record.pushed_out} words pushed out of what the model reads" if record.pushed_out else ""
        screen.print(
            f"[bold]{record.attack}[/] example {record.id}  {verdict}  ({record.queries} queries{pushed})",
            highlight=False,
        )
        if record.premise is not None:
            screen.print(f"premise: {record.premise}", style="dim", markup=False, highlight=False, soft_wrap=True)
        screen.print(diff_line(record), soft_wrap=True)
        screen.print()
        shown += 1
    if not shown:
        screen.print(f"No examples with status {status}.")
