"""A report as a value: a title and blocks, rendered to HTML, Markdown, JSON or the terminal.

Whoever analyses something makes one `Document` and is done; every output comes from it.

    document = Document(
        title="Attack runs/a",
        about=("Model ", code("builtin:sentiment-cnn"), " on ", code("builtin:reviews"), ", 50 texts"),
        blocks=(
            Note("41 of 50 texts fooled (82 %, 95 % interval 69–90 %).", kind="finding"),
            Table(("attack", "success rate"), (("pwws", Cell("82.0 %", detail="69–90")),), caption="Wilson intervals."),
            Plot(lambda: draw_plot("rates", (8.2, 3), draw), caption="Success rates"),
            Heading("Examples"),
            Examples(tuple(map(record_example, records)), filters=(Filter("status", "Status", selected="success"),)),
            Details("Manifest", indented(manifest)),
        ),
        data=run.summary,
    )
    document.print()                       # the terminal
    document.write("report.html")          # one self-contained file
    document.write("report.md", "md")
    document                               # in a notebook

Blocks hold plain text: escaping is the renderers' business. Text with code or emphasis in it is a tuple of strings and
spans, as in `about` above. Plots are drawn when a renderer needs them, so that only HTML imports a plotting library;
a plot's numbers belong into a table too, for those who read Markdown.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from stockade.core.errors import OptionError, unknown_name
from stockade.core.text import valid_unicode
from stockade.report.examples import Examples, Tone, Words
from stockade.report.heat_map import HeatMap

if TYPE_CHECKING:
    from rich.console import Console

NoteKind = Literal["info", "warning", "finding", "aside"]
_FEWEST_SORTED = 3
SpanStyle = Literal["plain", "code", "strong"]


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of a sentence in a style of its own; made with `code` or `strong`."""

    text: str
    style: SpanStyle = "plain"


Prose = str | Span | tuple[str | Span, ...]
"""A sentence or several: plain text, or a tuple of texts and spans."""


def code(text: object) -> Span:
    """A name, command or path, set as code."""
    return Span(str(text), "code")


def strong(text: object) -> Span:
    """Words in bold."""
    return Span(str(text), "strong")


def spans(prose: Prose) -> tuple[Span, ...]:
    """Prose as spans, whichever way it was written."""
    parts = prose if isinstance(prose, tuple) else (prose,)
    return tuple(Span(part) if isinstance(part, str) else part for part in parts)


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading below the title.

    Parameters
    ----------
    text
        The heading itself.
    level
        2 for a section, 3 for a part of it.
    aside
        A few words behind it in small print, such as "Figure 2".
    anchor
        What a link to the heading ends in; made from the text if empty.
    """

    text: str
    level: int = 2
    aside: str = ""
    anchor: str = ""


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Plain sentences."""

    text: Prose


@dataclass(frozen=True, slots=True)
class Note:
    """Sentences with a purpose.

    Parameters
    ----------
    text
        The sentences.
    kind
        `finding` states the result and belongs at the top, one note per sentence; `warning` is what makes the result
        doubtful; `info` is worth knowing; `aside` explains how to read the block above it.
    """

    text: Prose
    kind: NoteKind = "info"


@dataclass(frozen=True, slots=True)
class Bullets:
    """A list of sentences."""

    items: Sequence[Prose]


@dataclass(frozen=True, slots=True)
class Cell:
    """A table's cell with more than text in it.

    Parameters
    ----------
    text
        What the cell says.
    detail
        Smaller, on a line below: an interval, a reason.
    tone
        Its colour.
    href
        Another page that the cell leads to, by its path from this one.
    """

    text: str
    detail: str = ""
    tone: Tone = "plain"
    href: str = ""

    def __post_init__(self) -> None:
        if ":" in self.href or self.href.startswith("/"):
            raise ValueError(f"a page links to pages beside it alone, not to {self.href}")


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells under named columns.

    Parameters
    ----------
    columns
        Their names.
    rows
        For each row as many cells as there are columns; a string is a cell without detail and tone.
    title
        Stands above the table.
    caption
        Stands below it and says how to read it.
    numeric
        The columns that hold numbers, by index, aligned right; all but the first if None.
    grouped
        So many leading columns name groups of rows: a name that repeats the one above is not written again.
    preview
        How many rows the terminal, Markdown and notebooks show of a long table; all if None.
    searchable
        Whether the page has a field that searches the rows; without JavaScript all rows are shown.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[str | Cell]]
    title: str = ""
    caption: Prose = ""
    numeric: Collection[int] | None = None
    grouped: int = 0
    preview: int | None = None
    searchable: bool = False

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"a row of {len(row)} cells under {len(self.columns)} columns: {row}")

    def is_numeric(self, column: int) -> bool:
        """Whether a column is aligned right."""
        return column > 0 if self.numeric is None else column in self.numeric

    @property
    def is_sortable(self) -> bool:
        """Whether a reader can sort the rows: there are several, and none stands under the name of another."""
        return not self.grouped and len(self.rows) >= _FEWEST_SORTED

    def previewed(self) -> Table:
        """The table with as many rows as its preview has, and how many there are in its caption."""
        if self.preview is None or len(self.rows) <= self.preview:
            return self
        more = f"The first {self.preview:,} of {len(self.rows):,} rows; the page (HTML) has all."
        caption: Prose = (*spans(self.caption), Span(f" {more}")) if self.caption else more
        return replace(self, rows=self.rows[: self.preview], caption=caption, preview=None)

    @property
    def cells(self) -> tuple[tuple[Cell, ...], ...]:
        """The rows with every cell as a `Cell`, and names of groups that repeat left out."""
        rows = [tuple(Cell(cell) if isinstance(cell, str) else cell for cell in row) for row in self.rows]
        written = []
        for index, row in enumerate(rows):
            above = rows[index - 1] if index else ()
            repeated = [
                column < self.grouped and row[: column + 1] == above[: column + 1] for column in range(len(row))
            ]
            written.append(tuple(Cell("") if skip else cell for skip, cell in zip(repeated, row, strict=True)))
        return tuple(written)


