"""`stockade tune` as a user runs it."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from tests.e2e.conftest import Stockade, started

SEARCH = (
    "tune", "python:victim:slow", "data.jsonl", "--attack", "deepwordbug", "--defense", "ranmask:copies=4",
    "--range", "rate=0.2..0.8", "--trials", "40", "--workers", "2", "--out", "runs/t",
)  # fmt: skip


def test_an_interrupt_ends_all_workers_at_once_and_quietly(
    stockade: Stockade, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a terminal, where Ctrl-C reaches every process of the group."""
    scratch = folder / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    process = started(folder, *SEARCH, start_new_session=True)
    trials = folder / "runs/t/trials.jsonl"
    begun = time.monotonic()
    while not (trials.exists() and trials.read_text()) and time.monotonic() - begun < 300:
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 130
    assert told.strip() == "stockade: interrupted; repeat the command with --resume --out runs/t to go on."
    assert not list(scratch.glob("stockade-*"))
    kept = trials.read_text().splitlines()
    again = stockade(*SEARCH[:-6], "--trials", "2", "--resume", "--out", "runs/t")
    assert again.returncode == 0, again.stderr
    assert set(kept) <= set(trials.read_text().splitlines())
