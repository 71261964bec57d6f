"""Makes text of unknown origin safe to show: in a terminal, in Markdown, in a spreadsheet, on a page.

Attacked texts come from anywhere and may hold anything: escape sequences that would clear the reader's screen,
brackets that would become links, cells that a spreadsheet would run. Each function here leaves ordinary text as it is
and makes what is dangerous visible rather than dropping it: a reader of an attack wants to see that it was there.
(HTML is escaped by the template engine, which also calls `terminal`.) Every writer of the package goes through here.
"""

from __future__ import annotations

import json
import re

_DELETE = 0x7F
_CONTROL_PICTURES = 0x2400
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u2028\u2029\u202a-\u202e\u2066-\u206f\ud800-\udfff\ufff9-\ufffb"
    "\U000e0000-\U000e007f]"
)
"""Control characters except tab and newline, line separators, bidirectional overrides and isolates, annotations, tags,
halves of surrogate pairs.
"""
_MARKDOWN = re.compile(r"[\\`*_\[\]<>|~$]|&(?=#?\w+;)|:(?=//)|(?<=www)\.", re.IGNORECASE)
"""What begins markup, HTML, mathematics, or a link: many readers make one of a bare address."""
_MARKDOWN_AT_START = re.compile(r"(\d{0,9})([.)#+=-]+(?:\s|$))")
"""Bullets, numbers of lists, headings and rules, which mean something at the beginning of a line only."""
_FORMULA = re.compile(r"'*\s*[=+\-@\t\r＝＋－＠]")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def terminal(text: str) -> str:
    """The text with control characters made visible, so that no escape sequence reaches the terminal.

    Parameters
    ----------
    text
        Any string. Tabs and newlines stay; an escape character becomes `␛`, other invisible characters are shown as
        their control picture or as `<U+202E>`.
    """
    return _INVISIBLE.sub(lambda match: _visible(match.group()), text)


def markdown(text: str) -> str:
    """The text on one line with everything escaped that Markdown would read as markup or HTML.

    Parameters
    ----------
    text
        Any string. Runs of blanks and newlines become one blank, because a newline could begin a heading or a table.
    """
    line = _MARKDOWN.sub(r"\\\g<0>", " ".join(terminal(text).split()))
    start = _MARKDOWN_AT_START.match(line)
    return f"{start[1]}\\{line[start.end(1) :]}" if start else line


def one_line(text: str) -> str:
    """The text as `terminal` shows it, with line breaks and tabs made visible too: it cannot look like two messages.

    Parameters
    ----------
    text
        A message, a name, a path.
    """
    return terminal(text).replace("\n", "␊").replace("\t", "␉")


def csv_cell(text: str) -> str:
    """The text with an apostrophe in front where a spreadsheet would run it as a formula; `csv_text` takes it off.

    Parameters
    ----------
    text
        The content of one cell. Plain numbers such as `-1.5` stay as they are.
    """
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


def csv_text(cell: str) -> str:
    """What `csv_cell` was given.

    Parameters
    ----------
    cell
        The content of one cell that `csv_cell` has made.
    """
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


def json_line(encoded: str) -> str:
    """JSON of the same content in which nothing invisible stands as it is: a terminal may show it.

    Parameters
    ----------
    encoded
        JSON.
    """
    return _INVISIBLE.sub(lambda match: json.dumps(match.group())[1:-1], encoded)


def _visible(character: str) -> str:
    code = ord(character)
    if code < ord(" "):
        return chr(_CONTROL_PICTURES + code)
    return "␡" if code == _DELETE else f"<U+{code:04X}>"
