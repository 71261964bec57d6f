"""A report of certificates as Markdown, for pull requests and wikis."""

from __future__ import annotations

from collections.abc import Sequence

from stockade.certificates.pages.headline import headline
from stockade.certificates.pages.shown import ShownCertificate, shown_certificates
from stockade.certificates.pages.tables import COLUMNS, all_methods, number_rows, radius_rows, shown_radii
from stockade.certificates.run import CertificateRun

TEXTS = 10


def render_markdown(runs: Sequence[CertificateRun]) -> str:
    """Numbers of all runs, then for each what it says and its first texts."""
    methods = all_methods(runs)
    radii = [f"d ≥ {radius}" for radius in shown_radii(methods)]
    lines = [f"# Certificates: {', '.join(run.name for run in runs)}"]
    for run in runs:
        summary = run.summary
        lines += ["", f"{run.name}: model `{summary['model']}`, data `{summary['data']}`, {summary['examples']} texts"]
        lines[-1] += "." if summary["complete"] else "; **not complete**."
        lines += ["", *(f"- {_escape(sentence)}" for sentence in headline(run))]
    lines += ["", *_table(COLUMNS, number_rows(methods))]
    lines += ["", "Accuracy with 95 % Wilson intervals; an abstention is not right.", ""]
    lines += _table(("certified", *radii), radius_rows(methods))
    lines += ["", "With the band that holds at all radii at once but for a chance of 5 %."]
    for run in runs:
        for key in run.methods:
            found, left_out = shown_certificates(run, key, TEXTS)
            lines += ["", f"## {_escape(f'{run.name}: {key}' if len(runs) > 1 else key)}", ""]
            lines += [_text(one) for one in found]
            lines += [f"- … and {left_out:,} more texts"] if left_out else []
    return "\n".join(lines) + "\n"


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    shown = [columns, *rows]
    lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in shown]
    return [lines[0], "|" + " --- |" * len(columns), *lines[1:]]


def _text(one: ShownCertificate) -> str:
    words = " ".join(word.text for word in one.words) + (" …" if one.more_words else "")
    label = one.certificate.label
    truth = "" if label is None else f" True class: {_escape(label)}."
    return f"- {_escape(one.statement)}.{truth} Text: {_escape(words)}"


def _escape(text: str) -> str:
    for character in "\\`*_[]<>|":
        text = text.replace(character, "\\" + character)
    return text
