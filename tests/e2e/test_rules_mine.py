"""`stockade rules mine` as a user runs it: killed, resumed, and with neural models in batches of any size."""

from __future__ import annotations

import json
import signal
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

import stockade as st
from stockade.workflows.mine.result import MinedRule
from tests.e2e.conftest import ROWS, Stockade, started

KILLS = 4


def chunks(folder: Path) -> int:
    path = folder / "run.sqlite"
    if not path.exists():
        return 0
    with closing(sqlite3.connect(path)) as connection:
        try:
            query = "SELECT COUNT(*) FROM results WHERE part = 'chunks'"
            return int(connection.execute(query).fetchone()[0])
        except sqlite3.OperationalError:  # killed before the tables were made
            return 0


@pytest.mark.slow
def test_a_killed_job_ends_in_the_same_rules(stockade: Stockade, folder: Path) -> None:
    rows = [json.dumps({"text": f"{text} number {i}", "label": label}) for i in range(60) for text, label in ROWS]
    (folder / "many.jsonl").write_text("\n".join(rows))
    (folder / "victim.py").write_text((folder / "victim.py").read_text().replace("0.004 *", "0.0002 *"))
    mine = ["rules", "mine", "python:victim:slow", "many.jsonl", "--max-count", "all"]
    whole = stockade(*mine, "--out", "runs/whole")
    assert whole.returncode == 0, whole.stderr
    assert chunks(folder / "runs/whole") > KILLS

    for kill in range(KILLS):
        process = started(folder, *mine, "--out", "runs/killed", *(["--resume"] if kill else []))
        before, deadline = chunks(folder / "runs/killed"), time.monotonic() + 60
        while chunks(folder / "runs/killed") == before and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert chunks(folder / "runs/killed") >= before
    last = stockade(*mine, "--out", "runs/killed", "--resume")
    assert last.returncode == 0, last.stderr
    assert (folder / "runs/killed/rules.jsonl").read_bytes() == (folder / "runs/whole/rules.jsonl").read_bytes()
    assert stockade("export", "runs/killed").stdout == stockade("export", "runs/whole").stdout
    assert stockade("verify", "runs/killed", "--trust-run").returncode == 0


def saliences(batch_tokens: int | None) -> dict[tuple[str, str, str], tuple[float, ...]]:
    models = ["builtin:sentiment-cnn", "builtin:sentiment-lstm"]
    result = st.mine_rules(models, "builtin:reviews:train", limit=12, min_count=1, batch_tokens=batch_tokens)

    def key(rule: MinedRule) -> tuple[str, str, str]:
        return rule.label, rule.word, rule.replacement

    return {key(rule): rule.saliences for rule in result.records()}


def test_batches_change_neural_saliences_by_rounding_only() -> None:
    tuned, small = saliences(None), saliences(96)
    assert tuned.keys() == small.keys()
    assert max(abs(a - b) for rule in tuned for a, b in zip(tuned[rule], small[rule], strict=True)) < 1e-4
