"""A document in the terminal: coloured diffs, tables that fit, no plots."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.measure import Measurement
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
    without_empty_sections,
)
from stockade.report.examples import Example, Examples, Marked, Tone, Words
from stockade.report.heat_map import HeatMap

PIPE_WIDTH = 160
_ANY_WIDTH = 10_000
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
_HEAT = ("dim", "", "bold")
"""Small, middling and large numbers of a heat map."""
_STRUCK = "dim strike"
_DELETED, _INSERTED = "[-{}-]", "{{+{}+}}"
"""Where there are no colours (a file, a pipe), changes are marked as `git diff --word-diff` marks them."""
_SENTENCES = (Paragraph, Note, Bullets)


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
        _print(console, _prose(document.about, "dim"), unbroken=_has_code(document.about))
    if document.blocks and not isinstance(document.blocks[0], Heading):
        console.print()
    _blocks(document.blocks, console)


def _blocks(blocks: Sequence[Block], console: Console) -> None:
    shown = without_empty_sections([block for block in blocks if not _is_left_out(block)])
    for above, block in zip([None, *shown], shown, strict=False):
        sentences = isinstance(above, _SENTENCES) and isinstance(block, _SENTENCES)
        if isinstance(block, Heading) or not (above is None or isinstance(above, Heading) or sentences):
            console.print()
        _block(block, console)


def _is_left_out(block: Block) -> bool:
    """Plots, and long texts such as a manifest, are for those who open the page."""
    return isinstance(block, Plot) or (isinstance(block, Details) and isinstance(block.content, str))


def _block(block: Block, console: Console) -> None:
    match block:
        case Heading():
            _print(console, _line(block.text, "bold"), _line(f"  {block.aside}" if block.aside else "", "dim"))
        case Paragraph():
            _print(console, _prose(block.text), unbroken=_has_code(block.text))
        case Note():
            before = _line("warning: ", "bold yellow") if block.kind == "warning" else Line()
            text = _prose(block.text, "dim" if block.kind == "aside" else "")
            _print(console, before, text, unbroken=_has_code(block.text))
        case Bullets():
            for item in block.items:
                _print(console, Line("• "), _prose(item), unbroken=_has_code(item))
        case Table():
            _table(block.previewed(), console)
        case HeatMap():
            _heat_map(block, console)
        case Words():
            if block.title:
                _print(console, _line(block.title, "dim"))
            for name, words in block.rows:
                _print(console, _line(f"{name}: ", "dim"), _marked(words, _has_colours(console)))
        case Examples():
            _examples(block, console)
        case Details(content=content) if not isinstance(content, str):
            _print(console, _line(block.summary, "bold"))
            _blocks(content, console)


def _table(table: Table, console: Console) -> None:
    """A table with its details; without those of numbers if the screen has no room for them."""
    if table.title:
        _print(console, _line(table.title, "bold"))
    drawn = _rich_table(table, details=True)
    if Measurement.get(console, console.options.update(width=_ANY_WIDTH), drawn).maximum > console.width:
        drawn = _rich_table(table, details=False)
    console.print(drawn)
    if table.caption:
        _print(console, _prose(table.caption, "dim"), unbroken=_has_code(table.caption))


def _rich_table(table: Table, details: bool) -> RichTable:
    drawn = RichTable(box=None, pad_edge=False, header_style="bold", collapse_padding=True)
    for column, name in enumerate(table.columns):
        right = table.is_numeric(column)
        drawn.add_column(_line(name), justify="right" if right else "left", overflow="fold", no_wrap=right)
    for row in table.cells:
        drawn.add_row(*(_cell(cell, details or not table.is_numeric(column)) for column, cell in enumerate(row)))
    return drawn


def _cell(cell: Cell, detail: bool) -> Line:
    shown = _line(f" ({cell.detail})", "dim") if cell.detail and detail else Line()
    return Line.assemble(_line(cell.text, _TONES[cell.tone]), shown)


def _heat_map(block: HeatMap, console: Console) -> None:
    """The numbers under the numbers of the columns, large ones in bold; nothing but a sentence if they do not fit."""
    if block.title:
        _print(console, _line(block.title, "bold"))
    drawn = RichTable(box=None, pad_edge=False, header_style="bold", collapse_padding=True)
    drawn.add_column(Line("%" if block.percent else ""))
    same_names = tuple(block.rows) == tuple(block.columns)
    for number in range(len(block.columns)):
        drawn.add_column(Line(str(number + 1)), justify="right", no_wrap=True)
    for number, (name, cells) in enumerate(zip(block.rows, block.cells, strict=True), 1):
        numbers = [_line(cell.text, _HEAT[int(2.99 * abs(cell.depth or 0.0))]) for cell in cells]
        drawn.add_row(_line(f"{number} {name}" if same_names else name), *numbers)
    if Measurement.get(console, console.options.update(width=_ANY_WIDTH), drawn).maximum > console.width:
        size = f"{len(block.rows)} × {len(block.columns)}"
        _print(console, _line(f"{size} numbers, too many for this screen: they are on the page.", "dim"))
        return
    console.print(drawn)
    if not same_names:
        _print(console, _line(" · ".join(f"{number} {name}" for number, name in enumerate(block.columns, 1)), "dim"))
    if block.caption:
        _print(console, _prose(block.caption, "dim"), unbroken=_has_code(block.caption))


def _examples(block: Examples, console: Console) -> None:
    for number, item in enumerate(block.previewed()):
        if number:
            console.print()
        for line in _example(item, _has_colours(console)):
            _print(console, line)
    if block.more:
        _print(console, _line(block.more, "dim"))


def _has_colours(console: Console) -> bool:
    return console.color_system is not None


def _example(item: Example, colours: bool) -> Iterator[Line]:
    details = f"({', '.join(item.details)})" if item.details else ""
    parts = [(item.label, "bold"), (item.status, _TONES[item.tone]), (item.verdict, ""), (details, "dim")]
    head = Line("  ").join(_line(text, style) for text, style in parts if text)
    if head:
        yield head
    if item.premise is not None:
        yield Line.assemble(_line("premise: ", "dim"), _marked(item.premise, colours, "dim"))
    yield _marked(item.text, colours)
    for version in item.versions:
        detail = _line(f"  {version.detail}" if version.detail else "", "dim")
        text = _marked(version.text, colours, _TONES[version.tone])
        yield Line.assemble(_line(f"{version.name}: ", "bold"), text, detail)
    if item.bar is not None and item.bar.text:
        yield _line(item.bar.text, "dim")
    for note in item.notes:
        yield _line(note, "dim")


def _marked(text: Marked, colours: bool, style: str = "") -> Line:
    if isinstance(text, str):
        return _line(text, style)
    line = Line()
    for part in text:
        if isinstance(part, Piece):
            line.append_text(_piece(part) if colours else _plain_piece(part))
        else:
            line.append_text(_line(part.text, "bold underline" if part.marked else ""))
            line.append_text(_line(f" {part.detail}  " if part.detail else " ", "dim"))
    return line


def _piece(piece: Piece) -> Line:
    """What stands there now, with what it replaced behind it."""
    if piece.kind == "delete":
        return _spaced(piece.before, _STRUCK)
    new = _spaced(piece.after, _PIECES[piece.kind])
    return Line.assemble(new, _line(f"({piece.before})", "dim")) if piece.kind == "replace" else new


def _plain_piece(piece: Piece) -> Line:
    """What was deleted and what was inserted, each in its brackets, with the blanks that went or came along."""
    if piece.kind == "same":
        return _line(piece.after)
    deleted = _DELETED.format(piece.before) if piece.before else ""
    return _line(deleted + (_INSERTED.format(piece.after) if piece.after else ""))


def _spaced(text: str, style: str) -> Line:
    """The text in a style that its blanks at both ends do not have."""
    line = _line(text)
    line.stylize(style, len(text) - len(text.lstrip()), len(line) - len(text) + len(text.rstrip()))
    return line


def _prose(prose: Prose, style: str = "") -> Line:
    line = Line(style=style)
    for span in spans(prose):
        line.append(terminal(span.text), style=_SPANS[span.style])
    return line


def _has_code(prose: Prose) -> bool:
    return any(span.style == "code" for span in spans(prose))


def _line(text: str, style: str = "") -> Line:
    return Line(terminal(text), style=style)


def _print(console: Console, *parts: Line, unbroken: bool = False) -> None:
    """One line, broken between words on a terminal; files and commands to copy are not broken."""
    console.print(Line.assemble(*parts), soft_wrap=unbroken or not console.is_terminal, highlight=False)