@dataclass(frozen=True, slots=True)
class Plot:
    """A picture, drawn when it is needed.

    Parameters
    ----------
    svg
        The SVG, or a function that draws it; an empty string if there is nothing to show.
    caption
        Says what is in the picture.
    name
        Tells plots apart, in JSON and for readers who do not see it.
    """

    svg: str | Callable[[], str]
    caption: Prose = ""
    name: str = ""

    def draw(self) -> str:
        """The SVG."""
        return self.svg if isinstance(self.svg, str) else self.svg()


@dataclass(frozen=True, slots=True)
class Details:
    """Folded away until somebody wants it: a long text, such as a manifest by `render_json.indented`, or blocks."""

    summary: str
    content: str | Sequence[Block]
    unfolded: bool = False


Block = Heading | Paragraph | Note | Bullets | Table | Plot | HeatMap | Words | Examples | Details


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A report that renders itself.

    Parameters
    ----------
    title
        The first line.
    blocks
        The content, findings first.
    about
        What was examined, below the title.
    data
        The machine-readable summary, which is the document as JSON.
    refresh_seconds
        For documents of something that still runs: how often a browser loads the page again.
    """

    title: str
    blocks: Sequence[Block]
    about: Prose = ""
    data: object = None
    refresh_seconds: int | None = None

    def to_html(self) -> str:
        """One HTML page that needs nothing else."""
        from stockade.report.render_html import render_page

        return valid_unicode(render_page(self))

    def to_html_fragment(self) -> str:
        """The page without its frame and with few examples, as a notebook shows it."""
        from stockade.report.render_html import render_fragment

        return valid_unicode(render_fragment(self))

    def to_markdown(self) -> str:
        """Markdown for pull requests and wikis, without plots."""
        from stockade.report.render_markdown import render_markdown

        return valid_unicode(render_markdown(self))

    def to_json(self) -> str:
        """`data` as JSON; the blocks, where there is none."""
        from stockade.report.render_json import render_json

        return render_json(self)

    def to_terminal(self, console: Console) -> None:
        """Print the document on a console."""
        from stockade.report.render_terminal import render_terminal

        render_terminal(self, console)

    def print(self) -> None:
        """Print the document on standard output."""
        from stockade.report.render_terminal import standard_output

        self.to_terminal(standard_output())

    def brief(self) -> Document:
        """The document in short, for the end of a command: findings, warnings and tables that are not folded away."""
        blocks = [
            block
            for block in self.blocks
            if isinstance(block, Heading | Table) or (isinstance(block, Note) and block.kind in ("finding", "warning"))
        ]
        return replace(self, blocks=without_empty_sections(blocks))

    def write(self, path: str | Path, format: str = "html") -> Path:
        """Write the document into a file and return its path.

        Parameters
        ----------
        path
            The file; one that exists is overwritten.
        format
            `html`, `md` or `json`.
        """
        renderers = {"html": self.to_html, "md": self.to_markdown, "json": self.to_json}
        if format not in renderers:
            raise unknown_name("report format", format, renderers)
        content = renderers[format]()
        try:
            Path(path).write_text(content, encoding="utf-8")
        except OSError as error:
            raise OptionError(f"{path} cannot be written ({error.strerror or error}). Choose another folder.") from None
        return Path(path)

    def _repr_html_(self) -> str:
        return self.to_html_fragment()


def without_empty_sections(blocks: Sequence[Block]) -> tuple[Block, ...]:
    """The blocks that a renderer shows, without headings that have nothing below them."""
    filled: list[Block] = []
    for block in reversed(blocks):
        below = filled[-1] if filled else Heading("the end", level=0)
        if not (isinstance(block, Heading) and isinstance(below, Heading) and below.level <= block.level):
            filled.append(block)
    return tuple(reversed(filled))


def texts_and_manifests(jobs: Sequence[tuple[str, Block, str]]) -> Iterator[Block]:
    """The end of the report of one or more jobs: the texts of each, then the manifests, folded.

    Parameters
    ----------
    jobs
        Of each job its name, its texts and its manifest.
    """
    for name, texts, _ in jobs:
        if len(jobs) > 1:
            yield Heading(name, level=3)
        yield texts
    yield Heading("Manifest")
    for name, _, manifest in jobs:
        yield Details(name, manifest)
