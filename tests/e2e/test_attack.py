"""`stockade attack` from the first word to the last file."""

from __future__ import annotations

import csv
import io
import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.e2e.conftest import ROWS, Stockade

FIELDS = (
    *("id", "attack", "status", "reason", "label", "original", "adversarial"),
    *("original_prediction", "adversarial_prediction", "original_scores", "adversarial_scores"),
    *("queries", "rows", "edits", "perturbed_percent", "similarity"),
)
ATTACK = ("attack", "python:victim:predict", "data.jsonl", "--no-similarity")


def test_a_run_has_its_files_and_numbers(stockade: Stockade, folder: Path) -> None:
    result = stockade(*ATTACK, "--attack", "pwws", "--attack", "deepwordbug", "--out", "runs/a")
    assert result.returncode == 0, result.stderr
    assert "pwws" in result.stdout
    assert "deepwordbug" in result.stdout
    run = folder / "runs/a"
    assert {"manifest.json", "summary.json", "report.html", "run.sqlite"} <= {path.name for path in run.iterdir()}
    summary = json.loads((run / "summary.json").read_text())
    assert summary["schema"] == 1
    assert summary["complete"] is True
    numbers = summary["attacks"]["pwws"]
    assert numbers["n"] == len(ROWS)
    assert numbers["n"] == numbers["attacked"] + numbers["skipped"]
    assert numbers["attacked"] == numbers["succeeded"] + numbers["failed"]
    assert numbers["succeeded"] > 0
    success, clean = numbers["success_rate"]["value"], numbers["clean_accuracy"]["value"]
    assert success == pytest.approx(1 - numbers["robust_accuracy"]["value"] / clean)
    manifest = json.loads((run / "manifest.json").read_text())
    assert manifest["spec"]["attacks"][0]["options"]["unknown"] == "[UNK]"
    assert manifest["spec"]["seed"] == 0
    assert manifest["inputs"]["data"]["fingerprint"]
    assert manifest["inputs"]["model"]["fingerprint"]


def test_exports_hold_the_documented_fields(stockade: Stockade, folder: Path) -> None:
    stockade(*ATTACK, "--attack", "pwws", "--out", "runs/a")
    lines = stockade("export", "runs/a").stdout.splitlines()
    rows = [json.loads(line) for line in lines]
    assert list(rows[0])[: len(FIELDS)] == list(FIELDS)
    assert [row["id"] for row in rows] == [str(i) for i in range(len(ROWS))]
    success = next(row for row in rows if row["status"] == "success")
    assert success["adversarial"] != success["original"]
    assert success["edits"][0].keys() == {"op", "index", "before", "after", "side"}
    assert success["adversarial_prediction"] != success["label"]
    assert stockade("export", "runs/a", "--format", "parquet", "--out", "a.parquet").returncode == 0
    assert pq.read_table(folder / "a.parquet").to_pylist()[0] == rows[0]
    table = list(csv.DictReader(io.StringIO(stockade("export", "runs/a", "--format", "csv").stdout)))
    assert json.loads(table[0]["original_scores"]) == rows[0]["original_scores"]


def test_a_limit_takes_the_same_seeded_sample_every_time(stockade: Stockade) -> None:
    for name in ("a", "b"):
        stockade(*ATTACK, "--attack", "deepwordbug", "--limit", 5, "--out", f"runs/{name}")
    stockade(*ATTACK, "--attack", "deepwordbug", "--limit", 5, "--seed", 1, "--out", "runs/c")
    first, second, other = (stockade("export", f"runs/{name}").stdout for name in "abc")
    assert first == second
    assert [json.loads(line)["id"] for line in first.splitlines()] != [
        json.loads(line)["id"] for line in other.splitlines()
    ]


def test_show_verify_and_report_read_the_run(stockade: Stockade, folder: Path) -> None:
    stockade(*ATTACK, "--attack", "pwws", "--out", "runs/a")
    assert "→" in stockade("show", "runs/a").stdout
    assert "--trust-run" in stockade("verify", "runs/a").stderr  # python:victim is code that only the folder names
    verified = stockade("verify", "runs/a", "--trust-run")
    assert verified.returncode == 0, verified.stdout
    assert "all hold" in verified.stdout
    assert stockade("report", "runs/a", "--format", "md", "--out", "r.md").returncode == 0
    assert "| pwws |" in (folder / "r.md").read_text()
    assert (
        json.loads((folder / stockade("report", "runs/a", "--format", "json").stdout.strip()).read_text())["run"] == "a"
    )


