"""`stockade demo`: the main job on what comes with the installation, in under two minutes on two cores."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from stockade.certificates.run import CertificateRun
    from stockade.runs.run import Run

VICTIMS = ("sentiment-cnn", "sentiment-lstm", "sentiment-bert")
ATTACKS = ("deepwordbug@textattack", "pwws")
SECONDS_PER_ATTACK = 30.0
HARDENED = "sentiment-cnn"
DEFENSE = "ranmask:rate=0.7,copies=50"
TRAINING: dict[str, Any] = {"epochs": 2, "learning_rate": 5e-4, "schedule": "linear"}
"""Two epochs more on masked texts: enough to read them, done in seconds."""


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
    """Attack the three built-in victims, harden one of them, attack it again, certify it, and write reports. Nothing to
    prepare, nothing to download.
    """
    from stockade.cli.certificates import certificate_table, print_threats
    from stockade.cli.tables import console, diff_line, print_warnings, summary_table
    from stockade.report import write_report

    screen = console()
    folder = _fresh(out)
    screen.print(
        f"Attacking {len(VICTIMS)} sentiment classifiers on {limit} movie-review sentences with "
        f"{' and '.join(ATTACKS)}. Everything comes with the installation.\n"
    )
    runs = [_attacked(f"builtin:{victim}", folder / victim, limit, seed) for victim in VICTIMS]
    screen.print(summary_table([(run.name, run) for run in runs], screen.width))
    for run in runs:
        print_warnings(screen, run.summary["warnings"])
    example = next((record for run in reversed(runs) for record in run.records("pwws", "success")), None)
    if example is not None:
        screen.print(f"\nFor example, {example.original_prediction} becomes {example.adversarial_prediction}:")
        screen.print(diff_line(example), soft_wrap=True)
    screen.print(
        f"\nHardening {HARDENED} with {DEFENSE}: two more epochs with words hidden at random, and answers that are the "
        "mean over many masked copies. The same texts and attacks again:\n"
    )
    before, after = runs[VICTIMS.index(HARDENED)], _hardened(folder, limit, seed)
    screen.print(summary_table([("before", before), ("after", after)], screen.width))
    print_warnings(screen, after.summary["warnings"])
    runs.append(after)
    report = write_report(runs, folder / "report.html")
    screen.print(
        "\nAttacks that fail prove nothing. What can be proved: on how many texts no change at all of d words, found "
        "by whatever attack, changes the class that most masked copies vote for:\n"
    )
    proved = _certified(folder, limit, seed)
    screen.print(certificate_table([proved]))
    print_threats(screen, proved)
    screen.print(f"\nReport: {report}\nCertificates: {proved.folder / 'report.html'}\n", soft_wrap=True)
    screen.print("Try next:", style="bold")
    for line in (
        f"stockade show {runs[len(VICTIMS) - 1].folder}",
        "stockade attack builtin:sentiment-bert YOUR.csv --attack pwws --limit 50",
        "stockade attack YOUR-MODEL-FOLDER YOUR.csv --attack deepwordbug --attack pwws --out runs/mine",
        f"stockade evaluate {folder / 'models' / HARDENED} builtin:reviews --attack textfooler --limit 40",
        f"stockade verify {proved.folder}",
        "stockade ls attacks",
        "stockade ls defenses",
    ):
        screen.print(f"  {line}", soft_wrap=True, highlight=False)


def _attacked(model: str, folder: Path, limit: int, seed: int) -> Run:
    from stockade import api
    from stockade.cli.progress import watch
    from stockade.report import write_report

    with watch(f"{folder.name}: ") as observer:
        run = api.attack(
            model,
            "builtin:reviews",
            *ATTACKS,
            limit=limit,
            seed=seed,
            seconds=SECONDS_PER_ATTACK,
            out=folder,
            observer=observer,
        )
    write_report([run], run.folder / "report.html")
    return run


def _hardened(folder: Path, limit: int, seed: int) -> Run:
    """The victim trained on with the defense, and attacked inside it."""
    from stockade import api
    from stockade.cli.progress import watch_training

    model = folder / "models" / HARDENED
    with watch_training() as observer:
        api.train(
            "builtin:reviews:train",
            model=f"builtin:{HARDENED}",
            validation="builtin:reviews:validation",
            defenses=[DEFENSE],
            out=model,
            seed=seed,
            observer=observer,
            **TRAINING,
        )
    return _attacked(str(model), folder / f"{HARDENED}-hardened", limit, seed)


def _certified(folder: Path, limit: int, seed: int) -> CertificateRun:
    """What can be proved of the hardened victim, on the same texts."""
    from stockade.certificates.pages.report import write_certificate_report
    from stockade.certificates.running import certify
    from stockade.cli.progress import watch

    model = str(folder / "models" / HARDENED)
    with watch(f"{HARDENED}, certified: ") as observer:
        run = certify(
            model, "builtin:reviews", limit=limit, seed=seed, out=folder / f"{HARDENED}-certified", observer=observer
        )
    write_certificate_report([run], run.folder / "report.html")
    return run


def _fresh(out: Path) -> Path:
    """The folder itself if it is new, else the first free number behind it: a demo never overwrites an earlier one."""
    candidate, number = out, 1
    while candidate.exists() and any(candidate.iterdir() if candidate.is_dir() else [candidate]):
        number += 1
        candidate = out.with_name(f"{out.name}-{number}")
    return candidate
