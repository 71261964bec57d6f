"""Runs as pages: one self-contained HTML file, Markdown or JSON; and the fragment a notebook shows."""

from stockade.report.html import render_fragment
from stockade.report.write import write_report

__all__ = ["render_fragment", "write_report"]
