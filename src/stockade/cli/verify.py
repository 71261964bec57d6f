"""`stockade verify`: ask the model again about every recorded success, or compute every certificate again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from stockade.jobs import ModelOptions


@click.command("verify")
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--resample", is_flag=True, help="Certificates: ask the model again as well, with fresh copies.")
@click.option("--model", help="Where the model is now.  [default: where the run found it]")
@click.option("--labels", help="Class names in the order of the model's outputs, separated by commas.")
@click.option("--outputs", type=click.Choice(["probabilities", "logits"]), default="probabilities")
@click.option("--allow-pickle", is_flag=True)
@click.option("--trust-remote-code", is_flag=True)
def command(run: Path, resample: bool, model: str | None, **options: Any) -> int:
    """Check RUN. Exit code 1 if something does not hold.

    Of an attack: re-score every success alone, compare it with the record, and the summary with the rows. Of
    certificates: compute every radius again from what was counted, without the model; with --resample ask the model
    about fresh copies too.
    """
    from stockade.cli.opened import refuse_no_run
    from stockade.core.errors import OptionError
    from stockade.runs.manifest import read_manifest

    refuse_no_run(run)
    if read_manifest(run).get("command") == "certify":
        return _certificates(run, resample, model, options)
    if resample:
        raise OptionError("--resample is for certificates; this run is an attack, and verify always asks its model.")
    return _attacks(run, model, options)


def _attacks(folder: Path, model: str | None, options: dict[str, Any]) -> int:
    from stockade.models.language import LanguageModels
    from stockade.runs.run import Run
    from stockade.runs.verify import verify

    run = Run(folder)
    config = run.manifest["config"]
    language = LanguageModels(config["mlm"], config["encoder"])
    loading = _model_options(run.labels, config, options)
    victim = loading.load(model or run.manifest["model"]["reference"], seed=config["seed"], language=language)
    result = verify(run, victim)
    return _told(f"{result.checked} successes checked", result.problems)


def _certificates(folder: Path, resample: bool, model: str | None, options: dict[str, Any]) -> int:
    from stockade.certificates.run import CertificateRun
    from stockade.certificates.verify import recompute

    run = CertificateRun(folder)
    result = recompute(run)
    code = _told(f"{result.checked} certificates computed again", result.problems)
    if not resample:
        return code
    from stockade.certificates.resample import load_again
    from stockade.certificates.resample import resample as draw_again

    again = draw_again(run, load_again(run, model, _model_options(run.labels, run.manifest["config"], options)))
    for problem in again.refuted:
        click.echo(problem)
    click.echo(
        f"{again.checked} certificates put to the model again with fresh copies: {len(again.refuted)} refuted; by "
        f"their alpha {again.allowed:.3g} may be wrong in the mean"
    )
    return code if again.holds else 1


def _model_options(labels: tuple[str, ...], config: dict[str, Any], options: dict[str, Any]) -> ModelOptions:
    from stockade.jobs import ModelOptions

    named = [name.strip() for name in options["labels"].split(",")] if options["labels"] else list(labels)
    defenses = config["model_options"].get("defenses", ())
    trusted = options["allow_pickle"], options["trust_remote_code"]
    return ModelOptions(named, options["outputs"], None, *trusted, defenses)


def _told(what: str, problems: tuple[str, ...]) -> int:
    for problem in problems:
        click.echo(problem)
    click.echo(f"{what}: {f'{len(problems)} problems' if problems else 'all hold'}")
    return 1 if problems else 0
