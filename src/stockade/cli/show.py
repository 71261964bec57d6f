"""`stockade show`: examples of a run with coloured diffs, or its certificates."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

if TYPE_CHECKING:
    from stockade.core.records import Status
    from stockade.experiment.result import Result
    from stockade.report.examples import Example

_ATTACK_STATUSES = ("success", "failed", "skipped", "error", "all")
_CERTIFICATE_STATUSES = ("certified", "claimed", "abstained", "error", "all")


@click.command("show")
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--attack", help="Only this attack.")
@click.option("--method", help="Only this method, of certificates.")
@click.option(
    "--status",
    type=click.Choice(tuple(dict.fromkeys(_ATTACK_STATUSES + _CERTIFICATE_STATUSES))),
    help="Only these.  [default: success of attacks, all of certificates]",
)
@click.option("--limit", type=int, default=10, show_default=True, help="The most examples to show.")
def command(run: Path, attack: str | None, method: str | None, status: str | None, limit: int) -> None:
    """Show examples of RUN: what was changed, and what the model predicted before and after; or certificates: the
    class, how much may change, and the text; of an evaluation, texts of all its cells. Of any other job, its report in
    short.
    """
    from stockade.cli.opened import chosen_part
    from stockade.core.errors import OptionError
    from stockade.core.files import reading
    from stockade.kinds import load
    from stockade.report.document import Document, Note
    from stockade.report.examples import Examples

    if limit < 1:
        raise OptionError(f"--limit is {limit}, expected at least 1.")
    result = load(run)
    with reading(run):
        part, _ = chosen_part(result, attack, method)
        examples = _examples(result, part, status)
        if examples is None:
            result.document().brief().print()
            return
        items = list(islice(examples, limit))
    block = Examples(items=items, preview=limit) if items else Note(f"No examples with status {status or 'all'}.")
    Document(title=str(run), blocks=(block,)).print()


def _examples(result: Result, part: str | None, status: str | None) -> Iterator[Example] | None:
    """What there is to show of a result, one by one; None for results without texts of their own."""
    from stockade.cli.opened import check_status
    from stockade.workflows.attack.common import AttacksResult
    from stockade.workflows.certify.page import certificate_example
    from stockade.workflows.certify.result import CertifyResult
    from stockade.workflows.evaluate.result import EvaluateResult
    from stockade.workflows.evaluate.texts import cell_examples

    if isinstance(result, AttacksResult):
        chosen = cast("Status | None", check_status(status, _ATTACK_STATUSES, "success"))
        return map(result.example, result.records(part, chosen))
    if isinstance(result, CertifyResult):
        wanted = check_status(status, _CERTIFICATE_STATUSES, "all")
        return (certificate_example(result, certificate) for certificate in result.records(part, wanted))
    if isinstance(result, EvaluateResult) and result.grid.attacks:
        chosen = cast("Status | None", check_status(status, _ATTACK_STATUSES, "success"))
        return cell_examples(result, part, chosen)
    return None
