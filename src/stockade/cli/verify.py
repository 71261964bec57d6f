"""`stockade verify`: check that a result holds."""

from __future__ import annotations

from pathlib import Path

import click

from stockade.cli.screen import say


@click.command("verify")
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--resample", is_flag=True, help="Certificates: ask the model as well, about fresh random copies.")
@click.option("--model", help="Where the model is now.  [default: where the job found it]")
@click.option(
    "--trust-run", is_flag=True, help="Run code that the folder names (a python: model). Only if you trust it."
)
def command(run: Path, resample: bool, model: str | None, trust_run: bool) -> int:
    """Check RUN. Exit code 0 if everything holds, 1 if something does not, 3 if results are missing.

    Of every job: that no text, label or row is missing, exchanged or changed, and that the summary follows from the
    rows. Of an attack: re-score every success alone, and every clean text, and compare them with the record. Of
    certificates: compute every radius again from its evidence, without the model; with --resample ask the model about
    fresh copies too. Of any other job: its parts, and that its numbers follow from them.
    """
    from stockade.core.errors import OptionError
    from stockade.core.files import reading
    from stockade.core.trust import only_vouched
    from stockade.kinds import load
    from stockade.models.ensemble_reference import single_models
    from stockade.workflows.certify.result import CertifyResult

    result = load(run)
    with reading(run), only_vouched(run, [] if model is None else single_models(model), trust=trust_run):
        if isinstance(result, CertifyResult):
            verification = result.verify(model, trust=trust_run, resample=resample)
        elif resample:
            raise OptionError("--resample is for certificates; verify always asks the model of an attack.")
        else:
            verification = result.verify(model, trust=trust_run)
    say(*verification.problems, *verification.incomplete, verification.sentence)
    return verification.exit_code
