"""Documents for the tests of this folder: one with every block, and the same full of hostile text."""

from __future__ import annotations

from collections.abc import Callable

from stockade.core.text import Piece
from stockade.report.document import (
    Bullets,
    Cell,
    Details,
    Document,
    Heading,
    Note,
    Paragraph,
    Plot,
    Table,
    code,
    strong,
)
from stockade.report.examples import Bar, Example, Examples, Filter, Version, Word, Words
from stockade.report.heat_map import HeatMap

SVG = '<svg width="20" height="10"><rect width="20" height="10"/></svg>'
HOSTILE = "<script>alert('{0}')</script><img src=x onerror=alert(1)> [l](javascript:x) `**|{0}\x1b[2J \"'>"


def undrawable() -> str:
    raise AssertionError("nobody asked for a drawing")


def every_block(text: Callable[[str], str] = str, svg: Callable[[], str] = lambda: SVG) -> Document:
    """A document with every block; `text` makes something else of what a user could have given."""
    return Document(
        title=text("title"),
        about=("Model ", code(text("model")), " on ", strong(text("data"))),
        blocks=(
            Note(text("finding"), kind="finding"),
            Note(text("second finding"), kind="finding"),
            Note(text("warning"), kind="warning"),
            Note(text("info"), kind="info"),
            Paragraph((text("paragraph"), " with ", code(text("command")))),
            Heading(text("section"), aside=text("Figure 2")),
            Table(
                (text("attack"), text("rate")),
                ((text("pwws"), Cell(text("82.0 %"), text("69–90"), "bad")), (text("bae-r"), text("12.0 %"))),
                title=text("table"),
                caption=text("caption"),
            ),
            Plot(svg, caption=text("plot"), name=text("rates")),
            HeatMap(
                rows=(text("cnn"), text("lstm")),
                columns=(text("first"), text("second")),
                values=((0.25, None), (-0.5, 1.0)),
                title=text("map"),
                caption=text("legend"),
                row_groups=(text("flat"), text("deep")),
                column_groups=(text("left"), text("right")),
            ),
            Note(text("aside"), kind="aside"),
            Bullets((text("first bullet"), (text("second bullet"), code(text("code"))))),
            Words(
                (
                    (text("before"), (Word(text("a"), depth=0.1, detail=text("0.02")), Word(text("great")))),
                    (text("after"), (Word(text("a")), Word(text("grand"), marked=True, depth=0.5))),
                ),
                title=text("attention"),
            ),
            Heading(text("Examples"), level=3, anchor="look"),
            Examples(
                items=(
                    Example(
                        text=(
                            Piece("same", "", text("kept ")),
                            Piece("replace", text("old"), text("new")),
                            Piece("delete", text(" gone"), ""),
                            Piece("insert", "", text(" come")),
                        ),
                        status=text("success"),
                        tone="bad",
                        label=text("pwws"),
                        verdict=text("pos → neg"),
                        details=(text("12 queries"), text("id 3")),
                        premise=text("premise"),
                        notes=(text("reason"), text("ground")),
                        facets={"status": text("success")},
                    ),
                    Example(
                        text=(Word(text("open"), marked=True), Word(text("closed"))),
                        bar=Bar(0.5, text("1 of 2 words"), 2),
                        facets={"status": text("failed")},
                    ),
                    Example(
                        text=text("whole"), versions=(Version(text("bae-i"), text("version"), text("0.9"), "good"),)
                    ),
                ),
                filters=(Filter("status", text("Status")),),
                search=True,
                more=text("more"),
            ),
            Details(text("manifest"), text("seed: 0")),
            Details(text("published"), (Table((text("column"),), ((text("cell"),),)),), unfolded=True),
        ),
    )


def hostile(svg: Callable[[], str] = lambda: SVG) -> Document:
    """Every text that a user could have given tries to break out."""
    return every_block(HOSTILE.format, svg)


def texts() -> list[str]:
    """Everything that `every_block` says, in order."""
    said: list[str] = []

    def note(text: str) -> str:
        said.append(text)
        return text

    every_block(note)
    return said
