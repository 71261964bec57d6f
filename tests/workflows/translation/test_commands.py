"""`stockade attack`, `show`, `report`, `verify`, `export` and `resume` on a translator."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from stockade.cli.main import cli
from stockade.core.errors import OptionError

MODULE = """
TABLE = {"a": "ein", "dog": "Hund", "cat": "Katze", "sleeps": "schläft", "the": "der"}


def translate(texts):
    return [" ".join(TABLE.get(word, word) for word in text.split()) for text in texts]
"""


def stockade(*words: str) -> Result:
    return CliRunner().invoke(cli, list(words), standalone_mode=False)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "toy_mt_module.py").write_text(MODULE, encoding="utf-8")
    rows = ["en,de", "the dog sleeps,der Hund schläft", "a cat,eine Katze", "the cat sleeps,die Katze schläft"]
    (tmp_path / "pairs.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words: str) -> Result:
    model = "python:toy_mt_module:translate"
    return stockade("attack", model, "pairs.csv", "--attack", "mt-typo", "--no-similarity", "--out", "run", *words)


def test_a_translator_is_attacked_shown_exported_and_verified(folder: Path) -> None:
    done = run("--attack", "mt-untargeted:sample=4,most=4")
    assert done.exception is None, done.output
    assert "mt-typo" in done.output
    assert "BLEU" in done.output
    assert (folder / "run" / "report.html").exists()
    shown = stockade("show", "run", "--attack", "mt-typo", "--status", "all")
    assert "reference" in shown.output
    assert stockade("verify", "run", "--trust-run").output.endswith("all hold\n")
    assert stockade("export", "run", "--format", "jsonl", "--out", "rows.jsonl").exception is None
    rows = [json.loads(line) for line in Path("rows.jsonl").read_text(encoding="utf-8").splitlines()]
    assert len(rows) == 6
    assert rows[0]["reference"] == "der Hund schläft"
    assert stockade("report", "run", "--format", "md").exception is None
    assert stockade("resume", "run", "--trust-run").exception is None


def test_columns_can_be_named(folder: Path) -> None:
    assert run("--source-column", "en", "--target-column", "de").exception is None
    manifest = json.loads((folder / "run" / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["inputs"]["data"]["columns"] == ["en", "de"]


def test_columns_of_labelled_texts_are_refused(folder: Path) -> None:
    refused = run("--text-column", "en").exception
    assert isinstance(refused, OptionError)
    assert "--text-column is for classifiers" in str(refused)


def test_a_language_without_typos_is_refused_in_one_sentence(folder: Path) -> None:
    refused = run("--source-column", "de", "--target-column", "en").exception
    assert isinstance(refused, OptionError)
    assert "no list of natural typos for the language de" in str(refused)


def test_the_list_of_attacks_says_which_are_for_translators() -> None:
    listed = json.loads(stockade("ls", "attacks", "--json").output)
    tasks = {entry["name"]: entry["task"] for entry in listed}
    assert tasks["mt-keyword"] == "translation"
    assert tasks["pwws"] == "classification"
    assert "attacks translators" in stockade("ls", "attacks").output
