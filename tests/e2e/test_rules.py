"""`stockade rules apply` and `stockade rules test` as a user runs them."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from stockade.lexicon.rules import Rule, RuleSet, write_rules
from tests.e2e.conftest import Stockade

MODEL = ("--labels", "negative,positive")
NAMED = ("--label-map", "1=positive", "--label-map", "0=negative")


@pytest.fixture
def rules(folder: Path) -> Path:
    path = folder / "rules.jsonl"
    found = (
        Rule("positive", "great", "dull", 3.0),
        Rule("positive", "good", "goodness", 2.0),
        Rule("negative", "bad", "fine", 2.0),
        Rule("positive", "splendid", "fine", 1.0),
        Rule("positive", "fun", "sport", -1.0),
    )
    write_rules(path, RuleSet(found))
    return path


def test_texts_are_written_with_their_originals_and_can_be_used_as_data(
    stockade: Stockade, folder: Path, rules: Path
) -> None:
    done = stockade("rules", "apply", "rules.jsonl", "data.csv", "--budget", "0.5", *NAMED, "--out", "changed.csv")
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert "7 of 10 texts changed, written to changed.csv." in done.stderr
    assert "1 of 5 rules have a word that no text of their class contains: positive: splendid -> fine" in done.stderr
    assert "1 of 5 rules have no positive salience and are never applied." in done.stderr
    with (folder / "changed.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 10
    assert rows[0] == {
        "id": "0",
        "text": "a dull and fun film with a goodness heart",
        "label": "positive",
        "original": "a great and fun film with a good heart",
        "changed": "great -> dull; good -> goodness",
    }
    piped = stockade("rules", "apply", "rules.jsonl", "data.csv", "--budget", "0.5", *NAMED)
    assert piped.stdout.replace("\r\n", "\n") == (folder / "changed.csv").read_text()
    done = stockade("attack", "python:victim:predict", "changed.csv", "--attack", "random", *MODEL, "--no-similarity")
    assert done.returncode == 0, done.stderr


def test_a_model_is_attacked_in_a_job_of_its_own(stockade: Stockade, folder: Path, rules: Path) -> None:
    done = stockade(
        "rules", "apply", "rules.jsonl", "data.csv", "--model", "python:victim:predict", *MODEL, "--out", "runs/r"
    )
    assert done.returncode == 0, done.stderr
    assert "texts fooled" in done.stdout
    summary = json.loads((folder / "runs/r/summary.json").read_text())["attacks"]["rules"]
    assert summary["success_rate"]["value"] is not None
    again = stockade("resume", "runs/r", "--trust-run")
    assert again.returncode == 0, again.stderr
    rows = [json.loads(line) for line in stockade("export", "runs/r").stdout.splitlines()]
    assert {row["attack"] for row in rows} == {"rules"}


def test_several_models_are_compared_on_the_same_texts(stockade: Stockade, folder: Path, rules: Path) -> None:
    models = ("--model", "python:victim:predict", "--model", "python:victim:raising")
    done = stockade("rules", "apply", "rules.jsonl", "data.csv", *models, *MODEL, "--judge", "final", "--out", "runs/r")
    assert done.returncode == 0, done.stderr
    rows = json.loads((folder / "runs/r/summary.json").read_text())["rows"]
    first, second = (row["attacks"]["rules"]["robust_accuracy"] for row in rows)
    assert first["value"] == second["value"]
    assert "rules, success" in done.stdout
    assert stockade("resume", "runs/r", "--trust-run").returncode == 0


@pytest.mark.parametrize(
    ("options", "code", "sentence"),
    [
        (("--min-texts", "4", "--max-success", "0.5"), 3, "Cannot tell: "),
        (("--min-texts", "4", "--max-success", "0.05"), 1, "Fail: "),
        (("--max-success", "0.05"), 3, "the rules change only 5 texts that the model gets right, expected at least 30"),
        (("--min-texts", "1", "--max-success", "0.95", "--budget", "0.15"), 0, "Pass: "),
    ],
)
def test_the_exit_code_is_the_verdict(
    stockade: Stockade, rules: Path, options: tuple[str, ...], code: int, sentence: str
) -> None:
    done = stockade("rules", "test", "python:victim:predict", "data.csv", "rules.jsonl", *MODEL, *options)
    assert sentence in done.stdout, done.stdout + done.stderr
    assert done.returncode == code
    assert "changed by rules" in done.stdout


def test_a_test_can_keep_its_attack_and_go_on_with_it(stockade: Stockade, folder: Path, rules: Path) -> None:
    words = ("rules", "test", "python:victim:predict", "data.csv", "rules.jsonl", *MODEL, "--out", "runs/t")
    first = stockade(*words)
    assert (folder / "runs/t/run.sqlite").exists()
    again = stockade(*words, "--resume")
    assert (again.returncode, again.stdout) == (first.returncode, first.stdout)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("apply", "none.jsonl", "data.csv"), "There is no file of rules none.jsonl."),
        (
            ("apply", "rules.jsonl", "data.csv"),
            "for the labels positive, negative, but the data have only texts of 0, 1",
        ),
        (("apply", "rules.jsonl", "data.csv", *NAMED, "--budget", "30"), "The budget is 30, expected a share"),
        (("apply", "rules.jsonl", "data.csv", *NAMED, "--judge", "final"), "add --model MODEL, or leave it out"),
        (("apply", "rules.jsonl", "data.csv", *NAMED, "--out", "no/changed.csv"), "no/changed.csv cannot be written"),
        (("apply", "bad.jsonl", "data.csv"), "bad.jsonl line 1 is not JSON"),
        (("test", "python:victim:predict", "data.csv", "rules.jsonl"), 'rules for the label "positive"'),
        (("test", "python:victim:predict", "data.csv", "rules.jsonl", *MODEL, "--max-success", "20"), "--max-success"),
        (("test", "python:victim:predict", "data.csv", "rules.jsonl", *MODEL, "--min-texts", "0"), "--min-texts is 0"),
        (("test", "python:victim:predict", "data.csv", "rules.jsonl", *MODEL, "--resume"), "name it with --out"),
        (("test", "python:victim:nan", "data.csv", "rules.jsonl", *MODEL), ""),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(
    stockade: Stockade, folder: Path, rules: Path, words: tuple[str, ...], sentence: str
) -> None:
    (folder / "bad.jsonl").write_text("{\n")
    done = stockade("rules", *words)
    assert done.returncode == 2, done.stdout + done.stderr
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith("stockade: ")
    assert done.stderr.count("\n") == 1
