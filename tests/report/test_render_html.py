"""The page says everything, escaped, and needs nothing else."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from stockade.core.sanitize import terminal
from stockade.report.document import Document, Heading, Note, Plot, Table
from tests.report.documents import HOSTILE, SVG, every_block, hostile, texts


class Page(HTMLParser):
    """The tags of a page with their attributes, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def test_a_page_says_everything() -> None:
    page = every_block().to_html()
    body = Page(page[page.index("<body") :]).text
    only_attributes = {"rates"}  # for readers who do not see the plot
    assert [text for text in texts() if text.strip() not in body] == [
        text for text in texts() if text in only_attributes
    ]
    assert page.startswith("<!doctype html>")
    assert SVG in page


def test_hostile_text_stays_text() -> None:
    page = Page(hostile().to_html())
    plain = Page(every_block().to_html())
    assert [tag for tag, _ in page.tags if tag != "wbr"] == [tag for tag, _ in plain.tags if tag != "wbr"]
    assert all(not name.startswith("on") for _, attributes in page.tags for name in attributes)
    assert len(page.named("script")) == 1
    for text in ("title", "82.0 %", "69–90", "version", "reason", "seed: 0", "grand", "1 of 2 words"):
        assert terminal(HOSTILE.format(text)).strip() in page.text


def test_a_page_needs_nothing_from_elsewhere() -> None:
    page = Page(every_block().to_html())
    assert not [attributes for _, attributes in page.tags if "src" in attributes]
    assert all((link["href"] or "").startswith("#") for link in page.named("a"))
    assert not page.named("link")


def test_examples_carry_what_filters_ask_for() -> None:
    page = Page(every_block().to_html())
    articles = page.named("article")
    assert [article.get("data-status") for article in articles] == ["success", "failed", None]
    assert [field["name"] for field in page.named("select")] == ["status"]
    assert [option.get("value") for option in page.named("option")] == ["", None, None]
    assert page.named("input")[0]["type"] == "search"


def test_blanks_of_inserted_and_deleted_words_are_not_marked() -> None:
    page = every_block().to_html()
    assert "kept <del><s>old</s></del><ins><b>new</b></ins><del> <s>gone</s></del><ins> <b>come</b></ins>" in page


def test_a_fragment_shows_few_examples_and_no_filters() -> None:
    fragment = every_block().to_html_fragment()
    page = Page(fragment)
    assert fragment.startswith('<div class="stockade">')
    assert not page.named("script")
    assert not page.named("form")
    assert len(page.named("article")) == 3
    assert every_block()._repr_html_() == fragment


def test_numbers_are_aligned_right_and_names_left() -> None:
    table = Table(("model", "attack", "rate"), (("cnn", "pwws", "1 %"),), numeric=(2,))
    page = Document(title="t", blocks=(table,)).to_html()
    assert [attributes.get("class") for attributes in Page(page).named("th")] == [None, None, "number"]
    assert '<td class="number plain">1 %</td>' in page


def test_the_name_of_a_group_is_written_once() -> None:
    rows = (("cnn", "none", "1"), ("cnn", "none", "2"), ("cnn", "safer", "3"), ("lstm", "safer", "4"))
    table = Table(("model", "defense", "n"), rows, grouped=2)
    assert [[cell.text for cell in row] for row in table.cells] == [
        ["cnn", "none", "1"],
        ["", "", "2"],
        ["", "safer", "3"],
        ["lstm", "safer", "4"],
    ]
    classes = [row.get("class") for row in Page(Document(title="t", blocks=(table,)).to_html()).named("tr")]
    assert classes == [None, None, "", "part", "group"]


def test_headings_with_the_same_words_have_anchors_of_their_own() -> None:
    blocks = (
        Heading("The same"),
        Note("1"),
        Heading("The same", 3),
        Note("2"),
        Heading("Other", anchor="x"),
        Note("3"),
    )
    page = Page(Document(title="t", blocks=blocks).to_html())
    assert [tag["id"] for name in ("h2", "h3") for tag in page.named(name)] == ["the-same", "x", "the-same-2"]


@pytest.mark.parametrize(("sections", "links"), [(3, 0), (4, 4)])
def test_long_pages_begin_with_links_to_their_sections(sections: int, links: int) -> None:
    blocks = [block for number in range(sections) for block in (Heading(f"Part {number}"), Note("text"))]
    page = Page(Document(title="t", blocks=blocks).to_html())
    anchors = [heading["id"] for heading in page.named("h2")]
    assert [link["href"] for link in page.named("a")] == [f"#{anchor}" for anchor in anchors][:links]


def test_a_plot_without_anything_to_show_leaves_no_figure() -> None:
    page = Page(Document(title="t", blocks=(Plot("", caption="nothing"),)).to_html())
    assert not page.named("figure")
    assert "nothing" not in page.text


def test_a_page_of_something_that_runs_loads_itself_again() -> None:
    running = Document(title="t", blocks=(), refresh_seconds=5).to_html()
    assert {"http-equiv": "refresh", "content": "5"} in Page(running).named("meta")
    assert 'http-equiv="refresh"' not in Document(title="t", blocks=()).to_html()


def test_depths_and_shares_outside_of_their_range_are_cut() -> None:
    from stockade.report.examples import Bar, Example, Examples, Word, Words

    blocks = (Words((("row", (Word("x", depth=7.0), Word("y", depth=-1.0))),)),)
    assert re.findall(r"--depth:([\d.]+)", Document(title="t", blocks=blocks).to_html()) == ["1.000", "0.000"]
    bar = Examples(items=(Example(text="t", bar=Bar(1.7)),))
    assert "width:100.00%" in Document(title="t", blocks=(bar,)).to_html()


def test_halves_of_surrogate_pairs_do_not_break_a_page() -> None:
    Document(title="half \ud83d", blocks=()).to_html().encode("utf-8")