def test_verify_finds_a_run_that_was_tampered_with(stockade: Stockade, folder: Path) -> None:
    import sqlite3

    stockade(*ATTACK, "--attack", "pwws", "--out", "runs/a")
    with sqlite3.connect(folder / "runs/a/run.sqlite") as connection:
        row = connection.execute("SELECT rowid, document FROM results WHERE status = 'success'").fetchone()
        record = json.loads(row[1])
        record["adversarial"] = record["original"]
        connection.execute("UPDATE results SET document = ? WHERE rowid = ?", (json.dumps(record), row[0]))
    verified = stockade("verify", "runs/a", "--trust-run")
    assert verified.returncode == 1
    assert "recorded" in verified.stdout


def test_one_text_the_model_raises_on_is_recorded_and_the_rest_attacked(stockade: Stockade, folder: Path) -> None:
    with (folder / "data.jsonl").open("a") as stream:
        stream.write(json.dumps({"text": "poison in a great film", "label": 1}) + "\n")
    result = stockade(
        "attack", "python:victim:raising", "data.jsonl", "--no-similarity", "--attack", "pwws", "--out", "runs/a"
    )
    assert result.returncode == 0
    assert "1 examples ended in an error" in result.stdout
    rows = [json.loads(line) for line in stockade("export", "runs/a").stdout.splitlines()]
    errors = [row for row in rows if row["status"] == "error"]
    assert [row["reason"] for row in errors] == ["the model raised RuntimeError: cannot digest this"]
    assert json.loads((folder / "runs/a/summary.json").read_text())["attacks"]["pwws"]["n"] == len(ROWS)


def test_a_pair_task_changes_only_the_hypothesis(stockade: Stockade, folder: Path) -> None:
    (folder / "pairs.csv").write_text(
        'premise,hypothesis,label\n"A man runs.","a great film",1\n"It rains.","a dull bad film",0\n'
    )
    result = stockade(
        "attack", "python:victim:pairs", "pairs.csv", "--no-similarity", "--attack", "deepwordbug", "--out", "runs/p"
    )
    assert result.returncode == 0, result.stderr
    rows = [json.loads(line) for line in stockade("export", "runs/p").stdout.splitlines()]
    assert rows[0]["premise"] == "A man runs."
    assert rows[0]["original"] == "a great film"


def test_the_premise_of_a_pair_is_attacked_if_that_is_asked_for(stockade: Stockade, folder: Path) -> None:
    (folder / "pairs.csv").write_text('premise,hypothesis,label\n"A great film.","A man runs.",1\n')
    (folder / "judge.py").write_text(
        "def judge(pairs):\n    return [[0.1, 0.9] if 'great film' in first else [0.8, 0.2] for first, _ in pairs]\n"
    )
    arguments = ("attack", "python:judge:judge", "pairs.csv", "--no-similarity", "--attack", "deepwordbug")
    result = stockade(*arguments, "--sides", "premise", "--out", "runs/p")
    assert result.returncode == 0, result.stderr
    (row,) = [json.loads(line) for line in stockade("export", "runs/p").stdout.splitlines()]
    assert row["status"] == "success"
    assert (row["premise"], row["adversarial"]) == ("A great film.", "A man runs.")
    assert row["adversarial_premise"] not in (None, "A great film.")
    assert row["edits"][0]["side"] == "premise"
    assert "premise: A " in stockade("show", "runs/p").stdout
    assert stockade("verify", "runs/p", "--trust-run").returncode == 0
    wrong = stockade(*arguments, "--sides", "left")
    assert wrong.returncode == 2
    assert "'left' is not one of 'hypothesis', 'premise', 'both'" in wrong.stderr
    single = stockade(
        "attack", "python:victim:predict", "data.jsonl", "--attack", "deepwordbug", "--sides", "both", "--out", "runs/s"
    )
    assert single.returncode == 2
    assert "--sides both is for pairs, and the data are single texts" in single.stderr
    assert not (folder / "runs/s").exists()


