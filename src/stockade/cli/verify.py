"""`stockade verify`: ask the model again about every recorded success."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("verify")
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--model", help="Where the model is now.  [default: where the run found it]")
@click.option("--labels", help="Class names in the order of the model's outputs, separated by commas.")
@click.option("--outputs", type=click.Choice(["probabilities", "logits"]), default="probabilities")
@click.option("--allow-pickle", is_flag=True)
@click.option("--trust-remote-code", is_flag=True)
def command(
    run: Path, model: str | None, labels: str | None, outputs: str, allow_pickle: bool, trust_remote_code: bool
) -> int:
    """Check RUN: re-score every success alone, compare it with the record, and the summary with the rows. Exit code 1
    if not.
    """
    from stockade.jobs import ModelOptions
    from stockade.models.language import LanguageModels
    from stockade.runs.run import Run
    from stockade.runs.verify import verify

    opened = Run(run)
    names = [name.strip() for name in labels.split(",")] if labels else list(opened.labels)
    config = opened.manifest["config"]
    defenses = config["model_options"].get("defenses", ())
    options = ModelOptions(names, outputs, None, allow_pickle, trust_remote_code, defenses)
    language = LanguageModels(config["mlm"], config["encoder"])
    victim = options.load(model or opened.manifest["model"]["reference"], seed=config["seed"], language=language)
    result = verify(opened, victim)
    for problem in result.problems:
        click.echo(problem)
    verdict = "all hold" if result.holds else f"{len(result.problems)} problems"
    click.echo(f"{result.checked} successes checked: {verdict}")
    return 0 if result.holds else 1
