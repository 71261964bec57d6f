"""An attack on a translator that is killed in the middle goes on where it was, with the same results."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import stockade as st

MODULE = """
import time

TABLE = {"a": "ein", "dog": "Hund", "cat": "Katze", "sleeps": "schläft", "the": "der", "here": "hier"}


def translate(texts):
    time.sleep(0.02 * len(texts))
    return [" ".join(TABLE.get(word, word) for word in text.split()) for text in texts]
"""
NOUNS, REFERENCES = ("dog", "cat"), {"dog": "Hund", "cat": "Katze"}


@pytest.mark.slow
def test_a_killed_job_is_resumed_to_the_results_of_an_unbroken_one(tmp_path: Path) -> None:
    (tmp_path / "slow_mt.py").write_text(MODULE, encoding="utf-8")
    rows = [
        {"source": f"the {NOUNS[n % 2]} sleeps here", "target": f"der {REFERENCES[NOUNS[n % 2]]} schläft hier"}
        for n in range(12)
    ]
    (tmp_path / "pairs.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    paths = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}

    def command(*words: str) -> list[str]:
        return [sys.executable, "-m", "stockade", *words]

    def started(out: str) -> list[str]:
        attacks = ["--attack", "mt-typo@full", "--attack", "mt-untargeted:words=2,sample=6,most=6"]
        return command(
            "attack", "python:slow_mt:translate", "pairs.jsonl", *attacks, "--no-similarity", "--concurrency", "2",
            "--out", out,
        )  # fmt: skip

    process = subprocess.Popen(started("killed"), cwd=tmp_path, env=environment, stderr=subprocess.DEVNULL)
    store = tmp_path / "killed" / "run.sqlite"
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None:
        if store.exists() and len(list(st.load(tmp_path / "killed").records())) > 3:
            break
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    before = len(list(st.load(tmp_path / "killed").records()))
    assert 3 < before < 24
    subprocess.run(command("resume", "killed", "--trust-run"), cwd=tmp_path, env=environment, check=True)
    subprocess.run(started("whole"), cwd=tmp_path, env=environment, check=True)
    killed, whole = (st.load(tmp_path / name) for name in ("killed", "whole"))
    assert killed.complete
    assert list(killed.rows()) == list(whole.rows())
