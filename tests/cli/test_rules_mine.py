"""`stockade rules mine` and `explain` on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from stockade.cli.main import cli
from stockade.core.errors import OptionError, StockadeError

DATA = [("a funny film", "positive"), ("so funny", "positive"), ("a dull film", "negative"), ("dull", "negative")]


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    lines = [json.dumps({"text": text, "label": label}) for text, label in DATA]
    (tmp_path / "films.jsonl").write_text("\n".join(lines))
    (tmp_path / "toy.py").write_text(
        "def predict(texts):\n    return [[0.2, 0.8] if 'funny' in text else [0.7, 0.3] for text in texts]\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def stockade(*words: str) -> Result:
    return CliRunner().invoke(cli, words, standalone_mode=False)


def test_rules_are_mined_reported_exported_explained_and_the_job_is_not_run_twice(desk: Path) -> None:
    mined = stockade(
        "rules", "mine", "python:toy:predict", "films.jsonl", "--labels", "negative,positive", "--max-count", "all",
        "--out", "runs/r",
    )  # fmt: skip
    assert mined.exception is None, mined.output
    assert "rules have a positive salience" in mined.output
    assert (desk / "runs/r/rules.jsonl").exists()
    assert (desk / "runs/r/report.html").exists()
    exported = stockade("export", "runs/r", "--format", "csv", "--out", "rules.csv")
    assert exported.exception is None
    assert "positive,funny,laughable" in (desk / "rules.csv").read_text()
    again = stockade("resume", "runs/r", "--trust-run")
    assert again.exception is None, again.output
    explained = stockade("rules", "explain", "runs/r", "films.jsonl", "--top", "3")
    assert explained.exception is None, explained.output
    assert "The texts behind them" in explained.output
    for name, expected in (("bias.html", "<!doctype html>"), ("bias.md", "# What"), ("bias.json", "{")):
        assert stockade("rules", "explain", "runs/r", "films.jsonl", "--out", name).exception is None
        assert (desk / name).read_text().startswith(expected)


def test_word_counts_need_no_model(desk: Path) -> None:
    mined = stockade("rules", "mine", "films.jsonl", "--method", "pmi", "--out", "runs/pmi")
    assert mined.exception is None, mined.output
    assert "mined by pmi" in mined.output


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("mine",), "MODEL and DATA are missing"),
        (("mine", "films.jsonl"), "at least one model"),
        (("mine", "python:toy:predict", "films.jsonl", "--method", "pmi"), "come from the data alone"),
        (("mine", "python:toy:predict", "films.jsonl", "--max-count", "few"), "--max-count is few, expected a whole"),
        (("mine", "python:toy:predict", "films.jsonl", "--max-count", "0"), "--max-count is 0, expected a whole"),
        (("explain", "nothing.jsonl", "films.jsonl"), "nothing.jsonl"),
        (("explain", "rules.jsonl", "films.jsonl", "--out", "bias.pdf"), "no known ending"),
    ],
)
def test_bad_input_is_one_sentence(desk: Path, words: tuple[str, ...], sentence: str) -> None:
    failed = stockade("rules", *words)
    assert isinstance(failed.exception, StockadeError)
    assert sentence in str(failed.exception)


def test_options_beside_resume_are_refused(desk: Path) -> None:
    failed = stockade("rules", "mine", "--resume", "--out", "runs/r", "--min-count", "5")
    assert isinstance(failed.exception, OptionError)
    assert "--min-count has no effect" in str(failed.exception)
