"""kill -9 at any moment loses no finished example, and the resumed run ends like an unbroken one."""

from __future__ import annotations

import json
import random
import signal
import sqlite3
import time
from pathlib import Path

import pytest

from tests.e2e.conftest import ROWS, Stockade, started

KILLS = 20
TEXTS = 120


def finished(folder: Path) -> dict[tuple[str, str], str]:
    path = folder / "runs/killed/run.sqlite"
    if not path.exists():
        return {}
    with sqlite3.connect(path) as connection:
        try:
            rows = connection.execute("SELECT part, id, document FROM results").fetchall()
        except sqlite3.OperationalError:  # killed before the tables were made
            return {}
    return {(attack, example): record for attack, example, record in rows}


@pytest.mark.slow
def test_twenty_kills_lose_nothing_and_change_nothing(stockade: Stockade, folder: Path) -> None:
    rows = [
        json.dumps({"text": f"{text} number {i}", "label": label})
        for i in range(TEXTS // len(ROWS))
        for text, label in ROWS
    ]
    (folder / "many.jsonl").write_text("\n".join(rows))
    attack = ["attack", "python:victim:slow", "many.jsonl", "--no-similarity", "--concurrency", "3"]
    attack += ["--attack", "pwws", "--attack", "deepwordbug@textattack"]
    whole = stockade(*attack, "--out", "runs/whole")
    assert whole.returncode == 0, whole.stderr

    rng = random.Random(20)
    seen: dict[tuple[str, str], str] = {}
    interrupted = 0
    for kill in range(KILLS):
        words = [*attack, "--out", "runs/killed", *(["--resume"] if kill else [])]
        process = started(folder, *words)
        time.sleep(rng.uniform(0.3, 1.6))
        interrupted += process.poll() is None
        process.send_signal(signal.SIGKILL)
        process.communicate()
        now = finished(folder)
        assert {key: now[key] for key in seen} == seen, "a finished example was lost or changed"
        seen = now
    assert interrupted > KILLS // 2, "the run was over before it could be killed often enough"

    last = stockade(*attack, "--out", "runs/killed", "--resume")
    assert last.returncode == 0, last.stderr
    assert stockade("export", "runs/killed").stdout == stockade("export", "runs/whole").stdout
    assert stockade("verify", "runs/killed", "--trust-run").returncode == 0


@pytest.mark.parametrize(
    ("signalled", "code", "word"), [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")]
)
def test_a_run_that_is_stopped_says_which_command_resumes_it(
    stockade: Stockade, folder: Path, signalled: signal.Signals, code: int, word: str
) -> None:
    rows = [json.dumps({"text": f"{text} number {i}", "label": label}) for i in range(3) for text, label in ROWS]
    (folder / "many.jsonl").write_text("\n".join(rows))
    attack = ["attack", "python:victim:slow", "many.jsonl", "--no-similarity", "--attack", "pwws", "--out", "runs/c"]
    process = started(folder, *attack)
    deadline = time.monotonic() + 60
    while not _rows(folder / "runs/c/run.sqlite") and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signalled)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == code
    assert errors.strip() == f"stockade: {word}; resume with: stockade resume runs/c --trust-run"
    assert json.loads((folder / "runs/c/summary.json").read_text())["complete"] is False
    assert "--trust-run" in stockade("resume", "runs/c").stderr
    resumed = stockade("resume", "runs/c", "--trust-run")
    assert resumed.returncode == 0, resumed.stderr
    assert json.loads((folder / "runs/c/summary.json").read_text())["complete"] is True


@pytest.mark.parametrize(("signalled", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_run_that_is_stopped_before_it_began_advises_no_resume(
    stockade: Stockade, folder: Path, signalled: signal.Signals, code: int
) -> None:
    (folder / "loading.py").write_text(
        "import pathlib, time\npathlib.Path('begun').touch()\ntime.sleep(60)\ndef predict(texts): pass\n"
    )
    process = started(folder, "attack", "python:loading:predict", "data.csv", "--attack", "pwws", "--out", "runs/c")
    deadline = time.monotonic() + 60
    while not (folder / "begun").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signalled)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == code
    assert errors.strip().endswith("; nothing was begun: run the same command again.")
    assert not (folder / "runs/c").exists()


def _rows(path: Path) -> int:
    if not path.exists():
        return 0
    try:
        with sqlite3.connect(path) as connection:
            return int(connection.execute("SELECT COUNT(*) FROM results").fetchone()[0])
    except sqlite3.OperationalError:
        return 0
