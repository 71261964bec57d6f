"""`stockade demo`: the main job on what comes with the installation, in under two minutes on two cores."""

from __future__ import annotations

from pathlib import Path

import click

VICTIMS = ("sentiment-cnn", "sentiment-lstm", "sentiment-bert")
ATTACKS = ("deepwordbug@textattack", "pwws")
SECONDS_PER_ATTACK = 30.0


@click.command("demo")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("runs/demo"),
    show_default=True,
    help="Where to put the runs.",
)
@click.option("--limit", type=int, default=40, show_default=True, help="Texts per victim.")
@click.option("--seed", type=int, default=0, show_default=True)
def command(out: Path, limit: int, seed: int) -> None:
    """Attack the three built-in victims and write a report. Nothing to prepare, nothing to download."""
    from stockade import api
    from stockade.cli.progress import watch
    from stockade.cli.tables import console, diff_line, print_warnings, summary_table
    from stockade.report import write_report

    screen = console()
    folder = _fresh(out)
    screen.print(
        f"Attacking {len(VICTIMS)} sentiment classifiers on {limit} movie-review sentences with "
        f"{' and '.join(ATTACKS)}. Everything comes with the installation.\n"
    )
    runs = []
    for victim in VICTIMS:
        with watch(f"{victim}: ") as observer:
            run = api.attack(
                f"builtin:{victim}",
                "builtin:reviews",
                *ATTACKS,
                limit=limit,
                seed=seed,
                seconds=SECONDS_PER_ATTACK,
                out=folder / victim,
                observer=observer,
            )
        runs.append(run)
        write_report([run], run.folder / "report.html")
    screen.print(summary_table([(run.name, run) for run in runs], screen.width))
    for run in runs:
        print_warnings(screen, run)
    example = next((record for run in reversed(runs) for record in run.records("pwws", "success")), None)
    if example is not None:
        screen.print(f"\nFor example, {example.original_prediction} becomes {example.adversarial_prediction}:")
        screen.print(diff_line(example), soft_wrap=True)
    report = write_report(runs, folder / "report.html")
    screen.print(f"\nReport: {report}\n")
    screen.print("Try next:", style="bold")
    for line in (
        f"stockade show {runs[-1].folder}",
        "stockade attack builtin:sentiment-bert YOUR.csv --attack pwws --limit 50",
        "stockade attack YOUR-MODEL-FOLDER YOUR.csv --attack deepwordbug --attack pwws --out runs/mine",
        "stockade ls attacks",
    ):
        screen.print(f"  {line}", soft_wrap=True, highlight=False)


def _fresh(out: Path) -> Path:
    """The folder itself if it is new, else the first free number behind it: a demo never overwrites an earlier one."""
    candidate, number = out, 1
    while candidate.exists() and any(candidate.iterdir() if candidate.is_dir() else [candidate]):
        number += 1
        candidate = out.with_name(f"{out.name}-{number}")
    return candidate
