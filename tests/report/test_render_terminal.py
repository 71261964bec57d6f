"""The terminal: everything but plots and manifests, no escape sequence of a user, tables that fit."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from stockade.core.text import Piece
from stockade.report.document import Document, Note, Table, code
from stockade.report.examples import Example, Examples
from stockade.report.numbers import percent_cell
from stockade.report.render_terminal import PIPE_WIDTH, standard_output
from tests.report.documents import every_block, hostile, undrawable

EVERYTHING = """\
title
Model model on data

finding
second finding
warning: warning
info
paragraph with command

section  Figure 2
table
attack           rate
pwws   82.0 % (69–90)
bae-r          12.0 %
caption

map
%      1   2
cnn   25
lstm -50 100
1 first · 2 second
legend

aside
• first bullet
• second bulletcode

attention
before: a 0.02  great
after: a grand

Examples
pwws  success  pos → neg  (12 queries, id 3)
premise: premise
kept [-old-]{+new+}[- gone-]{+ come+}
reason
ground

open closed
1 of 2 words

whole
bae-i: version  0.9
more

published
column
cell
"""


def printed(document: Document, width: int = 100, terminal: bool = False) -> str:
    stream = io.StringIO()
    document.to_terminal(
        Console(file=stream, width=width, force_terminal=terminal, markup=False, emoji=False, color_system=None)
    )
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines()) + "\n"


def test_every_block_in_the_terminal_without_drawing_anything() -> None:
    assert printed(every_block(svg=undrawable)) == EVERYTHING


def test_no_escape_sequence_of_a_user_reaches_the_terminal() -> None:
    shown = printed(hostile(undrawable), width=1_000)
    assert "\x1b" not in shown
    assert "<script>alert('title')</script>" in shown
    assert "**|title␛[2J" in shown


def test_brackets_and_colons_are_printed_as_they_are() -> None:
    document = Document(title="[bold]x[/bold]", blocks=(Note("[red] :smile: [/red]"),))
    stream = io.StringIO()
    document.to_terminal(Console(file=stream, width=80, force_terminal=True, color_system=None))
    assert "[bold]x[/bold]" in stream.getvalue()
    assert "[red] :smile: [/red]" in stream.getvalue()


@pytest.mark.parametrize(
    ("width", "row"),
    [(40, "textfooler 82.0 % (69.2–90.2) 0.0 % (0.0–7.1)"), (45, "textfooler 82.0 % (69.2–90.2) 0.0 % (0.0–7.1)")],
)
def test_intervals_are_shown_where_there_is_room(width: int, row: str) -> None:
    cells = [
        percent_cell({"value": v, "low": low, "high": high}) for v, low, high in ((0.82, 0.692, 0.902), (0, 0, 0.071))
    ]
    table = Table(("attack", "success", "robust"), (("textfooler", *cells),))
    shown = [line.split() for line in printed(Document(title="t", blocks=(table,)), width).splitlines()]
    assert (row.split() in shown) == (width >= len(row))
    assert (["textfooler", "82.0", "%", "0.0", "%"] in shown) == (width < len(row))


def test_sentences_are_broken_between_words_but_commands_and_pipes_are_not() -> None:
    words = "word " * 20
    plain, command = Document(title="t", blocks=(Note(words),)), Document(title="t", blocks=(Note((words, code("x"))),))
    assert len(printed(plain, 30, terminal=True).splitlines()) == 2 + 4
    assert len(printed(plain, 30).splitlines()) == 2 + 1
    assert len(printed(command, 30, terminal=True).splitlines()) == 2 + 1


def test_what_changed_is_coloured_and_nothing_else() -> None:
    pieces = (Piece("same", "a ", "a "), Piece("delete", "so ", ""), Piece("replace", "good", "bad"))
    stream = io.StringIO()
    console = Console(file=stream, width=80, force_terminal=True, color_system="standard")
    Document(title="t", blocks=(Examples(items=(Example(text=pieces),)),)).to_terminal(console)
    assert "a \x1b[2;9mso\x1b[0m \x1b[1;31mbad\x1b[0m\x1b[2m(good)\x1b[0m" in stream.getvalue()


def test_a_pipe_is_wide(capsys: pytest.CaptureFixture[str]) -> None:
    assert standard_output().width == PIPE_WIDTH
    Document(title="printed", blocks=()).print()
    assert capsys.readouterr().out == "printed\n"