def test_labels_below_chance_are_pointed_out(stockade: Stockade, folder: Path) -> None:
    swapped = [json.dumps({"text": text, "label": 1 - label}) for text, label in ROWS]
    (folder / "swapped.jsonl").write_text("\n".join(swapped))
    result = stockade(
        "attack", "python:victim:predict", "swapped.jsonl", "--no-similarity", "--attack", "pwws", "--out", "runs/s"
    )
    assert "are the labels swapped?" in result.stdout
    mapped = stockade(
        "attack", "python:victim:predict", "swapped.jsonl", "--no-similarity", "--attack", "pwws", "--out", "runs/m",
        "--label-map", "0=1", "--label-map", "1=0",
    )  # fmt: skip
    assert "swapped" not in mapped.stdout


def test_options_from_a_file_and_the_command_line_wins(stockade: Stockade, folder: Path) -> None:
    (folder / "run.toml").write_text(
        'attack = ["pwws", "deepwordbug"]\nlimit = 4\nsimilarity = false\n'
        '[attack_options.deepwordbug]\ntransforms = ["swap"]\n'
    )
    result = stockade(
        "attack", "python:victim:predict", "data.csv", "--config", "run.toml", "--limit", 3, "--out", "runs/t"
    )
    assert result.returncode == 0, result.stderr
    manifest = json.loads((folder / "runs/t/manifest.json").read_text())
    assert manifest["inputs"]["data"]["size"] == 3
    options = {attack["name"]: attack["options"] for attack in manifest["spec"]["attacks"]}
    assert options["deepwordbug"]["transforms"] == ["swap"]


def test_the_tool_answers_at_once_and_without_torch(stockade: Stockade) -> None:
    import sys

    for words in (["--help"], ["attack", "--help"], ["ls"], ["ls", "attacks", "--json"]):
        code = (
            f"import sys; sys.argv = ['stockade', *{words!r}]\n"
            "import atexit; atexit.register(lambda: print('TORCH', 'torch' in sys.modules))\n"
            "from stockade.cli.main import main; main()"
        )
        result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stderr
        assert "TORCH False" in result.stdout


def test_one_sentence_and_data_without_labels(stockade: Stockade, folder: Path, refused: Callable[..., str]) -> None:
    words = ("attack", "python:victim:predict", "--attack", "deepwordbug", "--no-similarity")
    done = stockade(*words, "--text", "a good film", "--out", "runs/one")
    assert done.returncode == 0, done.stderr
    assert "1 of 1 predictions changed" in done.stdout
    assert "[-good-]{+" in done.stdout, "the text itself is what one wants to see"
    (folder / "bare.csv").write_text("text\na good film\na dull film\n")
    for flag in ("--unlabelled", "--no-labels"):
        done = stockade(*words[:2], "bare.csv", *words[2:], flag, "--out", f"runs/{flag}")
        assert done.returncode == 0, done.stderr
        assert "predictions changed" in done.stdout
    assert "Both --text and DATA (bare.csv)" in refused(*words[:2], "bare.csv", *words[2:], "--text", "a good film")
    assert stockade("resume", "runs/one", "--trust-run").returncode == 0


def test_files_as_other_programs_write_them(stockade: Stockade, folder: Path, refused: Callable[..., str]) -> None:
    (folder / "excel.csv").write_bytes("text;label\na good café;1\n;0\na dull café;0\n".encode("cp1252"))
    words = ("attack", "python:victim:predict", "excel.csv", "--attack", "deepwordbug", "--no-similarity")
    assert "--encoding" in refused(*words)
    reading = ("--encoding", "cp1252", "--delimiter", ";")
    assert "row 1 (line 3) has no text" in refused(*words, *reading)
    done = stockade(*words, *reading, "--skip-bad-rows", "--out", "runs/excel")
    assert done.returncode == 0, done.stderr
    assert "Skipped 1 row of 3 that could not be read" in done.stdout
    rows = [json.loads(line) for line in stockade("export", "runs/excel").stdout.splitlines()]
    assert [(row["id"], row["original"]) for row in rows] == [("0", "a good café"), ("2", "a dull café")]
