"""Run folders that a command is given: attacks or certificates, as their manifests say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stockade.core.errors import OptionError, RunError, unknown_name

if TYPE_CHECKING:
    from stockade.certificates.run import CertificateRun
    from stockade.runs.run import Run


_NO_RUNS = {
    "plan.json": ("an evaluation or a study", ("evaluation.html", "study.html")),
    "tune.json": ("a search of options", ("tune.html",)),
}
"""Folders of ours that are no runs, by the file that tells them: what they are, and their pages."""


def open_run(folder: Path) -> Run | CertificateRun:
    """A run of either kind."""
    from stockade.certificates.run import CertificateRun
    from stockade.runs.manifest import read_manifest
    from stockade.runs.run import Run

    refuse_no_run(folder)
    if read_manifest(folder).get("command") == "certify":
        return CertificateRun(folder)
    return Run(folder)


def refuse_no_run(folder: Path) -> None:
    """Say of a folder that holds runs, or something else of ours, what it is and what to name instead."""
    if not folder.is_dir():
        raise RunError(f"{folder} is not a run folder: there is no such folder.")
    if (folder / "manifest.json").exists():
        return
    for file, (kind, pages) in _NO_RUNS.items():
        if (folder / file).exists():
            page = next((folder / name for name in pages if (folder / name).exists()), None)
            told = f" Its page is {page}." if page else ""
            inside = next((path.parent for path in sorted(folder.rglob("manifest.json"))), None)
            runs = f" Name one of the runs in it, such as {inside}." if inside else ""
            raise RunError(f"{folder} is {kind}, not a run of one attack or of certificates.{told}{runs}")


def open_alike(folders: Sequence[Path]) -> list[Run] | list[CertificateRun]:
    """Runs of one kind; both kinds together are refused."""
    from stockade.certificates.run import CertificateRun
    from stockade.runs.run import Run

    opened = [open_run(folder) for folder in folders]
    attacks = [run for run in opened if isinstance(run, Run)]
    certificates = [run for run in opened if isinstance(run, CertificateRun)]
    if attacks and certificates:
        raise OptionError(
            f"Attacks and certificates do not go on one page, because their numbers cannot be compared: "
            f"{attacks[0].folder} is an attack, {certificates[0].folder} holds certificates. Report them separately."
        )
    return attacks or certificates


def refuse_other_kind(option: str, value: str | None, holds: str, instead: str) -> None:
    """An option that is for the other kind of run."""
    if value is not None:
        raise OptionError(f"{option} {value} is not for this run, which holds {holds}: use {instead}.")


def chosen_status(status: str | None, known: Sequence[str], holds: str, default: str) -> str | None:
    """The status to show; None for all."""
    if status is not None and status not in known:
        raise OptionError(f"No {holds} has the status {status} (found: {', '.join(known)}). Choose one with --status.")
    chosen = status or default
    return None if chosen == "all" else chosen


def check_name(kind: str, name: str | None, known: Iterable[str] | Mapping[str, Any]) -> None:
    """Refuse the name of an attack or method that the run does not have."""
    names = tuple(known)
    if name is not None and name not in names:
        raise unknown_name(f"{kind} in this run", name, names)
