"""`stockade evaluate` as a user runs it."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Stockade, started

GRID = ("python:victim:predict", "data.jsonl", "--attack", "deepwordbug@textattack", "--defense", "ranmask:copies=4")


def numbers(folder: Path) -> dict[str, Any]:
    """The summary without what differs between two runs of the same evaluation."""
    summary: dict[str, Any] = json.loads((folder / "summary.json").read_text())
    return {name: value for name, value in summary.items() if name not in ("created", "evaluation")}


def test_a_grid_from_the_command_line(stockade: Stockade, stockade_process: Stockade, folder: Path) -> None:
    done = stockade("attack", *GRID[:4], "--no-similarity", "--out", "runs/a")
    assert done.returncode == 0, done.stderr
    stockade("export", "runs/a", "--format", "jsonl", "--out", "made.jsonl")
    done = stockade_process("evaluate", *GRID, "--premade", "made.jsonl", "--seeds", "2", "--out", "runs/e")
    assert done.returncode == 0, done.stderr
    summary = numbers(folder / "runs/e")
    rows = {row["defense"]: row for row in summary["rows"]}
    assert list(rows) == ["none", "ranmask:copies=4"]
    assert rows["none"]["clean"]["accuracy"]["value"] == 1.0
    attacked = json.loads((folder / "runs/a/summary.json").read_text())["attacks"]["deepwordbug@textattack"]
    direct = rows["none"]["attacks"]["deepwordbug@textattack"]["robust_accuracy"]["by_seed"]["0"]
    assert direct == attacked["robust_accuracy"]  # the same attack on the same texts with the same seed
    assert rows["none"]["premade"]["made"]["accuracy"]["value"] == 0.0  # made against this very model
    assert rows["ranmask:copies=4"]["premade"]["made"]["accuracy"]["value"] is not None
    assert "worst case" in done.stdout
    assert "of the texts survive every attack in its best row" in (folder / "runs/e/report.html").read_text()
    again = stockade("evaluate", "--resume", "--out", "runs/e")
    assert again.returncode == 0, again.stderr
    assert numbers(folder / "runs/e") == summary


def test_a_pre_made_set_that_keeps_failed_attempts(
    stockade: Stockade, refused: Callable[..., str], folder: Path
) -> None:
    assert stockade("attack", *GRID[:4], "--budget", "4", "--no-similarity", "--out", "runs/a").returncode == 0
    attacked = json.loads((folder / "runs/a/summary.json").read_text())["attacks"]["deepwordbug@textattack"]
    assert stockade("export", "runs/a", "--keep-failed", "--format", "csv", "--out", "made.csv").returncode == 0
    done = stockade("evaluate", *GRID[:2], "--premade", "made.csv", "--out", "runs/e")
    assert done.returncode == 0, done.stderr
    assert "F1 of " in done.stdout
    (row,) = numbers(folder / "runs/e")["rows"]
    measures = row["premade"]["made"]
    assert measures["n"]["0"] == attacked["attacked"]
    assert measures["attempts"]["succeeded"]["n"]["0"] == attacked["succeeded"]
    assert measures["attempts"]["failed"]["accuracy"]["value"] == 1.0
    rows = [json.loads(line) for line in stockade("export", "runs/e", "--premade").stdout.splitlines()]
    assert [(row["texts"], row["attempts"]) for row in rows] == [
        ("clean", "all"),
        ("made", "all"),
        ("made", "succeeded"),
        ("made", "failed"),
    ]
    assert "has no attack, so no text has a worst case: add --premade" in refused("export", "runs/e")
    assert "--keep-failed makes a pre-made set" in refused("export", "runs/e", "--keep-failed")
    assert "--premade is not for runs/a" in refused("export", "runs/a", "--premade")


def test_every_command_takes_a_whole_evaluation_or_one_of_its_cells(stockade: Stockade, folder: Path) -> None:
    done = stockade("evaluate", *GRID[:4], "--out", "runs/e")
    assert done.returncode == 0, done.stderr
    cell = "runs/e/models/predict/none/deepwordbug@textattack/direct-0"
    assert "→" in stockade("show", cell).stdout
    assert "all hold" in stockade("verify", cell, "--trust-run").stdout
    assert "--trust-run" in stockade("verify", "runs/e").stderr
    assert "all hold" in stockade("verify", "runs/e", "--trust-run").stdout
    stockade("report", "runs/e", "--format", "md")
    assert "## Accuracy, clean and under attack" in (folder / "runs/e/report.md").read_text()
    rows = [json.loads(line) for line in stockade("export", "runs/e").stdout.splitlines()]
    assert {row["outcome"] for row in rows} == {"robust", "fooled"}
    assert len(rows) == 10
    texts = [json.loads(line) for line in stockade("export", "runs/e", "--cells").stdout.splitlines()]
    assert [text["id"] for text in texts] == [row["id"] for row in rows]
    shown = stockade("show", "runs/e", "--attack", "deepwordbug@textattack", "--limit", 2).stdout
    assert shown.count("predict, none: deepwordbug@textattack, direct  success") == 2
    assert "[-" in shown


def test_a_defense_that_could_not_be_measured_is_no_success(stockade: Stockade, folder: Path) -> None:
    done = stockade("evaluate", *GRID[:4], "--defense", "fuse", "--out", "runs/e")
    assert done.returncode == 3
    assert "stockade: Not everything was measured. predict, fuse, everything: " in done.stderr
    assert stockade("resume", "runs/e", "--trust-run").returncode == 3
    assert stockade("evaluate", *GRID[:4], "--out", "runs/ok").returncode == 0


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("export", "runs/e", "--attack", GRID[3]), "add --cells to export the texts of deepwordbug@textattack alone"),
        (("export", "runs/e/models/predict/none/deepwordbug@textattack/direct-0", "--cells"), "is not an evaluation"),
        (("show", "runs/e", "--attack", "pwws"), 'There is no attack in this run "pwws"'),
    ],
)
def test_what_an_evaluation_cannot_show(
    stockade: Stockade, refused: Callable[..., str], words: tuple[str, ...], sentence: str
) -> None:
    stockade("evaluate", *GRID[:4], "--out", "runs/e")
    assert sentence in refused(*words)


@pytest.mark.slow
def test_kills_change_nothing(stockade: Stockade, folder: Path) -> None:
    grid = ["python:victim:slow", "data.jsonl", *GRID[2:4], "--defense", "ranmask:copies=2", "--eot-samples", "2"]
    command = ["evaluate", *grid, "--seeds", "2"]
    whole = stockade(*command, "--out", "runs/whole")
    assert whole.returncode == 0, whole.stderr
    interrupted = 0
    for kill, how in enumerate([signal.SIGKILL, signal.SIGINT, signal.SIGKILL]):
        words = [*command, "--out", "runs/killed", *(["--resume"] if kill else [])]
        process = started(folder, *words)
        manifest = folder / "runs/killed/manifest.json"
        begun = time.monotonic()
        while not manifest.exists() and time.monotonic() - begun < 60:
            time.sleep(0.02)
        time.sleep(0.3 + 0.5 * kill)
        running = process.poll() is None
        process.send_signal(how)
        _, errors = process.communicate(timeout=60)
        interrupted += running
        if how is signal.SIGINT and running and process.returncode == 130:
            assert "interrupted" in errors
    assert interrupted >= 2, "the evaluation was over before it could be killed"
    last = stockade("resume", "runs/killed", "--trust-run")
    assert last.returncode == 0, last.stderr
    assert numbers(folder / "runs/killed") == numbers(folder / "runs/whole")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (GRID[:2], "No attack was named"),
        ((*GRID, "--defense", "ranmsk"), 'Did you mean "ranmask"?'),
        ((GRID[0], "--attack", "pwws"), "DATA is missing"),
        (("--attack", "pwws"), "MODEL and DATA are missing"),
        ((GRID[0], "nothing.csv", "--attack", "pwws"), 'There is no file "nothing.csv"'),
        ((*GRID, "--premade", "absent.jsonl"), 'There is no file "absent.jsonl"'),
        (("--resume",), "--resume needs the job's folder"),
        (("--resume", "--out", "runs/absent"), "is not a run"),
    ],
)
def test_bad_input(refused: Callable[..., str], words: tuple[str, ...], sentence: str) -> None:
    assert sentence in refused("evaluate", *words)


def test_a_folder_that_exists_and_options_that_would_have_no_effect(
    stockade: Stockade, refused: Callable[..., str]
) -> None:
    done = stockade("evaluate", *GRID[:4], "--out", "runs/e")
    assert done.returncode == 0, done.stderr
    assert "Resume it with --resume" in refused("evaluate", *GRID[:4], "--out", "runs/e")
    difference = refused("evaluate", *GRID[:4], "--budget", "50", "--resume", "--out", "runs/e")
    assert "budget was nothing, now 50" in difference
    for option in ("--limit", "--seed", "--budget"):
        sentence = refused("evaluate", "--resume", "--out", "runs/e", option, "3")
        assert f"{option} has no effect on a job that is resumed without MODEL and DATA" in sentence
    assert stockade("evaluate", "--resume", "--out", "runs/e", "--concurrency", "2").returncode == 0


def test_a_model_without_a_usable_answer_is_an_error(refused: Callable[..., str]) -> None:
    sentence = refused("evaluate", "python:victim:nan", *GRID[1:4], "--out", "runs/e")
    assert "No model has a usable answer to any of the 10 texts; the first: " in sentence
    assert "NaN" in sentence.partition("the first: ")[2]


def test_what_there_is_to_know_of_a_defense_is_reported(stockade: Stockade, folder: Path) -> None:
    words = ("builtin:sentiment-cnn", "builtin:reviews", "--attack", "deepwordbug", "--limit", 2, "--out", "runs/e")
    result = stockade("evaluate", *words, "--defense", "five:samples=2", "--eot-samples", 1)
    assert result.returncode == 0, result.stderr
    remark = "sentiment-cnn, five:samples=2: The signal-to-noise ratio of FIVE is"
    assert remark in (folder / "runs/e/report.html").read_text()
