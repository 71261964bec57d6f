"""`stockade demo`: the main job on what comes with the installation, in about two minutes on two cores."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stockade.cli.screen import say

if TYPE_CHECKING:
    from stockade.workflows.attack.result import AttackResult
    from stockade.workflows.certify.result import CertifyResult

VICTIMS = ("sentiment-cnn", "sentiment-lstm", "sentiment-bert")
ATTACKS = ("deepwordbug@textattack", "pwws")
SECONDS_PER_ATTACK = 300.0
"""Ten times what the slowest needs on two idle cores: for a machine that is busy, not a budget."""
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
    from stockade.report.document import Document, Heading, Note, Paragraph
    from stockade.report.examples import Examples, record_example
    from stockade.report.render_terminal import standard_output
    from stockade.workflows.attack.page import attack_document
    from stockade.workflows.attack.tables import summary_table
    from stockade.workflows.certify.page import all_methods, radius_table

    screen, folder = standard_output(), _fresh(out)
    screen.print(
        f"Attacking {len(VICTIMS)} sentiment classifiers on {limit} movie-review sentences with "
        f"{' and '.join(ATTACKS)}. Everything comes with the installation.\n"
    )
    runs = [_attack(f"builtin:{victim}", folder / victim, limit, seed) for victim in VICTIMS]
    record = next((record for run in reversed(runs) for record in run.records("pwws", "success")), None)
    examples = () if record is None else (Heading("For example"), Examples(items=[record_example(record)]))
    warnings = [Note(warning, kind="warning") for run in runs for warning in run.summary["warnings"]]
    Document(title="Before", blocks=(summary_table(runs), *warnings, *examples)).to_terminal(screen)

    screen.print(
        f"\nHardening {HARDENED} with {DEFENSE}: two more epochs with words hidden at random, and answers that are the "
        "mean over many masked copies. The same texts and attacks again:\n"
    )
    before, after = runs[VICTIMS.index(HARDENED)], _harden(folder, limit, seed)
    warnings = [Note(warning, kind="warning") for warning in after.summary["warnings"]]
    table = summary_table([before, after], ["before", "after"])
    Document(title="After", blocks=(table, *warnings)).to_terminal(screen)
    runs.append(after)
    report = attack_document(runs).write(folder / "report.html")

    screen.print(
        "\nAttacks that fail prove nothing. What can be proved: on how many texts no change at all of d words, found "
        "by whatever attack, changes the class that most masked copies vote for:\n"
    )
    proved = _certify(folder, limit, seed)
    sentences = [block for block in proved.document().blocks if isinstance(block, Note) and block.kind == "finding"]
    Document(title="Proved", blocks=(radius_table(all_methods([proved])), *sentences)).to_terminal(screen)
    commands = (
        f"stockade show {runs[len(VICTIMS) - 1].folder}",
        "stockade attack builtin:sentiment-bert YOUR.csv --attack pwws --limit 50",
        "stockade attack YOUR-MODEL-FOLDER YOUR.csv --attack pwws --max-changed 0.2 --out runs/mine",
        f"stockade evaluate {folder / 'models' / HARDENED} builtin:reviews --attack textfooler --limit 40",
        f"stockade verify {proved.folder}",
        "stockade ls attacks",
        "stockade ls defenses",
    )
    say("", f"Report: {report}", f"Certificates: {proved.folder / 'report.html'}", "")
    Document(title="Try next", blocks=tuple(Paragraph(f"  {line}") for line in commands)).to_terminal(screen)


def _attack(model: str, folder: Path, limit: int, seed: int) -> AttackResult:
    from stockade.cli.progress import watch
    from stockade.experiment.progress import within
    from stockade.workflows.attack import attack

    with watch() as observer:
        result: AttackResult = attack(
            model,
            "builtin:reviews",
            ATTACKS,
            limit=limit,
            seed=seed,
            seconds=SECONDS_PER_ATTACK,
            out=folder,
            observer=within(folder.name, observer),
        )
    result.document().write(folder / "report.html")
    return result


def _harden(folder: Path, limit: int, seed: int) -> AttackResult:
    """The victim trained on with the defense, and attacked inside it."""
    import stockade as st
    from stockade.cli.progress import watch

    model = folder / "models" / HARDENED
    with watch() as observer:
        st.train(
            "builtin:reviews:train",
            model=f"builtin:{HARDENED}",
            validation="builtin:reviews:validation",
            defenses=[DEFENSE],
            out=model,
            seed=seed,
            observer=observer,
            **TRAINING,
        )
    return _attack(str(model), folder / f"{HARDENED}-hardened", limit, seed)


def _certify(folder: Path, limit: int, seed: int) -> CertifyResult:
    """What can be proved of the hardened victim, on the same texts."""
    from stockade.cli.progress import watch
    from stockade.experiment.progress import within
    from stockade.workflows.certify import certify

    model, out = str(folder / "models" / HARDENED), folder / f"{HARDENED}-certified"
    with watch() as observer:
        result = certify(
            model, "builtin:reviews", limit=limit, seed=seed, out=out, observer=within("certificates", observer)
        )
    result.document().write(out / "report.html")
    return result


def _fresh(out: Path) -> Path:
    """The folder itself if it is new, else the first free number behind it: a demo never overwrites an earlier one."""
    candidate, number = out, 1
    while candidate.exists() and any(candidate.iterdir() if candidate.is_dir() else [candidate]):
        number += 1
        candidate = out.with_name(f"{out.name}-{number}")
    return candidate
