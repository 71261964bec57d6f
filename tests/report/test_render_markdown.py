"""Markdown for pull requests: everything but plots, and no text of a user becomes markup."""

from __future__ import annotations

from html.parser import HTMLParser

from markdown_it import MarkdownIt

from stockade.core.text import Piece
from stockade.report.document import Details, Document, Heading, Note, Plot, Table, code
from stockade.report.examples import Example, Examples
from tests.report.documents import every_block, hostile, undrawable

EVERYTHING = """\
# title

Model `model` on **data**

- finding
- second finding

> **Warning:** warning

info

paragraph with `command`

## section (Figure 2)

**table**

| attack | rate |
| --- | ---: |
| pwws | 82.0 % (69–90) |
| bae-r | 12.0 % |

caption

**map**

| % | first | second |
| --- | ---: | ---: |
| cnn | 25 |  |
| lstm | -50 | 100 |

legend

aside

- first bullet
- second bullet`code`

**attention**

- before: a (0.02) great
- after: a **grand**

### Examples

- pwws, success, pos → neg: kept ~~old~~ **new** ~~gone~~ **come**
  - Premise: premise
  - reason
  - ground
  - 12 queries · id 3
- **open** closed
  - 1 of 2 words
- whole
  - bae-i: version 0.9

more

<details><summary>manifest</summary>

```
seed: 0
```

</details>

<details open><summary>published</summary>

| column |
| --- |
| cell |

</details>
"""


class Tags(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert not any(name.startswith("on") or name == "href" for name, _ in attrs)
        self.tags.append("s" if tag == "del" else tag)  # what begins with punctuation is struck out by a tag


def rendered(markdown: str) -> list[str]:
    """The tags of what a reader sees."""
    return Tags(MarkdownIt("gfm-like", {"linkify": False, "html": True}).render(markdown)).tags


def test_every_block_in_markdown_without_drawing_anything() -> None:
    assert every_block(svg=undrawable).to_markdown() == EVERYTHING


def test_hostile_text_stays_text() -> None:
    assert rendered(hostile(undrawable).to_markdown()) == rendered(EVERYTHING)
    assert "\x1b" not in hostile().to_markdown()


def test_code_may_hold_backticks_and_bars() -> None:
    blocks = (Note((code("a`b``c"), " and ", code("`edge`"))), Table((("x|y"),), (("p|q",),)))
    markdown = Document(title="t", blocks=blocks).to_markdown()
    assert "```a`b``c``` and `` `edge` ``" in markdown
    assert "| x\\|y |" in markdown
    assert rendered(markdown).count("code") == 2


def test_a_long_text_ends_where_it_should() -> None:
    markdown = Document(title="t", blocks=(Details("m", "```\n# not a heading\n```"),)).to_markdown()
    assert "````\n```\n# not a heading\n```\n````" in markdown
    assert "h1" not in rendered(markdown)[1:]


def test_blanks_stay_outside_of_marks() -> None:
    pieces = (Piece("same", "a", "a"), Piece("insert", "", " very "), Piece("same", "good", "good"))
    markdown = Document(title="t", blocks=(Examples(items=(Example(text=pieces),)),)).to_markdown()
    assert "- a **very** good\n" in markdown


def test_sections_that_hold_only_a_plot_are_left_out() -> None:
    blocks = (Heading("Drawn"), Plot(undrawable), Heading("Said"), Heading("Part", 3), Note("a"), Heading("End"))
    assert Document(title="t", blocks=blocks).to_markdown() == "# t\n\n## Said\n\n### Part\n\na\n"
