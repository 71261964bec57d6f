"""Heat maps: depth of colours, groups, what a cell says under the pointer, and maps that do not fit."""

from __future__ import annotations

import io
import json
import re

import pytest
from rich.console import Console

from stockade.report.document import Document
from stockade.report.heat_map import MOST_WRITTEN, HeatMap


def square(size: int, **fields: object) -> HeatMap:
    """Shares that grow along each row from 0 to almost 1, with the same names for rows and columns."""
    names = [f"model-{number}" for number in range(size)]
    values = [[column / size for column in range(size)] for _ in names]
    return HeatMap(rows=names, columns=names, values=values, **fields)  # type: ignore[arg-type]


def shown(block: HeatMap) -> Document:
    return Document(title="t", blocks=(block,))


def test_colours_are_as_deep_as_numbers_are_large() -> None:
    block = HeatMap(rows=("a",), columns=("b", "c", "d", "e"), values=((0.2, -0.4, None, 0.0),))
    ((first, second, third, fourth),) = block.cells
    assert [cell.depth for cell in (first, second, third, fourth)] == [0.5, -1.0, None, 0.0]
    assert [cell.text for cell in (first, second, third, fourth)] == ["20", "-40", "", "0"]
    assert HeatMap(rows=("a",), columns=("b",), values=((0.2,),), highest=0.1).cells[0][0].depth == 1.0
    assert HeatMap(rows=("a",), columns=("b",), values=((0.0,),)).cells[0][0].depth == 0.0
    assert HeatMap(rows=("a",), columns=("b",), values=((-0.004,),), percent=False, digits=2).cells[0][0].text == "0.00"


def test_a_cell_says_which_pair_it_is_and_its_number_or_what_it_was_given() -> None:
    block = HeatMap(rows=("a",), columns=("b", "c"), values=((0.25, None),))
    assert [cell.hover for cell in block.cells[0]] == ["a → b: 25 %", "a → c: not measured"]
    said = HeatMap(rows=("a",), columns=("b",), values=((0.25,),), hovers=(("25 % of 4 texts",),))
    assert said.cells[0][0].hover == "a → b: 25 % of 4 texts"
    assert 'title="a → b: 25 % of 4 texts"' in shown(said).to_html()


def test_groups_begin_where_their_name_changes() -> None:
    block = square(4, column_groups=("x", "x", "y", "x"), row_groups=("x", "x", "y", "x"))
    assert list(block.groups_of(block.column_groups)) == [("x", 0, 2), ("y", 2, 1), ("x", 3, 1)]
    assert [cell.starts_group for cell in block.cells[0]] == [False, False, True, True]
    page = shown(block).to_html()
    assert re.findall(r'scope="colgroup" colspan="(\d)">(\w)', page) == [("2", "x"), ("1", "y"), ("1", "x")]
    assert re.findall(r'rowspan="(\d)"><span>(\w)', page) == [("2", "x"), ("1", "y"), ("1", "x")]


def test_large_maps_show_colours_alone_and_say_so_where_they_do_not_fit() -> None:
    small, large = square(MOST_WRITTEN), square(MOST_WRITTEN + 1)
    assert ">50</td>" in shown(small).to_html()
    page = shown(large).to_html()
    assert not re.search(r"<td[^>]*>\d+</td>", page)
    assert 'title="model-0 → model-30: 97 %"' in page
    stream = io.StringIO()
    shown(large).to_terminal(Console(file=stream, width=100, color_system=None))
    assert "31 × 31 numbers, too many for this screen: they are on the page." in stream.getvalue()
    assert shown(large).to_markdown().count("model-30 |") == 2


def test_the_terminal_numbers_models_that_are_rows_and_columns_once() -> None:
    stream = io.StringIO()
    shown(square(2)).to_terminal(Console(file=stream, width=100, color_system=None))
    assert [line.rstrip() for line in stream.getvalue().splitlines()[-3:]] == [
        "%         1  2",
        "1 model-0 0 50",
        "2 model-1 0 50",
    ]


def test_json_has_the_numbers() -> None:
    (block,) = json.loads(shown(HeatMap(rows=("a",), columns=("b", "c"), values=((0.25, None),))).to_json())["blocks"]
    assert (block["block"], block["values"]) == ("heatmap", [[0.25, None]])


def test_numbers_that_do_not_fit_the_names_are_refused() -> None:
    with pytest.raises(ValueError, match="for 1 × 2 names"):
        HeatMap(rows=("a",), columns=("b", "c"), values=((0.25,),))
    with pytest.raises(ValueError, match="1 groups for 2 names"):
        HeatMap(rows=("a",), columns=("b", "c"), values=((0.25, 0.5),), column_groups=("x",))
