"""A document as Markdown: tables, sentences and a few examples; plots are left out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape
from urllib.parse import quote

from stockade.core.sanitize import markdown, terminal
from stockade.core.text import Piece
from stockade.report.document import (
    Block,
    Bullets,
    Cell,
    Details,
    Document,
    Heading,
    Note,
    Paragraph,
    Plot,
    Prose,
    Table,
    spans,
    without_empty_sections,
)
from stockade.report.examples import Example, Examples, Marked, Words
from stockade.report.heat_map import HeatMap

_MARKS, _APART = ("*", "~"), "<!-- -->"
_BEFORE = {"warning": "> **Warning:** ", "finding": "- ", "info": "", "aside": ""}


def render_markdown(document: Document) -> str:
    """The document for pull requests and wikis.

    Parameters
    ----------
    document
        What to render.
    """
    parts = [f"# {markdown(document.title)}", _prose(document.about), *_blocks(document.blocks)]
    lines = ""
    for part in filter(None, parts):
        # Findings one below the other make one list.
        blank = "\n" if part.startswith("- ") and lines.rpartition("\n\n")[2].startswith("- ") else "\n\n"
        lines += (blank if lines else "") + part
    return lines + "\n"


def _blocks(blocks: Sequence[Block]) -> Iterator[str]:
    for block in without_empty_sections([block for block in blocks if not isinstance(block, Plot)]):
        yield from _block(block)


def _block(block: Block) -> Iterator[str]:
    match block:
        case Heading():
            aside = f" ({markdown(block.aside)})" if block.aside else ""
            yield f"{'#' * block.level} {markdown(block.text)}{aside}"
        case Paragraph():
            yield _prose(block.text)
        case Note():
            yield _BEFORE[block.kind] + _prose(block.text)
        case Bullets():
            yield "\n".join(f"- {_prose(item)}" for item in block.items)
        case Table():
            shown = block.previewed()
            yield f"**{markdown(shown.title)}**" if shown.title else ""
            yield _table(shown)
            yield _prose(shown.caption)
        case HeatMap():
            yield f"**{markdown(block.title)}**" if block.title else ""
            yield _table(_heat_table(block))
            yield _prose(block.caption)
        case Words():
            yield f"**{markdown(block.title)}**" if block.title else ""
            yield "\n".join(f"- {markdown(name)}: {_marked(words)}" for name, words in block.rows)
        case Examples():
            yield "\n".join(f"- {_example(item)}" for item in block.previewed())
            yield markdown(block.more)
        case Details():
            yield from _details(block)


def _details(block: Details) -> Iterator[str]:
    summary = escape(" ".join(terminal(block.summary).split()))  # a line of HTML, where Markdown's escapes mean nothing
    yield f"<details{' open' if block.unfolded else ''}><summary>{summary}</summary>"
    if isinstance(block.content, str):
        fence = "`" * max(3, 1 + _longest_run(block.content))
        yield f"{fence}\n{terminal(block.content)}\n{fence}"
    else:
        yield from _blocks(block.content)
    yield "</details>"


def _table(table: Table) -> str:
    rules = ["---:" if table.is_numeric(column) else "---" for column in range(len(table.columns))]
    lines = [map(markdown, table.columns), rules, *(map(_cell, row) for row in table.cells)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _heat_table(block: HeatMap) -> Table:
    """The numbers of a heat map."""
    rows = [(name, *map(block.text, values)) for name, values in zip(block.rows, block.values, strict=True)]
    return Table(("%" if block.percent else "", *block.columns), rows)


def _cell(cell: Cell) -> str:
    text = f"**{markdown(cell.text)}**" if cell.tone == "strong" and cell.text else markdown(cell.text)
    if cell.href:
        text = f"[{text}](<{quote(cell.href, safe='/#')}>)"
    return f"{text} ({markdown(cell.detail)})" if cell.detail else text


def _example(item: Example) -> str:
    head = ", ".join(markdown(part) for part in (item.label, item.status, item.verdict) if part)
    lines = [f"{head}: " * bool(head) + _marked(item.text)]
    if item.premise is not None:
        lines.append(f"Premise: {_marked(item.premise)}")
    lines += [
        f"{markdown(version.name)}: {_marked(version.text)} {markdown(version.detail)}" for version in item.versions
    ]
    if item.bar is not None:
        lines.append(markdown(item.bar.text))
    lines += map(markdown, item.notes)
    if item.details:
        lines.append(markdown(" · ".join(item.details)))
    return "\n  - ".join(line.strip() for line in lines if line)


def _marked(text: Marked) -> str:
    if isinstance(text, str):
        return markdown(text)
    parts = []
    for part in text:
        if isinstance(part, Piece):
            parts.append(_piece(part))
        else:
            word = f"**{markdown(part.text)}**" if part.marked else markdown(part.text)
            parts.append(f"{word} ({markdown(part.detail)}) " if part.detail else f"{word} ")
    return " ".join(_joined(parts).split())


def _joined(parts: Sequence[str]) -> str:
    """The parts in a row; an empty comment keeps marks apart that would be read as one."""
    line = ""
    for part in parts:
        line += f"{_APART}{part}" if part[:1] in _MARKS and line.endswith(part[:1]) else part
    return line


def _piece(piece: Piece) -> str:
    """What was struck out and what came; blanks stay outside of the marks: `** word**` is no emphasis in Markdown."""
    if piece.kind == "same":
        return _spaced(piece.after, "")
    struck, new = _changed(piece.before, "~~", "del"), _changed(piece.after, "**", "strong")
    return f"{struck} {new}" if struck.strip() and new.strip() else struck + new


def _changed(text: str, mark: str, tag: str) -> str:
    """The text between marks; in a tag if it begins or ends with punctuation, where marks may not be read."""
    inner = text.strip()
    if not inner or (inner[0].isalnum() and inner[-1].isalnum()):
        return _spaced(text, mark)
    return text.replace(inner, f"<{tag}>{markdown(inner)}</{tag}>", 1)


def _spaced(text: str, mark: str) -> str:
    inner = text.strip()
    if not inner:
        return " " * bool(text)
    return " " * text[0].isspace() + mark + markdown(inner) + mark + " " * text[-1].isspace()


def _prose(prose: Prose) -> str:
    parts = []
    for span in spans(prose):
        if span.style == "code":
            parts.append(_code(span.text))
        elif span.style == "strong":
            parts.append(_spaced(span.text, "**"))
        else:
            parts.append(_spaced(span.text, ""))
    return "".join(parts)


def _code(text: str) -> str:
    """A code span that ends where it should even if there are backticks inside."""
    inside = " ".join(terminal(text).split()).replace("|", "\\|")
    fence = "`" * (1 + _longest_run(inside))
    blank = " " if inside.startswith("`") or inside.endswith("`") else ""
    return f"{fence}{blank}{inside}{blank}{fence}" if inside else ""


def _longest_run(text: str) -> int:
    return max(map(len, re.findall("`+", text)), default=0)
