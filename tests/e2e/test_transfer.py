"""`stockade study transfer` as a user runs it: killed several times, resumed, and the same in the end."""

from __future__ import annotations

import json
import signal
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import ROWS, Stockade, started

KILLS = 4
MORE = """

def other(texts):
    time.sleep(0.001 * len(texts))
    return [row[::-1] if "film" in text and "great" not in text else row for text, row in zip(texts, predict(texts))]

def third(texts):
    return [[0.9, 0.1] if "worst" in text or "nothing" in text else [0.3, 0.7] for text in texts]
"""
TIMES = ("seconds", "model_seconds", "model_rows", "created", "run")


def progress(folder: Path) -> int:
    """How many results the study and the attacks inside it have committed."""
    done = 0
    for path in folder.rglob("run.sqlite"):
        with closing(sqlite3.connect(path)) as connection:
            try:
                done += int(connection.execute("SELECT COUNT(*) FROM results").fetchone()[0])
            except sqlite3.OperationalError:  # killed before the tables were made
                continue
    return done


def without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_times(item) for name, item in value.items() if name not in TIMES}
    return [without_times(item) for item in value] if isinstance(value, list) else value


@pytest.mark.slow
def test_a_killed_study_ends_in_the_same_numbers(stockade: Stockade, folder: Path) -> None:
    (folder / "victim.py").write_text((folder / "victim.py").read_text() + MORE)
    rows = [json.dumps({"text": f"{text} number {i}", "label": label}) for i in range(4) for text, label in ROWS]
    (folder / "many.jsonl").write_text("\n".join(rows))
    models = [f"python:victim:{name}" for name in ("slow", "other", "third")]
    study = ["study", "transfer", *models, "many.jsonl", "--second", "slow=python:victim:predict", "--importance", "5"]
    whole = stockade(*study, "--out", "runs/whole")
    assert whole.returncode == 0, whole.stderr

    for kill in range(KILLS):
        process = started(folder, *study, "--out", "runs/killed", *(["--resume"] if kill else []))
        before, deadline = progress(folder / "runs/killed"), time.monotonic() + 60
        # Later and later: in the attacks, between them, and among the targets.
        while progress(folder / "runs/killed") < before + 25 and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert progress(folder / "runs/killed") >= before
    last = stockade(*study, "--out", "runs/killed", "--resume")
    assert last.returncode == 0, last.stderr
    summaries = [json.loads((folder / "runs" / run / "summary.json").read_text()) for run in ("whole", "killed")]
    assert without_times(summaries[0]) == without_times(summaries[1])
    for file in ("matrix.csv", "matrix-clean.csv"):
        assert (folder / "runs/killed" / file).read_bytes() == (folder / "runs/whole" / file).read_bytes()
    assert stockade("export", "runs/killed").stdout == stockade("export", "runs/whole").stdout
    assert stockade("verify", "runs/killed", "--trust-run").returncode == 0
