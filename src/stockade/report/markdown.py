"""A report as Markdown, for pull requests and wikis."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from stockade.core.text import Text
from stockade.report.numbers import COLUMNS, cells
from stockade.runs.run import Run

EXAMPLES = 10


def render_markdown(runs: Sequence[Run]) -> str:
    """Numbers, warnings and the first successes of each run."""
    return "\n".join(line for run in runs for line in _run(run)) + "\n"


def _run(run: Run) -> list[str]:
    summary = run.summary
    lines = [f"# {run.name}", "", f"Model `{summary['model']}`, data `{summary['data']}`.", ""]
    lines += [f"Note: {remark}\n" for remark in summary["remarks"]]
    lines += [f"> **Warning:** {warning}\n" for warning in summary["warnings"]]
    lines += ["| " + " | ".join(COLUMNS) + " |", "|" + " --- |" * len(COLUMNS)]
    lines += ["| " + " | ".join(cells(name, numbers)) + " |" for name, numbers in summary["attacks"].items()]
    scale = run.manifest["config"]["similarity"]
    lines += ["", f"Intervals are 95 % Wilson intervals. Similarity: {scale or 'not measured'}.", ""]
    for name in run.attacks:
        successes = list(islice(run.records(name, "success"), EXAMPLES))
        lines += [f"## {name}: examples", ""] if successes else []
        for record in successes:
            verdict = f"{record.original_prediction} → {record.adversarial_prediction}"
            lines.append(f"- {verdict}: {_diff(record.original, record.adversarial)}")
        lines += [""] if successes else []
    return lines


def _diff(original: str, adversarial: str | None) -> str:
    pieces = Text.parse(original).rewritten(adversarial or "").diff()
    parts = []
    for piece in pieces:
        if piece.kind == "same":
            parts.append(_escape(piece.after))
        else:
            parts.append(
                (f"~~{_escape(piece.before)}~~ " if piece.before else "")
                + (f"**{_escape(piece.after)}**" if piece.after else "")
            )
    return "".join(parts).replace("\n", " ")


def _escape(text: str) -> str:
    for character in "\\`*_[]<>|":
        text = text.replace(character, "\\" + character)
    return text
