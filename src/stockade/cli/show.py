"""`stockade show`: examples of a run with coloured diffs, or its certificates."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.console import Console

    from stockade.certificates.run import CertificateRun
    from stockade.runs.run import Run

_OF_ATTACKS = ("success", "failed", "skipped", "error", "all")
_OF_CERTIFICATES = ("certified", "claimed", "abstained", "error", "all")


@click.command("show")
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--attack", help="Only this attack.")
@click.option("--method", help="Only this method, in a run of certificates.")
@click.option(
    "--status",
    type=click.Choice(tuple(dict.fromkeys(_OF_ATTACKS + _OF_CERTIFICATES))),
    help="Only these.  [default: success of attacks, all of certificates]",
)
@click.option("--limit", type=int, default=10, show_default=True, help="The most examples to show.")
def command(run: Path, attack: str | None, method: str | None, status: str | None, limit: int) -> None:
    """Show examples of RUN: what was changed, and what the model said before and after; or certificates: the class, how
    much may change, and the text.
    """
    from stockade.certificates.run import CertificateRun
    from stockade.cli.opened import open_run, refuse_other_kind
    from stockade.cli.tables import console
    from stockade.core.errors import OptionError

    if limit < 1:
        raise OptionError(f"--limit is {limit}, expected at least 1.")
    opened, screen = open_run(run), console()
    if isinstance(opened, CertificateRun):
        refuse_other_kind("--attack", attack, "certificates", "--method")
        _show_certificates(screen, opened, method, status, limit)
    else:
        refuse_other_kind("--method", method, "attacks", "--attack")
        _show_examples(screen, opened, attack, status, limit)


def _show_examples(screen: Console, run: Run, attack: str | None, status: str | None, limit: int) -> None:
    from typing import cast

    from rich.text import Text as Line

    from stockade.cli.opened import check_name, chosen_status
    from stockade.cli.tables import diff_line
    from stockade.core.records import Status

    check_name("attack", attack, run.attacks)
    wanted = chosen_status(status, _OF_ATTACKS, "attack", "success")
    shown = 0
    for record in islice(run.records(attack, cast(Status | None, wanted)), limit):
        before, after = record.original_prediction or "–", record.adversarial_prediction
        verdict = f"{before} → {after}" if after else f"{before}, {record.status}: {record.reason}"
        pushed = (
            f", {record.truncated_words} words pushed out of what the model reads" if record.truncated_words else ""
        )
        told = f" example {record.id}  {verdict}  ({record.queries} queries{pushed})"
        screen.print(Line.assemble((record.attack, "bold"), told))
        if record.premise is not None:
            screen.print(f"premise: {record.premise}", style="dim", highlight=False, soft_wrap=True)
        screen.print(diff_line(record), soft_wrap=True)
        screen.print()
        shown += 1
    if not shown:
        screen.print(f"No examples with status {wanted or 'all'}.")


def _show_certificates(
    screen: Console, run: CertificateRun, method: str | None, status: str | None, limit: int
) -> None:
    from stockade.cli.certificate_lines import print_certificate
    from stockade.cli.opened import check_name, chosen_status

    check_name("method", method, run.methods)
    wanted = chosen_status(status, _OF_CERTIFICATES, "certificate", "all")
    chosen = (one for one in run.iterate(method) if wanted in (None, one.status))
    shown = 0
    for certificate in islice(chosen, limit):
        print_certificate(screen, certificate, run.methods[certificate.method])
        shown += 1
    if not shown:
        screen.print(f"No certificates with status {wanted or 'all'}.")
