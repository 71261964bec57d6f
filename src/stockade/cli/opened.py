"""What the commands that read folders share: which part of a result is meant, and several results on one page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from stockade.core.errors import OptionError, unknown_name

if TYPE_CHECKING:
    from stockade.experiment.export import Layout
    from stockade.experiment.result import Result
    from stockade.report.document import Document


def chosen_part(result: Result, attack: str | None, method: str | None) -> tuple[str | None, str]:
    """The attack or method that was named, and the column of an export that holds it; None for all."""
    from stockade.workflows.attack.common import AttacksResult
    from stockade.workflows.certify.result import CertifyResult
    from stockade.workflows.evaluate.result import EvaluateResult

    if method is not None and not isinstance(result, CertifyResult):
        raise OptionError(f"--method {method} is not for {result.folder}, which holds no certificates: leave it out.")
    if attack is not None and not isinstance(result, AttacksResult | EvaluateResult):
        raise OptionError(f"--attack {attack} is not for {result.folder}, which is not an attack: leave it out.")
    if isinstance(result, EvaluateResult):
        return check_name("attack", attack, result.grid.attacks), "attack"
    if isinstance(result, AttacksResult):
        return check_name("attack", attack, result.attacks), "attack"
    if isinstance(result, CertifyResult):
        return check_name("method", method, tuple(result.methods)), "method"
    return None, ""


def exported(
    result: Result, cells: bool, attack: str | None, *, premade: bool = False, keep_failed: bool = False
) -> tuple[Iterator[Mapping[str, Any]], Layout]:
    """The rows of a result and their columns.

    Parameters
    ----------
    result
        The result.
    cells
        Whether every text of every cell of an evaluation is meant.
    attack
        The attack that was named; the worst case over all attacks of an evaluation has none.
    premade
        Whether accuracy and F1 of an evaluation on clean and pre-made texts are meant.
    keep_failed
        Whether a pre-made set is meant that keeps the texts on which attacks failed.
    """
    from stockade.workflows.attack.premade import premade_layout, premade_rows
    from stockade.workflows.attack.result import AttackResult
    from stockade.workflows.evaluate.class_table import CLASS_LAYOUT
    from stockade.workflows.evaluate.result import EvaluateResult
    from stockade.workflows.evaluate.texts import CELL_LAYOUT

    if keep_failed and not isinstance(result, AttackResult) and not (isinstance(result, EvaluateResult) and cells):
        raise OptionError(
            f"--keep-failed makes a pre-made set of attacked texts, and {result.folder} has none: give the folder of "
            "an attack on a classifier, or of an evaluation with --cells."
        )
    if not isinstance(result, EvaluateResult):
        for wanted, option in ((cells, "--cells"), (premade, "--premade")):
            if wanted:
                raise OptionError(f"{option} is not for {result.folder}, which is not an evaluation: leave it out.")
        if keep_failed:
            return premade_rows(result.rows(), keep_failed=True), premade_layout(result.layout)
        return iter(result.rows()), result.layout
    if premade:
        if cells or attack is not None:
            raise OptionError("--premade is about clean and pre-made texts alone: leave out --cells and --attack.")
        return result.class_rows(), CLASS_LAYOUT
    if cells and keep_failed:
        return premade_rows(result.cell_rows(), keep_failed=True), premade_layout(CELL_LAYOUT)
    if cells:
        return result.cell_rows(), CELL_LAYOUT
    if not result.grid.attacks:
        raise OptionError(
            f"{result.folder} has no attack, so no text has a worst case: add --premade to export accuracy and F1 on "
            "clean and pre-made texts."
        )
    if attack is not None:
        raise OptionError(f"The worst case is over all attacks: add --cells to export the texts of {attack} alone.")
    return result.rows(), result.layout


def check_name(kind: str, name: str | None, names: Sequence[str]) -> str | None:
    """The name; one that the result does not have is refused."""
    if name is not None and name not in names:
        raise unknown_name(f"{kind} in this run", name, names)
    return name


def check_status(status: str | None, statuses: Sequence[str], default: str) -> str | None:
    """The status to show; None for all."""
    if status is not None and status not in statuses:
        raise OptionError(
            f"Nothing in this run has the status {status} (found: {', '.join(statuses)}). Choose one with --status."
        )
    chosen = status or default
    return None if chosen == "all" else chosen


def document_of(results: Sequence[Result]) -> Document:
    """One report of one or more results; attacks go together, those on translators and certifications too."""
    from stockade.workflows.attack.page import attack_document
    from stockade.workflows.attack.result import AttackResult
    from stockade.workflows.certify.page import certify_document
    from stockade.workflows.certify.result import CertifyResult
    from stockade.workflows.translation.page import translation_document
    from stockade.workflows.translation.result import TranslationResult

    if len(results) == 1:
        return results[0].document()
    attacks = [result for result in results if isinstance(result, AttackResult)]
    certifications = [result for result in results if isinstance(result, CertifyResult)]
    if len(attacks) == len(results):
        return attack_document(attacks)
    translations = [result for result in results if isinstance(result, TranslationResult)]
    if len(translations) == len(results):
        return translation_document(translations)
    if len(certifications) == len(results):
        return certify_document(certifications)
    kinds = ", ".join(f"{result.folder} ({result.kind})" for result in results)
    raise OptionError(f"Only several attacks, or several certifications, go on one page (found: {kinds}).")
