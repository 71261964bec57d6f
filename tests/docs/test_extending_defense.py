"""The defenses of docs/extending/defense.md, run as a user would: from files of their own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "extending" / "defense.md"


def run_snippet(name: str, folder: Path) -> str:
    """What the snippet prints that the page tells to save under this name."""
    page = PAGE.read_text(encoding="utf-8")
    (snippet,) = re.findall(rf"Save this as `{name}`.*?^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)[:1]
    (folder / name).write_text(snippet, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, name],
        cwd=folder,
        capture_output=True,
        text=True,
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_defense_that_acts_when_the_model_is_asked(tmp_path: Path) -> None:
    (promised,) = re.findall(r"^```\n(none.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert run_snippet("spelling.py", tmp_path) == promised


def test_a_defense_that_acts_in_training(tmp_path: Path) -> None:
    assert run_snippet("typos.py", tmp_path) == "same weights: False\n"
    assert '"typos"' in (tmp_path / "hardened" / "defense.json").read_text()
    assert not (tmp_path / "plain" / "defense.json").exists()
