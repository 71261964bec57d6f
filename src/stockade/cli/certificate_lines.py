"""What the terminal shows of one certificate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.text import Text as Line

from stockade.certificates.certificate import Certificate
from stockade.certificates.documents import statement

_STYLES = {"certified": "bold green", "claimed": "bold red", "abstained": "bold", "error": "bold yellow"}


def print_certificate(screen: Console, certificate: Certificate, method: Mapping[str, Any]) -> None:
    """The class and the radius, what that says in a sentence, and the text."""
    line = Line()
    line.append(certificate.method, style="bold").append(f" text {certificate.id}  ")
    line.append(_verdict(certificate), style=_style(certificate))
    truth = "" if certificate.label is None else f"  true class: {certificate.label}"
    line.append(f"{truth}  ({certificate.copies} copies, {certificate.words} words")
    line.append(", longer than the model reads)" if certificate.truncated else ")")
    screen.print(line, soft_wrap=True)
    screen.print(f"{statement(certificate, method)}.", highlight=False, soft_wrap=True)
    if certificate.premise is not None:
        screen.print(f"premise: {certificate.premise}", style="dim", highlight=False, soft_wrap=True)
    screen.print(certificate.text, highlight=False, soft_wrap=True)
    screen.print()


def _verdict(certificate: Certificate) -> str:
    if certificate.radius is None:
        return certificate.status
    claimed = ", claimed" if certificate.status == "claimed" else ""
    return f"{certificate.predicted}, radius {certificate.radius}{claimed}"


def _style(certificate: Certificate) -> str:
    wrong = certificate.status == "certified" and certificate.predicted != (certificate.label or certificate.predicted)
    return "bold red" if wrong else _STYLES[certificate.status]
