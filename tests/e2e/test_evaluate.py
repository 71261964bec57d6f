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
    found: dict[str, Any] = json.loads((folder / "evaluation.json").read_text())
    return {name: one for name, one in found.items() if name not in ("created", "evaluation")}


def test_a_grid_from_the_command_line(stockade: Stockade, folder: Path) -> None:
    done = stockade("attack", *GRID[:4], "--no-similarity", "--out", "runs/a")
    assert done.returncode == 0, done.stderr
    stockade("export", "runs/a", "--format", "jsonl", "--out", "made.jsonl")
    done = stockade("evaluate", *GRID, "--premade", "made.jsonl", "--seeds", "2", "--out", "runs/e")
    assert done.returncode == 0, done.stderr
    found = numbers(folder / "runs/e")
    rows = {row["defense"]: row for row in found["rows"]}
    assert list(rows) == ["none", "ranmask:copies=4"]
    assert rows["none"]["clean"]["accuracy"]["value"] == 1.0
    attacked = json.loads((folder / "runs/a/summary.json").read_text())["attacks"]["deepwordbug@textattack"]
    direct = rows["none"]["attacks"]["deepwordbug@textattack"]["robust_accuracy"]["by_seed"]["0"]
    assert direct == attacked["robust_accuracy"]  # the same attack on the same texts with the same seed
    assert rows["none"]["premade"]["made"]["value"] == 0.0  # made against this very model
    assert rows["ranmask:copies=4"]["premade"]["made"]["value"] is not None
    assert "worst case" in done.stdout
    assert "python:victim" not in (folder / "runs/e/evaluation.html").read_text().split("How it was made")[0]
    again = stockade("evaluate", "--resume", "--out", "runs/e")
    assert again.returncode == 0, again.stderr
    assert numbers(folder / "runs/e") == found


def test_kills_change_nothing(stockade: Stockade, folder: Path) -> None:
    grid = ["python:victim:slow", "data.jsonl", *GRID[2:4], "--defense", "ranmask:copies=2", "--expectation", "2"]
    command = ["evaluate", *grid, "--seeds", "2"]
    whole = stockade(*command, "--out", "runs/whole")
    assert whole.returncode == 0, whole.stderr
    interrupted = 0
    for kill, how in enumerate([signal.SIGKILL, signal.SIGINT, signal.SIGKILL]):
        words = [*command, "--out", "runs/killed", *(["--resume"] if kill else [])]
        process = started(folder, *words)
        plan = folder / "runs/killed/plan.json"
        begun = time.monotonic()
        while not plan.exists() and time.monotonic() - begun < 60:
            time.sleep(0.02)
        time.sleep(0.3 + 0.5 * kill)
        running = process.poll() is None
        process.send_signal(how)
        _, told = process.communicate(timeout=60)
        interrupted += running
        if how is signal.SIGINT and running and process.returncode == 130:
            assert "interrupted" in told
    assert interrupted >= 2, "the evaluation was over before it could be killed"
    last = stockade("evaluate", "--resume", "--out", "runs/killed")
    assert last.returncode == 0, last.stderr
    assert numbers(folder / "runs/killed") == numbers(folder / "runs/whole")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (GRID[:2], "No attack was named"),
        ((*GRID, "--defense", "ranmsk"), 'Did you mean "ranmask"?'),
        ((GRID[0], "--attack", "pwws"), "DATA is missing"),
        ((GRID[0], "nothing.csv", "--attack", "pwws"), 'There is no file "nothing.csv"'),
        ((*GRID, "--premade", "absent.jsonl"), 'There is no file "absent.jsonl"'),
        (("--resume",), "--resume needs the evaluation's folder"),
        (("--resume", "--out", "runs/absent"), "is no evaluation"),
    ],
)
def test_bad_input(refused: Callable[..., str], words: tuple[str, ...], sentence: str) -> None:
    assert sentence in refused("evaluate", *words)


def test_a_folder_that_exists_and_other_options(stockade: Stockade, refused: Callable[..., str]) -> None:
    done = stockade("evaluate", *GRID[:4], "--out", "runs/e")
    assert done.returncode == 0, done.stderr
    assert "Continue it with --resume" in refused("evaluate", *GRID[:4], "--out", "runs/e")
    told = refused("evaluate", *GRID[:4], "--budget", "50", "--resume", "--out", "runs/e")
    assert "budget was nothing, now 50" in told


def test_a_whole_evaluation_is_no_run_and_options_beside_resume_are_not_ignored(
    stockade: Stockade, refused: Callable[..., str]
) -> None:
    done = stockade("evaluate", *GRID[:4], "--out", "runs/e")
    assert done.returncode == 0, done.stderr
    for command in ("show", "report", "export", "verify"):
        told = refused(command, "runs/e")
        assert "runs/e is an evaluation or a study, not a run" in told
        assert "Its page is runs/e/evaluation.html. Name one of the runs in it, such as runs/e/models/" in told
    for option in ("--limit", "--seed", "--budget"):
        told = refused("evaluate", "--resume", "--out", "runs/e", option, "3")
        assert f"{option} has no effect on what is resumed without MODEL and DATA" in told
    assert stockade("evaluate", "--resume", "--out", "runs/e", "--concurrency", "2").returncode == 0


def test_a_model_without_a_usable_answer_is_an_error(refused: Callable[..., str]) -> None:
    told = refused("evaluate", "python:victim:nan", *GRID[1:4], "--out", "runs/e")
    assert "No model has a usable answer to any of the 10 texts; the first: " in told
    assert "NaN" in told.partition("the first: ")[2]


def test_what_there_is_to_know_of_a_defense_is_printed(stockade: Stockade) -> None:
    words = ("builtin:sentiment-cnn", "builtin:reviews", "--attack", "deepwordbug", "--limit", 2, "--out", "runs/e")
    result = stockade("evaluate", *words, "--defense", "five:samples=2", "--expectation", 1)
    assert result.returncode == 0, result.stderr
    assert "sentiment-cnn, five:samples=2: The signal-to-noise ratio of FIVE is" in result.stdout
