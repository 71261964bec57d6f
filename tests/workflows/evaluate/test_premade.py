"""Adversarial texts that exist already, from files of our own and of other tools."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from stockade.core.errors import DataError
from stockade.workflows.evaluate.inputs import load_premade


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
