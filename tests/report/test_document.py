"""A document: what JSON holds, what is brief, how files are written, what is refused."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from stockade.core.errors import OptionError
from stockade.report.document import (
    Details,
    Document,
    Heading,
    Note,
    Paragraph,
    Plot,
    Table,
    code,
    spans,
    without_empty_sections,
)
from stockade.report.examples import Example, Examples, Filter
from stockade.report.render_json import indented
from tests.report.documents import every_block, undrawable


def test_json_is_the_data_behind_the_document() -> None:
    data = {"n": 3, "rate": float("nan"), "attacks": ("a", "b"), 1: None}
    document = Document(title="t", blocks=(Plot(undrawable),), data=data)
    assert json.loads(document.to_json()) == {"n": 3, "rate": None, "attacks": ["a", "b"], "1": None}


def test_json_of_a_document_without_data_has_every_block() -> None:
    content = json.loads(every_block(svg=undrawable).to_json())
    assert content["title"] == "title"
    assert content["about"] == "Model model on data"
    kinds = [block["block"] for block in content["blocks"]]
    assert set(kinds) == {
        *("note", "paragraph", "heading", "table", "plot", "heatmap", "bullets", "words", "examples", "details"),
    }
    table = next(block for block in content["blocks"] if block["block"] == "table")
    assert table["rows"][0] == [
        "pwws",
        {"block": "cell", "text": "82.0 %", "detail": "69–90", "tone": "bad", "href": ""},
    ]
    assert next(block for block in content["blocks"] if block["block"] == "plot") == {
        "block": "plot",
        "name": "rates",
        "caption": "plot",
    }


def test_the_brief_document_is_findings_warnings_and_tables() -> None:
    brief = every_block(svg=undrawable).brief()
    assert [type(block).__name__ for block in brief.blocks] == ["Note", "Note", "Note", "Heading", "Table"]
    assert [block.kind for block in brief.blocks if isinstance(block, Note)] == ["finding", "finding", "warning"]


def test_headings_with_nothing_below_are_empty_sections() -> None:
    part, end = Heading("part", 3), Heading("end")
    text = Paragraph("text")
    assert without_empty_sections([Heading("empty"), Heading("full"), part, text, Heading("no", 3), end]) == (
        Heading("full"),
        part,
        text,
    )


@pytest.mark.parametrize(("format", "begins"), [("html", "<!doctype html>"), ("md", "# title"), ("json", "{")])
def test_a_document_is_written_in_each_format(tmp_path: Path, format: str, begins: str) -> None:
    path = every_block().write(tmp_path / "report", format)
    assert path == tmp_path / "report"
    assert path.read_text(encoding="utf-8").startswith(begins)


def test_a_format_that_there_is_not_and_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    document = Document(title="t", blocks=())
    with pytest.raises(
        OptionError, match=r'There is no report format "htm" \(found: html, json, md\)\. Did you mean "html"'
    ):
        document.write(tmp_path / "x", "htm")
    with pytest.raises(
        OptionError, match=r"x cannot be written \(No such file or directory\)\. Choose another folder\."
    ):
        document.write(tmp_path / "none" / "x")
    with pytest.raises(OptionError, match=r"cannot be written \(Is a directory\)"):
        document.write(tmp_path)


def test_a_row_that_does_not_fit_its_columns_is_refused() -> None:
    with pytest.raises(ValueError, match="a row of 1 cells under 2 columns"):
        Table(("a", "b"), (("1", "2"), ("3",)))


def test_prose_is_spans_whichever_way_it_is_written() -> None:
    assert [(span.text, span.style) for span in spans(("a ", code(3)))] == [("a ", "plain"), ("3", "code")]
    assert spans("a") == spans(("a",))


def test_the_preview_has_a_few_of_each_label_among_the_selected() -> None:
    items = [
        Example(text=f"{label}{number}", label=label, facets={"status": "success" if number % 2 else "failed"})
        for label in "ab"
        for number in range(8)
    ]
    examples = Examples(items=items, filters=(Filter("status", "Status", selected="success"),), preview=2)
    assert [item.text for item in examples.previewed()] == ["a1", "a3", "b1", "b3"]
    assert examples.options("status") == ("failed", "success")


def test_long_lists_of_a_manifest_are_counted() -> None:
    manifest = {"seed": 0, "data": {"ids": [str(number) for number in range(1_200)], "labels": ["neg", "pos"]}}
    assert json.loads(indented(manifest)) == {"seed": 0, "data": {"ids": "1,200 items", "labels": ["neg", "pos"]}}


def test_only_html_imports_a_plotting_library() -> None:
    program = (
        "import sys\n"
        "from stockade.report.document import Document, Plot\n"
        "def draw():\n"
        "    from stockade.report.figures import draw_plot\n"
        "    return draw_plot('p', (2, 1), lambda axes: None)\n"
        "document = Document(title='t', blocks=(Plot(draw),))\n"
        "document.print(), document.to_markdown(), document.to_json()\n"
        "assert 'matplotlib' not in sys.modules and 'torch' not in sys.modules\n"
        "document.to_html()\n"
        "assert 'matplotlib' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, timeout=120)


def test_folded_blocks_are_not_part_of_the_brief_document() -> None:
    folded = Details("more", (Table(("a",), (("1",),)),))
    assert Document(title="t", blocks=(Heading("h"), folded)).brief().blocks == ()


def test_a_long_table_is_whole_on_the_page_and_previewed_elsewhere() -> None:
    rows = tuple((f"rule {number}", str(number)) for number in range(30))
    document = Document(title="rules", blocks=(Table(("rule", "h"), rows, caption="By salience.", preview=2),))
    assert document.to_html().count("<tr>") == 31
    for short in (document.to_markdown(), document.to_html_fragment()):
        assert "rule 1" in short
        assert "rule 2" not in short
        assert "By salience. The first 2 of 30 rows; the page (HTML) has all." in short
    whole = Table(("rule", "h"), rows, preview=30)
    assert whole.previewed() is whole
    assert Table(("rule", "h"), rows).previewed().rows == rows
    assert Table(("rule", "h"), rows, preview=3).previewed().caption == (
        "The first 3 of 30 rows; the page (HTML) has all."
    )
