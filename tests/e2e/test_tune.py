"""`stockade tune` as a user runs it."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.conftest import Stockade, started

INPUTS = ("python:victim:predict", "data.jsonl")
SEARCH = ("--attack", "deepwordbug", "--defense", "ranmask:copies=4", "--range", "rate=0.2..0.8", "--limit", "4")


def trials(folder: Path) -> list[str]:
    """The trials that a folder holds, whatever else is written to it at the moment."""
    path = folder / "run.sqlite"
    if not path.exists():
        return []
    with sqlite3.connect(path) as connection:
        try:
            return [row[0] for row in connection.execute("SELECT document FROM results WHERE part = 'trials'")]
        except sqlite3.OperationalError:  # its tables are not made yet
            return []


def test_a_search_from_the_command_line(stockade: Stockade, stockade_process: Stockade, folder: Path) -> None:
    done = stockade_process("tune", *INPUTS, *SEARCH, "--trials", "1", "--out", "runs/t")
    assert done.returncode == 0, done.stderr
    more = stockade("tune", *INPUTS, *SEARCH, "--trials", "2", "--resume", "--out", "runs/t")
    assert more.returncode == 0, more.stderr
    best = more.stdout.splitlines()[-1]
    assert best.startswith("--defense ranmask:copies=4,rate=0.")
    summary = json.loads((folder / "runs/t/summary.json").read_text())
    assert summary["ranges"] == {"rate": "0.2..0.8"}
    assert [trial["number"] for trial in summary["trials"]] == [0, 1]
    assert f"--defense {summary['best_defense']}" == best
    assert best in (folder / "runs/t/report.html").read_text()
    again = stockade("resume", "runs/t")
    assert again.returncode == 0, again.stderr
    assert "all hold" in stockade("verify", "runs/t", "--trust-run").stdout
    assert len(stockade("export", "runs/t").stdout.splitlines()) == 2


def test_a_search_on_pre_made_texts_needs_no_attack(stockade: Stockade, folder: Path) -> None:
    stockade("attack", *INPUTS, *SEARCH[:2], "--no-similarity", "--out", "runs/a")
    stockade("export", "runs/a", "--keep-failed", "--out", "made.jsonl")
    words = [*INPUTS, *SEARCH[2:], "--premade", "made.jsonl", "--clean-weight", "0.5", "--trials", "2"]
    done = stockade("tune", *words, "--out", "runs/t")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].startswith("--defense ranmask:copies=4,rate=0.")
    summary = json.loads((folder / "runs/t/summary.json").read_text())
    assert summary["attacks"] == []
    assert [trial["robust"] for trial in summary["trials"]] == [None, None]
    for trial in summary["trials"]:
        assert trial["objective"] == pytest.approx(trial["premade"] + 0.5 * trial["clean"])
    assert "all hold" in stockade("verify", "runs/t", "--trust-run").stdout
    assert stockade("resume", "runs/t").returncode == 0


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((*INPUTS, *SEARCH, "--least-clean", "1", "--trials", "1"), "None of 1 trials keeps the clean accuracy"),
        ((*INPUTS, *SEARCH, "--seconds", "-1"), "--seconds is -1.0, expected more than 0."),
        ((*INPUTS, *SEARCH[:2]), "No defense was named, as in: stockade tune"),
        ((*INPUTS, *SEARCH[2:]), "No attack was named"),
        ((*INPUTS[:1], *SEARCH), "DATA is missing, as in: stockade tune"),
        (SEARCH, "MODEL and DATA are missing, as in: stockade tune"),
        (("--resume",), "--resume needs the job's folder"),
        (("--resume", "--out", "t", "--trials", "3"), "--trials has no effect on a job that is resumed without MODEL"),
    ],
)
def test_what_the_command_cannot_do_is_one_sentence(
    refused: Callable[..., str], folder: Path, words: tuple[str, ...], sentence: str
) -> None:
    with (folder / "data.jsonl").open("a") as stream:
        stream.write(json.dumps({"text": "a great mistake", "label": 0}) + "\n")
    out = () if "--resume" in words else ("--out", "t")
    assert sentence in refused("tune", *words, *out, *(("--limit", "11") if "--least-clean" in words else ()))


@pytest.mark.slow
def test_an_interrupt_ends_all_workers_at_once_and_quietly(
    stockade: Stockade, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a terminal, where Ctrl-C reaches every process of the group."""
    scratch = folder / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    command = ("tune", "python:victim:slow", "data.jsonl", *SEARCH)
    process = started(folder, *command, "--trials", "40", "--workers", "2", "--out", "runs/t", start_new_session=True)
    begun = time.monotonic()
    while not trials(folder / "runs/t") and time.monotonic() - begun < 300:
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert errors.strip() == "stockade: interrupted; resume with: stockade resume runs/t --trust-run"
    assert not list(scratch.glob("stockade-*"))
    before = trials(folder / "runs/t")
    again = stockade(*command, "--trials", "2", "--resume", "--out", "runs/t")
    assert again.returncode == 0, again.stderr
    assert set(before) <= set(trials(folder / "runs/t"))
