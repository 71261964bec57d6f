"""Adversarial texts that exist already, from files of our own and of other tools."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import stockade as st
from stockade.core.errors import DataError, OptionError
from stockade.workflows.attack.premade import premade_rows
from stockade.workflows.evaluate.premade import attempts_of, load_premade
from tests.toys import WeightVictim
from tests.workflows.evaluate.kit import ATTACK, DATA, victim

pytestmark = pytest.mark.usefixtures("toy_defenses")


@pytest.fixture
def file(tmp_path: Path) -> Callable[[str, str], Path]:
    def write(name: str, content: str) -> Path:
        (tmp_path / name).write_text(content)
        return tmp_path / name

    return write


def test_exports_give_their_successes(file: Callable[[str, str], Path]) -> None:
    rows = [
        '{"id": "0", "status": "success", "label": "negative", "original": "a", "adversarial": "a bda film"}',
        '{"id": "1", "status": "failed", "label": "positive", "original": "b", "adversarial": null}',
        '{"id": "2", "status": "failed", "label": "positive", "original": "b", "adversarial": "closest"}',
    ]
    source = load_premade(file("run.jsonl", "\n".join(rows)))
    assert [(row.text, row.premise, row.label) for row in source.rows()] == [("a bda film", None, "negative")]


def test_pairs_keep_their_premise(file: Callable[[str, str], Path]) -> None:
    row = '{"status": "success", "label": "entailment", "adversarial": "a dgo", "premise": "a dog runs"}'
    (found,) = load_premade(file("run.jsonl", row)).rows()
    assert (found.text, found.premise) == ("a dgo", "a dog runs")


def test_tables_of_other_tools_lose_their_brackets(file: Callable[[str, str], Path]) -> None:
    content = (
        "original_text,perturbed_text,ground_truth_output,result_type\n"
        "a [[bad]] film,a [[bda]] film,0.0,Successful\n"
        "a good film,a good film,1.0,Skipped\n"
    )
    (found,) = load_premade(file("log.csv", content)).rows()
    assert (found.text, found.label) == ("a bda film", 0)


def test_a_column_named_result_says_which_are_successes(file: Callable[[str, str], Path]) -> None:
    content = "original,perturbed,label,result\na bad film,a bda film,0,Successful\na fine film,a fnie film,1,Failed\n"
    (found,) = load_premade(file("log.csv", content)).rows()
    assert found.text == "a bda film"


def test_plain_data_are_taken_whole(file: Callable[[str, str], Path]) -> None:
    rows = list(load_premade(file("plain.csv", "text,label\nbda film,0\ngodo film,1\n")).rows())
    assert [(row.text, row.label) for row in rows] == [("bda film", 0), ("godo film", 1)]


def test_columns_that_were_named_for_the_data_count_where_the_file_has_them(file: Callable[[str, str], Path]) -> None:
    named = {"text_column": "said", "label_column": "meant", "premise_column": None}
    table = file("own.csv", "number,said,meant\n7,bda film,0\n8,godo film,1\n")
    assert [row.input for row in load_premade(table, named).rows()] == ["bda film", "godo film"]
    other = file("plain.csv", "text,label\nbda film,0\n")
    assert [row.input for row in load_premade(other, named).rows()] == ["bda film"]
    changed = file("changed.csv", "adversarial,meant\nbda film,0\n")
    assert [(row.input, row.label) for row in load_premade(changed, named).rows()] == [("bda film", 0)]


def test_files_without_successes_or_labels_are_refused(file: Callable[[str, str], Path]) -> None:
    with pytest.raises(DataError, match="said to be a success"):
        load_premade(file("none.csv", "perturbed_text,label,result_type\nbad film,0,Failed\n"))
    with pytest.raises(DataError, match="no true labels"):
        load_premade(file("bare.csv", "original_text,perturbed_text\na bad film,a bda film\n"))


LONG = [
    ("good fine film", "positive"),  # log-odds 4.5; 2.5 with one word misspelled, which is all that may change
    ("bad film", "negative"),  # fooled
    ("plain film", "positive"),  # no word moves the score: the search ends with the text as it was
    ("plain story", "negative"),  # wrong without any attack
]


def long_run() -> st.AttackResult:
    model = WeightVictim({"good": 2.0, "fine": 2.0, "bad": -2.0}, bias=0.5)
    return st.attack(model, LONG, ATTACK, max_changed=0.5, similarity=False)


def test_a_failed_search_leaves_its_last_attempt() -> None:
    records = {record.id: record for record in long_run().records()}
    assert [records[name].status for name in "0123"] == ["failed", "success", "failed", "skipped"]
    attempt = records["0"].last_attempt
    assert attempt is not None
    words = attempt.split()
    assert len(words) == 3
    assert sum(word in words for word in ("good", "fine")) == 1, "one of the two words was misspelled, and not undone"
    assert records["1"].last_attempt is None
    assert records["2"].last_attempt is None
    assert records["0"].adversarial is None


def test_a_set_may_keep_failed_attempts() -> None:
    run = long_run()
    successes, every = run.premade(), run.premade(keep_failed=True)
    assert [(row["id"], row["attempt_outcome"]) for row in successes] == [("1", "succeeded")]
    assert [(row["id"], row["attempt_outcome"]) for row in every] == [
        ("0", "failed"),
        ("1", "succeeded"),
        ("2", "failed"),
    ]
    assert every[0]["adversarial"] == every[0]["last_attempt"] != "good fine film"
    assert every[2]["adversarial"] == "plain film"
    source = load_premade(every)
    assert attempts_of(source) == ("failed", "succeeded", "failed")
    assert [row.text for row in source.rows()] == [row["adversarial"] for row in every]
    assert attempts_of(load_premade(list(run.rows()))) == ()
    others = [{**row, "attempt_outcome": "succeeded"} for row in every]
    assert load_premade(others).fingerprint() != source.fingerprint()


def test_figures_of_both_kinds_of_texts() -> None:
    """The model is right on both texts that the attack failed on, and wrong on the one that it succeeded on."""
    model = WeightVictim({"good": 2.0, "fine": 2.0, "bad": -2.0}, bias=0.5)
    result = st.evaluate(model, LONG, premade={"made": long_run().premade(keep_failed=True)})
    measures = result.row().premade["made"]
    assert measures.accuracy.value == pytest.approx(2 / 3)
    assert {name: part.accuracy.value for name, part in measures.attempts.items()} == {"succeeded": 0, "failed": 1}
    assert {name: part.n["0"] for name, part in measures.attempts.items()} == {"succeeded": 1, "failed": 2}
    assert measures.positive_f1 is not None
    assert measures.positive_f1.value == pytest.approx(4 / 5)  # both positive texts and the fooled one are called so
    assert measures.macro_f1.value == pytest.approx((4 / 5 + 0) / 2)
    markdown = result.document().to_markdown()
    assert "| made | succeeded | 1 | 0.0 % (0.0–79.3)" in markdown
    assert "| made | failed | 2 | 100.0 %" in markdown
    assert "F1 of positive" in markdown
    (saved,) = (row for row in result.class_rows() if row["attempts"] == "failed")
    assert (saved["texts"], saved["n"], saved["accuracy"], saved["positive_class"]) == ("made", 2, 1.0, "positive")


def test_pre_made_texts_need_no_attack(tmp_path: Path) -> None:
    plain = [("bad film", "negative"), ("good story", "negative")]
    result = st.evaluate(victim(), DATA, defenses="shielding", premade=[plain], out=tmp_path / "e")
    assert result.complete
    assert result.grid.attacks == ()
    document = result.document().to_markdown()
    assert document.startswith("# At best 100.0 % of the pre-made texts are classified correctly")
    assert "in shielding is right on 100.0 % (34.2–100.0) of pre-made (without a defense 50.0 %)" in document
    assert "worst case" not in document
    assert "survive" not in document
    assert st.load(tmp_path / "e").summary == result.summary
    again = st.evaluate(victim(), DATA, defenses="shielding", premade=[plain], out=tmp_path / "e", resume=True)
    assert again.summary["rows"] == result.summary["rows"]
    with pytest.raises(OptionError, match="No attack was named, and no adversarial texts with --premade"):
        st.evaluate(victim(), DATA, out=tmp_path / "f")
    assert not (tmp_path / "f").exists()


def test_rows_are_asked_again_about_pre_made_texts(tmp_path: Path, file: Callable[[str, str], Path]) -> None:
    made = file("made.csv", "text,label\nbad film,negative\ngood story,negative\n")
    data = file("data.csv", "text,label\ngood film,positive\nbad film,negative\n")
    result = st.evaluate({"toy": victim()}, data, premade=made, out=tmp_path / "e")
    assert result.verify().incomplete, "the model is not in the folder"
    assert result.verify({"toy": victim()}).sentence == "2 results checked: all hold"
    (problem,) = result.verify({"toy": WeightVictim({"good": -9.0}, bias=0.5)}).problems
    assert "toy, none, seed 0: other answers to 2 texts of made now" in problem
    made.write_text("text,label\nbad film,negative\n")
    assert "made has other texts or labels now" in result.verify({"toy": victim()}).problems[0]


def test_a_column_of_attempts_with_something_else_is_refused(file: Callable[[str, str], Path]) -> None:
    with pytest.raises(DataError, match='says "maybe" of text 1 in "attempt_outcome", expected succeeded or failed'):
        load_premade(file("odd.csv", "adversarial,label,attempt_outcome\na,0,failed\nb,1,maybe\n"))


def test_texts_that_were_not_attacked_are_in_no_set() -> None:
    rows = [
        {"status": status, "adversarial": None, "original": "a", "last_attempt": None}
        for status in ("skipped", "error")
    ]
    assert list(premade_rows(rows, keep_failed=True)) == []
