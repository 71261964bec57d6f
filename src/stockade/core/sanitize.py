"""Makes text of unknown origin safe to show: in a terminal, in Markdown, in a spreadsheet.

Attacked texts come from anywhere and may hold anything: escape sequences that would clear the reader's screen,
brackets that would become links, cells that a spreadsheet would run. Each function here leaves ordinary text as it is
and makes what is dangerous visible rather than dropping it: a reader of an attack wants to see that it was there.
(HTML is escaped by the template engine.)
"""

from __future__ import annotations

import re

_DELETE = 0x7F
_CONTROL_PICTURES = 0x2400
_INVISIBLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters except tab and newline, line separators, bidirectional overrides, halves of surrogate pairs."""
_MARKDOWN = re.compile(r"[\\`*_\[\]<>|~]|&(?=#?\w+;)")
_MARKDOWN_AT_START = re.compile(r"(\d{0,9})([.)#+=-]+(?:\s|$))")
"""Bullets, numbers of lists, headings and rules, which mean something at the beginning of a line only."""
_FORMULA = re.compile(r"\s*[=+\-@\t\r＝＋－＠]")
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


def csv_cell(text: str) -> str:
    """The text with an apostrophe in front where a spreadsheet would run it as a formula.

    Parameters
    ----------
    text
        The content of one cell. Plain numbers such as `-1.5` stay as they are.
    """
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


def _visible(character: str) -> str:
    code = ord(character)
    if code < ord(" "):
        return chr(_CONTROL_PICTURES + code)
    return "␡" if code == _DELETE else f"<U+{code:04X}>"
