"""Bad input gets one sentence and exit code 2, and loses nothing."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.conftest import Stockade

Refused = Callable[..., str]
GOOD = ("python:victim:predict", "data.jsonl", "--no-similarity", "--attack", "pwws")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["python:victim:predict", "missing.csv"], "missing.csv"),
        (
            ["python:victim:predict", "data.csv", "--label-column", "sentiment"],
            'no column "sentiment" (found: text, label)',
        ),
        (["python:victim:predict", "data.csv", "--text-column", "review"], 'no column "review"'),
        (["python:victim:predict", "hf:"], "hf:"),
        (["python:nowhere:predict", "data.csv"], "nowhere"),
        (["python:victim:predikt", "data.csv"], "predikt"),
        (["builtin:sentiment-cn", "data.csv"], 'Did you mean "sentiment-cnn"?'),
        (["./no-such-folder", "data.csv"], "no-such-folder"),
        (["python:victim:predict", "data.csv", "--limit", "0"], "limit"),
        (["python:victim:predict", "data.csv", "--budget", "0"], "--budget is 0, expected a whole number from 1 up"),
        (["python:victim:predict", "data.csv", "--max-changed", "20"], "--max-changed is 20, expected a share"),
        (["python:victim:predict", "data.csv", "--max-changed", "0"], "--max-changed is 0, expected a share"),
        (["python:victim:nan", "data.csv"], "NaN"),
        (["python:victim:deep", "data.csv"], "shape (1, 1, 2)"),
        (["python:victim:generous", "data.csv"], "2 rows"),
        (["python:victim:logits", "data.csv"], "logits"),
        (["python:victim:nothing", "data.csv"], "None"),
        (["python:victim:predict", "data.csv", "--targeted", "maybe"], "maybe"),
    ],
)
def test_what_was_wrong_is_said_in_one_sentence(
    refused: Refused, folder: Path, words: list[str], sentence: str
) -> None:
    message = refused("attack", *words, "--no-similarity", "--attack", "pwws", "--out", "runs/x")
    assert sentence in message


def test_an_unknown_label_is_named(refused: Refused, folder: Path) -> None:
    (folder / "odd.csv").write_text("text,label\ngood film,1\nbad film,7\n")
    message = refused("attack", "python:victim:predict", "odd.csv", "--attack", "pwws", "--out", "runs/x")
    assert "7" in message


@pytest.mark.parametrize("content", ["", "text,label\n"])
def test_an_empty_file_is_named(refused: Refused, folder: Path, content: str) -> None:
    (folder / "empty.csv").write_text(content)
    assert "empty.csv" in refused("attack", "python:victim:predict", "empty.csv", "--attack", "pwws", "--out", "runs/x")


def test_a_megabyte_in_one_text_is_refused_without_eating_the_machine(
    refused: Refused, stockade: Stockade, folder: Path
) -> None:
    (folder / "big.jsonl").write_text(json.dumps({"text": "a great film " * 80_000, "label": 1}) + "\n")
    message = refused(
        "attack", "python:victim:predict", "big.jsonl", "--no-similarity", "--attack", "pwws", "--out", "runs/x"
    )
    assert "240,000 words, more than the limit of 5,000" in message
    with (folder / "big.jsonl").open("a") as stream:
        stream.write(json.dumps({"text": "a great film", "label": 1}) + "\n")
    result = stockade(
        "attack", "python:victim:predict", "big.jsonl", "--no-similarity", "--attack", "pwws", "--out", "runs/y"
    )
    assert result.returncode == 0
    statuses = [json.loads(line)["status"] for line in stockade("export", "runs/y").stdout.splitlines()]
    assert statuses[0] == "error"
    assert statuses[1] != "error"


def test_an_unknown_attack_is_answered_with_the_nearest(refused: Refused) -> None:
    message = refused("attack", "python:victim:predict", "data.csv", "--attack", "deepwordbg", "--out", "runs/x")
    assert 'Did you mean "deepwordbug"?' in message


def test_an_unknown_command_is_answered_with_the_nearest(refused: Refused) -> None:
    assert 'Did you mean "attack"?' in refused("atack")


def test_nothing_named_to_attack(refused: Refused) -> None:
    assert "--out" in refused("attack", "python:victim:predict", "data.csv", "--attack", "pwws", "--resume")
    assert "MODEL and DATA are missing" in refused("attack", "--attack", "pwws")
    assert "--attack NAME" in refused("attack", "python:victim:predict", "data.csv")


@pytest.mark.skipif(os.geteuid() == 0, reason="root can write everywhere, also into read-only folders")
def test_a_read_only_place_is_refused(refused: Refused, folder: Path) -> None:
    (folder / "locked").mkdir(mode=0o500)
    assert "cannot be written" in refused("attack", *GOOD, "--out", "locked/x")


def test_an_output_below_a_file_is_refused(refused: Refused, folder: Path) -> None:
    assert "cannot be written" in refused("attack", *GOOD, "--out", "data.csv/x")
    assert "exists already" in refused("attack", *GOOD, "--out", "data.csv")


def test_an_existing_run_is_never_overwritten(refused: Refused, stockade: Stockade, folder: Path) -> None:
    stockade("attack", *GOOD, "--out", "runs/a")
    before = stockade("export", "runs/a").stdout
    assert "--resume" in refused("attack", *GOOD, "--out", "runs/a")
    assert stockade("export", "runs/a").stdout == before


def test_a_folder_with_other_files_is_left_alone(refused: Refused, folder: Path) -> None:
    assert "exists already" in refused("attack", *GOOD, "--out", ".")


def test_a_corrupt_run_file_is_said_so_and_left_as_it_is(refused: Refused, stockade: Stockade, folder: Path) -> None:
    stockade("attack", *GOOD, "--out", "runs/a")
    path = folder / "runs/a/run.sqlite"
    path.write_bytes(b"this is not a database at all" * 100)
    for words in (
        ["export", "runs/a"],
        ["report", "runs/a"],
        ["show", "runs/a"],
        ["attack", "--resume", "--out", "runs/a", "--trust-run"],
        ["resume", "runs/a", "--trust-run"],
    ):
        message = refused(*words)
        assert "run.sqlite cannot be read" in message
    assert path.read_bytes().startswith(b"this is not a database")


def test_a_corrupt_manifest_is_said_so(refused: Refused, stockade: Stockade, folder: Path) -> None:
    stockade("attack", *GOOD, "--out", "runs/a")
    (folder / "runs/a/manifest.json").write_text('{"schema": 1')
    assert "manifest.json cannot be read" in refused("attack", "--resume", "--out", "runs/a")
    assert "manifest.json cannot be read" in refused("report", "runs/a")


def test_resuming_with_another_configuration_is_refused_with_the_difference(
    refused: Refused, stockade: Stockade, folder: Path
) -> None:
    stockade("attack", *GOOD, "--limit", 5, "--out", "runs/a")
    message = refused("attack", *GOOD, "--limit", 6, "--resume", "--out", "runs/a")
    assert "limit was 5, now 6" in message
    with (folder / "data.jsonl").open("a") as stream:
        stream.write(json.dumps({"text": "one more good row", "label": 1}) + "\n")
    assert "data.fingerprint" in refused("attack", "--resume", "--out", "runs/a", "--trust-run")


def test_a_run_of_a_newer_format_is_refused(refused: Refused, stockade: Stockade, folder: Path) -> None:
    stockade("attack", *GOOD, "--out", "runs/a")
    with sqlite3.connect(folder / "runs/a/run.sqlite") as connection:
        connection.execute("PRAGMA user_version=99")
    assert "format 99" in refused("export", "runs/a")


def test_what_is_not_a_run(refused: Refused, folder: Path) -> None:
    assert "no such folder" in refused("report", "runs/none")
    (folder / "empty").mkdir()
    assert "not a run" in refused("export", "empty")


def test_a_broken_config_file(refused: Refused, folder: Path) -> None:
    (folder / "bad.toml").write_text("attack = [")
    assert "not a TOML file" in refused("attack", *GOOD[:2], "--config", "bad.toml")
    (folder / "odd.toml").write_text("atack = 1")
    assert "does not know" in refused("attack", *GOOD[:2], "--config", "odd.toml")
