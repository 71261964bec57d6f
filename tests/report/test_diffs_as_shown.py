"""What a diff shows is what happened: applied to the original, it gives the adversarial text, in every output."""

from __future__ import annotations

import io
import re
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from rich.console import Console

import stockade
from stockade.core.text import Piece, Text
from stockade.report.diff import diff_pieces
from stockade.report.document import Document
from stockade.report.examples import Example, Examples, record_example

WORDS = ["a", "great", "great", "c-d", "don't", "电", "电", "é", "3"]
GAPS = [" ", " ", "  ", ", ", ". ", " (", ") ", "! ", "", " - ", '"', " 1. "]
NEW_WORDS = ["x", "great", "gr3at", "gr eat", "f!lm", "!", "*x*", "-", "~", "a_b", "电", "(a)"]


@st.composite
def edited_texts(draw: st.DrawFn) -> Text:
    """Texts after a few changes: words replaced, inserted, deleted, merged, their letters swapped."""
    length = draw(st.integers(1, 6))
    words, gaps = draw(st.lists(st.sampled_from(WORDS), min_size=length, max_size=length)), st.sampled_from(GAPS)
    text = Text.parse("".join(word + draw(gaps) for word in words))
    for _ in range(draw(st.integers(0, 5))):
        if not len(text):
            break
        at, word = draw(st.integers(0, len(text) - 1)), draw(st.sampled_from(NEW_WORDS))
        match draw(st.sampled_from(["replace", "before", "after", "delete", "merge", "swap"])):
            case "replace":
                text = text.replace(at, word)
            case "before":
                text = text.insert_before(at, word)
            case "after":
                text = text.insert_after(at, word)
            case "delete":
                text = text.delete(at)
            case "merge" if at + 1 < len(text):
                text = text.replace(at, text.words[at] + text.words[at + 1]).delete(at + 1)
            case "swap":
                letters = text.words[at]
                text = text.replace(at, letters[1::-1] + letters[2:])
    return text


def document(text: Text) -> Document:
    pieces = diff_pieces(str(text.original), str(text), text.edits)
    return Document(title="t", blocks=(Examples(items=(Example(text=pieces),)),))


class Reading(HTMLParser):
    """Both texts as someone reads them off a page: without what was inserted, and without what was struck out."""

    def __init__(self, page: str, deleted: set[str], inserted: set[str]) -> None:
        super().__init__()
        self.before, self.after, self._open = "", "", list[str]()
        self._deleted, self._inserted = deleted, inserted
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not self._inserted & set(self._open):
            self.before += data
        if not self._deleted & set(self._open):
            self.after += data


@settings(deadline=None)
@given(edited_texts())
def test_the_page_shows_both_texts_to_the_letter(text: Text) -> None:
    (shown,) = re.findall('<p class="text">(.*)</p>', document(text).to_html(), re.DOTALL)
    reading = Reading(shown, {"del"}, {"ins"})
    assert reading.after == str(text)
    assert reading.before.split() == str(text.original).split(), "blanks that change alone are not marked"


@settings(deadline=None)
@given(edited_texts())
def test_a_pipe_shows_both_texts_to_the_letter(text: Text) -> None:
    stream = io.StringIO()
    document(text).to_terminal(Console(file=stream, width=500))
    shown = stream.getvalue().partition("\n\n")[2].removesuffix("\n")
    before = re.sub(r"\[-(.*?)-\]", r"\1", re.sub(r"\{\+.*?\+\}", "", shown))
    assert before.split() == str(text.original).split(), "blanks that change alone are not marked"
    assert re.sub(r"\{\+(.*?)\+\}", r"\1", re.sub(r"\[-.*?-\]", "", shown)) == str(text)


@settings(deadline=None)
@given(edited_texts())
def test_markdown_shows_both_texts_up_to_blanks(text: Text) -> None:
    shown = MarkdownIt().enable("strikethrough").render(document(text).to_markdown())
    reading = Reading(shown.partition("<li>")[2].partition("</li>")[0], {"s", "del"}, {"strong"})
    assert "".join(reading.before.split()) == "".join(str(text.original).split())
    assert "".join(reading.after.split()) == "".join(str(text).split())


def test_changes_are_marked_where_there_are_no_colours() -> None:
    text = Text.parse("so it works well").delete(0).insert_before(1, "always").replace(3, "wells")
    stream = io.StringIO()
    document(text).to_terminal(Console(file=stream, width=80))
    assert stream.getvalue().splitlines()[-1] == "[-so -]it {+always +}works [-well-]{+wells+}"


def test_marks_that_would_be_read_as_one_are_kept_apart() -> None:
    text = Text.parse("电电").replace(0, "日").replace(1, "本")
    assert document(text).to_markdown().splitlines()[-1] == "- ~~电~~ **日**~~电~~ **本**"
    pieces = (Piece("insert", "", "日"), Piece("insert", "", "本"))
    shown = Document(title="t", blocks=(Examples(items=(Example(text=pieces),)),)).to_markdown()
    assert shown.splitlines()[-1] == "- **日**<!-- -->**本**"


@pytest.mark.parametrize("attack", ["deepwordbug", "pwws", "random"])
def test_the_records_of_attacks_are_shown_as_they_are(attack: str) -> None:
    """Searches edit the same text again and again; what they store must lead from the original to what they found."""

    def victim(texts: list[str]) -> list[list[float]]:
        counts = [min(9, sum(text.count(word) for word in ("great", "good", "allows"))) for text in texts]
        return [[0.95 - count / 10, 0.05 + count / 10] for count in counts]

    victim.labels = ["no", "yes"]  # type: ignore[attr-defined]
    data = [(f"so ultracompact, or allows her (great) good {n}: good great great allows in.", "yes") for n in range(4)]
    result = stockade.attack(victim, data, attack, similarity=False)
    records = list(result.records(status="success"))
    assert records or attack == "random"
    for record in records:
        pieces = record_example(record).text
        marked = [piece for piece in pieces if isinstance(piece, Piece) and piece.kind != "same"]
        assert [(piece.before, piece.after) for piece in marked] == [(edit.before, edit.after) for edit in record.edits]
