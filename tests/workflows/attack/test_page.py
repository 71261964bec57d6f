"""The page of an attack: its result first, then what it took."""

from __future__ import annotations

import pytest

import stockade as st
from stockade.report.document import Details, Plot, Table
from stockade.report.examples import Examples
from stockade.workflows.attack.page import attack_document
from tests.toys import WeightVictim

DATA = [("good film", "positive"), ("bad film", "negative"), ("plain film", "positive"), ("plain story", "negative")]
"""Under misspelling: robust, fooled, robust, wrong."""


@pytest.fixture(scope="module")
def result() -> st.AttackResult:
    victim = WeightVictim({"good": 2.0, "bad": -2.0}, bias=0.5)
    attacked: st.AttackResult = st.attack(victim, DATA, "deepwordbug@textattack", similarity=False)
    return attacked


def test_the_title_is_the_result(result: st.AttackResult) -> None:
    document = attack_document([result])
    assert document.title == "deepwordbug@textattack fools 33 % of the texts"
    page = document.to_html()
    assert "<title>deepwordbug@textattack fools 33 % of the texts" in page
    first = page.partition('<p class="finding">')[2].partition("</p>")[0]
    assert first.startswith("deepwordbug@textattack: 1 of 3 texts fooled (33 %, 95 % interval 6–79 %)")
    several = attack_document([result, result]).title
    assert several == f"deepwordbug@textattack fools 33 % of the texts of {result.name}"


def test_changed_words_and_queries_are_drawn_and_in_numbers(result: st.AttackResult) -> None:
    document = attack_document([result])
    (plot,) = [block for block in document.blocks if isinstance(block, Plot) and block.name == "effort"]
    assert "changed words" in plot.draw()
    (folded,) = [
        block for block in document.blocks if isinstance(block, Details) and block.summary.startswith("Changed words")
    ]
    assert not isinstance(folded.content, str)
    (table,) = folded.content
    assert isinstance(table, Table)
    queries = sorted(record.queries for record in result.records() if record.status in ("success", "failed"))
    assert table.rows[0][1:4] == ("1", "1", "1")
    assert table.rows[0][4:] == (str(queries[1]), str(queries[2]), str(queries[2]))


def test_examples_can_be_sorted(result: st.AttackResult) -> None:
    (examples,) = [block for block in attack_document([result]).blocks if isinstance(block, Examples)]
    assert examples.sorts == ("changed words", "queries", "similarity")
    success = next(item for item in examples.items if item.status == "success")
    assert success.values["changed words"] == 50.0
    assert "similarity" not in success.values, "it was not measured"


def test_a_page_of_nothing_attacked_says_so() -> None:
    victim = WeightVictim({"good": 2.0}, bias=0.5)
    nothing = st.attack(victim, [("plain story", "negative")], "deepwordbug", similarity=False)
    assert nothing.document().title == "No text was attacked"
    assert "effort" not in [block.name for block in nothing.document().blocks if isinstance(block, Plot)]
