"""Writes a report of one or more runs of certificates to a file."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

from stockade.certificates.pages.markdown import render_markdown
from stockade.certificates.pages.page import render_page
from stockade.certificates.run import CertificateRun
from stockade.report.write import write_rendered


def render_json(runs: Sequence[CertificateRun]) -> str:
    """The summaries of the runs, as `summary.json` holds them."""
    return json.dumps([run.summary for run in runs], indent=2) + "\n"


RENDERERS: dict[str, Callable[[Sequence[CertificateRun]], str]] = {
    "html": render_page,
    "md": render_markdown,
    "json": render_json,
}


def write_certificate_report(runs: Sequence[CertificateRun], path: str | Path, format: str = "html") -> Path:
    """Write the report and return its path."""
    return write_rendered(runs, RENDERERS, path, format)
