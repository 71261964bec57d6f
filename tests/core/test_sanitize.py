"""Text of unknown origin cannot act where it is shown."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from stockade.core.sanitize import csv_cell, markdown, terminal

PLAIN = "A great film, 9.5 of 10 – naïve, 电影, می‌خواهم 👩‍👧 (really)!"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "␛[31mred␛[0m"),
        ("\x1b]8;;http://x\x07link", "␛]8;;http://x␇link"),
        ("over\rwritten\x08", "over␍written␈"),
        ("nul\x00 del\x7f", "nul␀ del␡"),
        ("c1 \x9b31m", "c1 <U+009B>31m"),
        ("\u202eesrever", "<U+202E>esrever"),
        ("half \ud83d pair", "half <U+D83D> pair"),
        ("tab\tand\nline", "tab\tand\nline"),
        (PLAIN, PLAIN),
    ],
)
def test_control_characters_are_made_visible(text: str, shown: str) -> None:
    assert terminal(text) == shown


@given(st.text())
def test_nothing_that_a_terminal_acts_upon_is_left(text: str) -> None:
    safe = terminal(text)
    assert all(character.isprintable() or character in "\t\n" or ord(character) >= 0xA0 for character in safe)
    safe.encode("utf-8")
    assert terminal(safe) == safe


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("<script>alert(1)</script>", r"\<script\>alert(1)\</script\>"),
        ("*bold* _it_ ~~no~~ `code`", r"\*bold\* \_it\_ \~\~no\~\~ \`code\`"),
        ("[a](javascript:b)", r"\[a\](javascript:b)"),
        ("a | b", r"a \| b"),
        ("&lt; AT&T", r"\&lt; AT&T"),
        ("two\n\n# lines", "two # lines"),
        ("# heading", r"\# heading"),
        ("- item", r"\- item"),
        ("+ item", r"\+ item"),
        ("1. item", r"1\. item"),
        ("2) item", r"2\) item"),
        ("---", r"\---"),
        ("===", r"\==="),
        ("9.5 of 10", "9.5 of 10"),
        ("-5 degrees", "-5 degrees"),
        (PLAIN, PLAIN),
    ],
)
def test_markdown_is_escaped_where_it_would_be_markup(text: str, escaped: str) -> None:
    assert markdown(text) == escaped


@given(st.text(alphabet=st.sampled_from("ab1 \n\t\\`*_[]()<>|~&#;+-=.!:'\"")))
def test_rendered_markdown_is_the_text_again(text: str) -> None:
    parser = _Plain()
    parser.feed(MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(f"x {markdown(text)}"))
    assert parser.tags <= {"p"}
    assert parser.text.strip() == " ".join(f"x {text}".split())


@given(st.text(alphabet=st.sampled_from("ab1 #+-=.)*_>`"), min_size=1))
def test_no_text_begins_a_heading_list_or_quote(text: str) -> None:
    parser = _Plain()
    parser.feed(MarkdownIt("commonmark").render(markdown(text)))
    assert parser.tags <= {"p"}


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("=1+1", "'=1+1"),
        ("+cmd|' /C calc'!A0", "'+cmd|' /C calc'!A0"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("-2+3", "'-2+3"),
        ("  =1", "'  =1"),
        ("\t=1", "'\t=1"),
        ("＝1", "'＝1"),
        ("-1.5", "-1.5"),
        ("+3e-4", "+3e-4"),
        ("a = b", "a = b"),
        ("", ""),
    ],
)
def test_a_spreadsheet_runs_no_cell(text: str, cell: str) -> None:
    assert csv_cell(text) == cell


class _Plain(HTMLParser):
    """The text of a page and the tags in it."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.text += data
