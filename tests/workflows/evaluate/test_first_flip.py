"""An evaluation of randomised models: the grid and the worst case by what repeats, and by the first flip."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import stockade as st
from stockade.defenses.registry import DEFENSES
from stockade.report.numbers import plain_percent
from stockade.workflows.evaluate.analysis import Analysis, Row, analyse_row
from stockade.workflows.evaluate.answers import Answers
from stockade.workflows.evaluate.outcomes import CELL_CODEC, Cell, GridRow, example_outcomes
from stockade.workflows.evaluate.page import _title, findings
from tests.attacks.test_first_flip import Flips
from tests.toys import WeightVictim
from tests.workflows.attack.test_two_rules import ATTACK, DATA
from tests.workflows.evaluate.test_measures import answers

INNER = WeightVictim({"good": 3.0, "fine": 3.0, "x": 9.0, "y": 9.0, "z": 9.0}, bias=-2.0)
CLEAN: Answers = answers(*[("a", "a")] * 4)


def grid_row(*cells: Cell) -> GridRow:
    return GridRow("m", "noisy", {0: CLEAN}, {("toy", "direct", 0): cells[0], ("other", "direct", 0): cells[-1]})


TOY = Cell({"0": "success", "1": "failed", "2": "failed", "3": "failed"}, 5.0, frozenset(), frozenset({"0", "1"}))
OTHER = Cell({"0": "failed", "1": "failed", "2": "failed", "3": "untried"}, 5.0, frozenset(), frozenset({"2"}))


def test_the_worst_case_by_both_rules_computed_by_hand() -> None:
    """Repeatedly only the first text is fooled, once the second and the third as well, each by another attack."""
    row = analyse_row(grid_row(TOY, OTHER), None, ["toy", "other"], [0])
    assert isinstance(row, Row)
    assert row.worst.robust_accuracy.value == 0.75
    assert row.worst.first_flip is not None
    assert row.worst.first_flip.robust_accuracy.value == 0.25
    assert row.worst.first_flip.success_rate.value == 0.75
    assert row.worst.first_flip.robust_accuracy.low is not None
    shares = row.attacks["toy"]
    assert (shares.robust_accuracy.value, shares.views["direct"].robust_accuracy.value) == (0.75, 0.75)
    assert shares.first_flip is not None
    assert shares.views["direct"].first_flip is not None
    assert shares.first_flip.robust_accuracy.value == shares.views["direct"].first_flip.robust_accuracy.value == 0.5
    outcomes = [
        (each.outcome, each.first_flip_outcome) for each in example_outcomes([grid_row(TOY, OTHER)], ["toy"], [0])
    ]
    assert outcomes == [("fooled", "fooled"), ("robust", "fooled"), ("robust", "robust"), ("robust", "robust")]


def test_where_a_cell_has_one_rule_there_is_no_worst_case_by_the_other() -> None:
    """Models that always answer alike, and cells that an earlier version made."""
    older = CELL_CODEC.read({"statuses": dict(OTHER.statuses), "mean_queries": 5.0, "undecided": []})
    assert older.first_flips is None
    row = analyse_row(grid_row(TOY, older), None, ["toy", "other"], [0])
    assert isinstance(row, Row)
    assert row.worst.first_flip is None
    assert row.attacks["toy"].views["direct"].first_flip is not None
    assert all(each.first_flip_outcome is None for each in example_outcomes([grid_row(TOY, older)], ["toy"], [0]))


@pytest.mark.parametrize("cell", [TOY, OTHER, Cell({"0": "failed"}, None)])
def test_a_cell_is_read_as_it_was_written(cell: Cell) -> None:
    assert CELL_CODEC.read(json.loads(json.dumps(CELL_CODEC.encode(cell)))) == cell


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Iterator[st.EvaluateResult]:
    DEFENSES.register("flips", paper="a toy", presets={"paper": {}})(Flips)
    out = tmp_path_factory.mktemp("evaluations") / "e"
    yield st.evaluate({"toy": INNER}, DATA, ATTACK, "flips:chance=0.2", out=out, eot_samples=3)
    DEFENSES._loaded.pop("flips")


def test_an_evaluation_holds_both_rules(result: st.EvaluateResult) -> None:
    flips, bare = result.row("flips:chance=0.2"), result.row()
    assert flips.worst.first_flip is not None
    assert flips.worst.robust_accuracy.value is not None
    assert flips.worst.first_flip.robust_accuracy.value is not None
    assert flips.worst.first_flip.robust_accuracy.value < flips.worst.robust_accuracy.value
    assert bare.worst.first_flip is None
    rows: dict[str, Any] = {row["defense"]: row for row in result.summary["rows"]}
    assert set(rows["flips:chance=0.2"]["worst"]["first_flip"]) == {"robust_accuracy", "success_rate"}
    assert "first_flip" not in rows["none"]["worst"]
    assert "first_flip" not in rows["none"]["attacks"][ATTACK]["views"]["direct"]
    for each in result.records():
        assert (each.first_flip_outcome is None) == (each.defense == "none")
        if each.outcome == "fooled" and each.defense != "none":
            assert each.first_flip_outcome == "fooled", "what fools repeatedly fools once"
    verification = result.verify({"toy": INNER})
    assert verification.holds, verification.problems


def test_the_page_has_both_beside_each_other(result: st.EvaluateResult) -> None:
    page = result.document().to_markdown()
    assert "| worst case | first flip | macro F1 |" in page
    assert f"| {ATTACK}, robust | first flip | {ATTACK}, success | first flip |" in page
    assert "The same by the first flip" in page
    flips = result.row("flips:chance=0.2")
    assert flips.worst.first_flip is not None
    flipped = plain_percent(flips.worst.first_flip.robust_accuracy.value)
    assert _title(Analysis((flips,), ())) == (
        "60.0 % of the texts survive every attack (toy in flips:chance=0.2, where half of the answers decide; "
        f"{flipped} by the first flip)"
    )
    (finding,) = findings(Analysis((flips,), ()), ["toy"])
    assert finding.endswith(f"where half of the answers decide; {flipped} by the first flip.")
    columns = result.to_pandas().columns
    assert "first_flip_outcome" in columns
    assert {"first_flip", "hits", "draws"} <= set(next(iter(result.cell_rows())))


def test_transfer_is_counted_by_the_first_answer_and_does_not_go_on(result: st.EvaluateResult) -> None:
    """In the view of the bare model a search sees no noise: it ends with what fools that, which is then sent once."""
    run = result.cell(ATTACK, defense="flips:chance=0.2", view="transfer")
    attacked = [each for each in run.examples if each.status in ("success", "failed")]
    assert all((each.dismissed or 0) <= 1 and each.first_flip_query is None for each in attacked)
    direct = result.cell(ATTACK, defense="flips:chance=0.2").examples
    assert any((each.dismissed or 0) > 1 for each in direct)
    assert all(each.first_flip_query is not None for each in direct if each.first_flip)


def test_an_evaluation_of_models_that_answer_alike_looks_as_ever(tmp_path: Path) -> None:
    plain = st.evaluate({"toy": INNER}, DATA, ATTACK, out=tmp_path / "e")
    page = plain.document().to_markdown()
    assert "first flip" not in page
    assert "half of" not in plain.document().title
    assert "first_flip" not in json.dumps(plain.summary)
