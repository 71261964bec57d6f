"""A document in the terminal: coloured diffs, tables that fit, no plots."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text as Line

from stockade.core.sanitize import terminal
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
)
from stockade.report.examples import Example, Examples, Marked, Tone, Words

PIPE_WIDTH = 160
_TONES: dict[Tone, str] = {
    "plain": "",
    "good": "green",
    "bad": "red",
    "warning": "yellow",
    "soft": "dim",
    "strong": "bold",
}
_SPANS = {"plain": "", "code": "cyan", "strong": "bold"}
_PIECES = {"same": "", "replace": "bold red", "insert": "bold green", "delete": ""}
_STRUCK = "dim strike"


def standard_output() -> Console:
    """Standard output; wide when it is a file or a pipe, because nobody wraps those.

    Brackets and :names: between colons are printed as they are: most of what is printed are names and texts of users.
    """
    console = Console(markup=False, emoji=False, highlight=False)
    if console.is_terminal:
        return console
    return Console(markup=False, emoji=False, highlight=False, width=PIPE_WIDTH)


def render_terminal(document: Document, console: Console) -> None:
    """Print a document.

    Parameters
    ----------
    document
        What to print.
    console
        Where to.
    """
    _print(console, _line(document.title, "bold"))
    if document.about:
        _print(console, _prose(document.about, "dim"))
    for block in document.blocks:
        _block(block, console)


def _block(block: Block, console: Console) -> None:
    match block:
        case Heading():
            console.print()
            _print(console, _line(block.text, "bold") + _line(f"  {block.aside}" if block.aside else "", "dim"))
        case Paragraph():
            _print(console, _prose(block.text))
        case Note():
            before = _line("warning: ", "bold yellow") if block.kind == "warning" else Line()
            _print(console, before + _prose(block.text, "dim" if block.kind == "aside" else ""))
        case Bullets():
            for item in block.items:
                _print(console, Line("• ") + _prose(item))
        case Table():
            _table(block, console)
        case Words():
            if block.title:
                _print(console, _line(block.title, "dim"))
            for name, words in block.rows:
                _print(console, _line(f"{name}: ", "dim") + _marked(words))
        case Examples():
            for example in block.previewed():
                console.print()
                for line in _example(example):
                    _print(console, line)
            if block.more:
                _print(console, _line(block.more, "dim"))
        case Details():
            if not isinstance(block.content, str):
                _print(console, _line(block.summary, "bold"))
                for inner in block.content:
                    _block(inner, console)
        case Plot():
            pass


def _table(table: Table, console: Console) -> None:
    if table.title:
        _print(console, _line(table.title, "bold"))
    drawn = _rich_table(table, details=True)
    if console.measure(drawn).maximum > console.width:
        drawn = _rich_table(table, details=False)
    console.print(drawn)
    if table.caption:
        _print(console, _prose(table.caption, "dim"))


def _rich_table(table: Table, details: bool) -> RichTable:
    drawn = RichTable(box=None, pad_edge=False, header_style="bold", collapse_padding=True)
    for column, name in enumerate(table.columns):
        right = table.is_numeric(column)
        drawn.add_column(_line(name), justify="right" if right else "left", overflow="fold", no_wrap=right)
    for row in table.cells:
        drawn.add_row(*(_cell(cell, details or not table.is_numeric(column)) for column, cell in enumerate(row)))
    return drawn


def _cell(cell: Cell, detail: bool) -> Line:
    line = _line(cell.text, _TONES[cell.tone])
    return line + _line(f" ({cell.detail})", "dim") if cell.detail and detail else line


def _example(item: Example) -> Iterator[Line]:
    details = f"({', '.join(item.details)})" if item.details else ""
    head = [(item.label, "bold"), (item.status, _TONES[item.tone]), (item.verdict, ""), (details, "dim")]
    yield Line("  ").join(_line(text, style) for text, style in head if text)
    if item.premise is not None:
        yield _line(f"premise: {item.premise}", "dim")
    yield _marked(item.text)
    for version in item.versions:
        detail = _line(f"  {version.detail}" if version.detail else "", "dim")
        yield _line(f"{version.name}: ", "bold") + _marked(version.text, _TONES[version.tone]) + detail
    if item.bar is not None and item.bar.text:
        yield _line(item.bar.text, "dim")
    for note in item.notes:
        yield _line(note, "dim")


def _marked(text: Marked, style: str = "") -> Line:
    if isinstance(text, str):
        return _line(text, style)
    line = Line()
    for part in text:
        if isinstance(part, Piece):
            line += _piece(part)
        else:
            line += _line(part.text, "bold underline" if part.marked else "")
            line += _line(f" {part.detail}  " if part.detail else " ", "dim")
    return line


def _piece(piece: Piece) -> Line:
    """What stands there now, with what it replaced behind it."""
    if piece.kind == "same":
        return _line(piece.after)
    if piece.kind == "delete":
        return _line(piece.before, _STRUCK)
    new = _line(piece.after, _PIECES[piece.kind])
    return new + _line(f"({piece.before})", "dim") if piece.before else new


def _prose(prose: Prose, style: str = "") -> Line:
    line = Line(style=style)
    for span in spans(prose):
        line.append(terminal(span.text), style=_SPANS[span.style])
    return line


def _line(text: str, style: str = "") -> Line:
    return Line(terminal(text), style=style)


def _print(console: Console, line: Line) -> None:
    console.print(line, soft_wrap=True, highlight=False)
