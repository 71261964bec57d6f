"""The texts of an evaluation: on its page, in the terminal, in an export; and what was asked for but not measured."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from urllib.parse import unquote

import pytest

import stockade as st
from stockade.core.errors import OptionError
from stockade.defenses.chain import save_defenses
from stockade.defenses.registry import make_defense
from stockade.report.document import Cell
from stockade.report.examples import Examples
from stockade.workflows.evaluate.texts import CELL_LAYOUT, cell_examples
from tests.workflows.evaluate.kit import ATTACK, DATA, victim

pytestmark = pytest.mark.usefixtures("toy_defenses")


def test_the_page_shows_what_fooled_the_models_and_leads_to_the_page_of_every_cell(tmp_path: Path) -> None:
    result = st.evaluate(victim(), DATA, ATTACK, "hiding", out=tmp_path / "e", eot_samples=1)
    page = result.document().write(tmp_path / "e" / "report.html").read_text()
    links = [unquote(link) for link in re.findall('<a href="(models/[^"]*)"', page)]
    assert len(links) == len(list(result.cells())) == 1 + 3
    for key, link in zip(result.cells(), links, strict=True):
        cell_page = tmp_path / "e" / link
        assert cell_page.parent == result.grid.cell_folder(key)
        assert "<del><s>bad</s></del>" in cell_page.read_text()
    (examples,) = [block for block in result.document().blocks if isinstance(block, Examples)]
    assert {item.facets["row"] for item in examples.items} == {"WeightVictim, none", "WeightVictim, hiding"}
    assert all(item.status == "success" for item in examples.items)
    assert "<del><s>bad</s></del>" in page


def test_a_page_leads_nowhere_else() -> None:
    for href in ("https://example.org", "javascript:alert(1)", "/etc/passwd"):
        with pytest.raises(ValueError, match="pages beside it"):
            Cell("x", href=href)


def test_a_few_examples_are_of_many_cells() -> None:
    result = st.evaluate(victim(), [*DATA, ("a bad story", "negative")], ATTACK, "hiding", eot_samples=1)
    labels = [example.label for example in cell_examples(result)]
    assert len(set(labels[:4])) == 4, "the first of each cell before the second of any"
    assert labels[0] == f"WeightVictim, none: {ATTACK}, direct"
    assert len(list(cell_examples(result, status=None))) == 4 * 5
    assert list(cell_examples(result, "pwws")) == []


def test_every_text_of_every_cell_can_be_exported() -> None:
    result = st.evaluate(victim(), DATA, ATTACK, "hiding", seeds=2, eot_samples=1)
    rows = list(result.cell_rows())
    assert len(rows) == 2 * 4 * len(DATA)
    assert all(tuple(row) == CELL_LAYOUT.columns for row in rows)
    fooled = [row for row in rows if row["status"] == "success"]
    assert {(row["defense"], row["view"], row["seed"]) for row in fooled if row["original"] == "bad film"} == {
        ("none", "direct", 0),
        ("none", "direct", 1),
        *(("hiding", view, seed) for view in ("direct", "surrogate", "transfer") for seed in (0, 1)),
    }
    assert CELL_LAYOUT.kinds()["seed"] == CELL_LAYOUT.kinds()["queries"]


def test_what_was_asked_for_and_not_measured_is_a_shortfall() -> None:
    assert st.evaluate(victim(), DATA, ATTACK, "shielding").shortfall() is None
    result = st.evaluate(victim(), DATA, [ATTACK, "hotflip"], "demanding")
    shortfall = result.shortfall()
    assert shortfall is not None
    assert shortfall.startswith("Not everything was measured. WeightVictim, none, hotflip (direct): This attack needs")
    assert "WeightVictim, demanding, everything: demanding needs the model's input vectors" in shortfall


def test_what_there_was_no_time_for_is_a_shortfall(tmp_path: Path) -> None:
    result = st.evaluate(victim(), DATA, ATTACK, out=tmp_path / "e", seconds=1e-9)
    shortfall = result.shortfall()
    assert shortfall is not None
    assert f"not run yet; resume with: stockade resume {tmp_path / 'e'}" in shortfall


def test_what_a_folder_records_is_a_row_of_that_model_alone(tmp_path: Path) -> None:
    model = Path(st.__file__).parent / "artifacts" / "sentiment-cnn"
    for name in ("bare", "masked"):
        shutil.copytree(model, tmp_path / name)
    save_defenses(tmp_path / "masked", [make_defense("ranmask", copies=2)])
    models = [str(tmp_path / "bare"), str(tmp_path / "masked")]
    data = [("a fine film", "positive"), ("a dull film", "negative")]
    result = st.evaluate(models, data, "deepwordbug", eot_samples=1, budget=20)
    assert [(row.model, row.defense) for row in result.analysis.rows] == [
        ("bare", "none"),
        ("masked", "none"),
        ("masked", "own"),
    ]
    assert result.shortfall() is None
    assert "n/a" not in result.document().to_markdown().partition("## Robust accuracy by view")[0]


def test_own_is_refused_where_no_folder_records_a_defense() -> None:
    with pytest.raises(OptionError, match="no folder here records one"):
        st.evaluate(victim(), DATA, ATTACK, "own")
