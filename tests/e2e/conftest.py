"""The command line as a user runs it: a process of its own, in a folder of its own, with a small victim and data
beside it.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stockade.cli.main import main

VICTIM = """
import math, time

GOOD, BAD = ("good", "great", "fun", "fine"), ("bad", "dull", "worst", "poor")

def predict(texts):
    rows = []
    for text in texts:
        words = text.lower().split()
        odds = sum(word in GOOD for word in words) - sum(word in BAD for word in words) - 0.5
        positive = 1 / (1 + math.exp(-odds))
        rows.append([1 - positive, positive])
    return rows

def slow(texts):
    time.sleep(0.004 * len(texts))
    return predict(texts)

def raising(texts):
    if any("poison" in text for text in texts):
        raise RuntimeError("cannot digest this")
    return predict(texts)

def nan(texts):
    return [[float("nan"), 1.0] for _ in texts]

def deep(texts):
    return [[[0.2, 0.8]] for _ in texts]

def generous(texts):
    return [[0.2, 0.8] for _ in range(len(texts) + 1)]

def logits(texts):
    return [[-3.0, 4.0] for _ in texts]

def nothing(texts):
    return None

def pairs(texts):
    assert all(isinstance(item, tuple) and len(item) == 2 for item in texts)
    return predict([hypothesis for _, hypothesis in texts])
"""

ROWS = [
    ("a great and fun film with a good heart", 1),
    ("a dull and bad film with a poor story", 0),
    ("great acting", 1),
    ("the worst picture of the year", 0),
    ("good fun for the whole family", 1),
    ("a bad idea", 0),
    ("fine work by a great director", 1),
    ("poor , dull and bad", 0),
    ("nothing special", 0),
    ("a fine mess", 1),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "victim.py").write_text(VICTIM)
    lines = [json.dumps({"text": text, "label": label}) for text, label in ROWS]
    (tmp_path / "data.jsonl").write_text("\n".join(lines) + "\n")
    (tmp_path / "data.csv").write_text("text,label\n" + "\n".join(f'"{text}",{label}' for text, label in ROWS) + "\n")
    return tmp_path


Stockade = Callable[..., subprocess.CompletedProcess[str]]


def environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "STOCKADE_CACHE": str(folder / "cache"), "HF_HUB_OFFLINE": "1", "COLUMNS": "140"}


def arguments(*words: object) -> list[str]:
    return [sys.executable, "-m", "stockade", *map(str, words)]


def started(folder: Path, *words: object, **options: Any) -> subprocess.Popen[str]:
    """The command, running while the test goes on."""
    return subprocess.Popen(
        arguments(*words),
        cwd=folder,
        env=environment(folder),
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **options,
    )


def in_process(*words: object) -> subprocess.CompletedProcess[str]:
    """The command in this process: its exit code and what it wrote, without the seconds that a new process takes."""
    streams = [io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2)]
    before = sys.argv, sys.stdout, sys.stderr, list(sys.path)
    sys.modules.pop("victim", None)  # that of another test's folder
    sys.argv, sys.stdout, sys.stderr = ["stockade", *map(str, words)], *streams
    try:
        main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    finally:
        sys.argv, sys.stdout, sys.stderr, sys.path[:] = before
        sys.modules.pop("victim", None)
    written = [stream.buffer.getvalue().decode() for stream in streams]
    return subprocess.CompletedProcess(sys.argv, code, *written)


@pytest.fixture
def stockade(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Stockade:
    """Runs a command in the test's folder, in this process."""
    monkeypatch.chdir(folder)
    for name, value in environment(folder).items():
        monkeypatch.setenv(name, value)
    return in_process


@pytest.fixture
def stockade_process(folder: Path) -> Stockade:
    """Runs a command in the test's folder, in a process of its own."""

    def run(*words: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            arguments(*words), cwd=folder, env=environment(folder), capture_output=True, text=True, check=False
        )

    return run


@pytest.fixture
def refused(stockade: Stockade) -> Callable[..., str]:
    """Runs a command that must fail: one sentence on standard error, exit code 2, no traceback."""

    def run(*words: object) -> str:
        result = stockade(*words)
        assert result.returncode == 2, result.stdout + result.stderr
        assert "Traceback" not in result.stderr
        lines = result.stderr.strip().splitlines()
        assert len(lines) == 1, result.stderr
        assert lines[0].startswith("stockade: ")
        return lines[0]

    return run
