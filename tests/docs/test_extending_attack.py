"""The attack of docs/extending/attack.md, run as a user would: from a file of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.docs.documents import ROOT, blocks

PAGE = ROOT / "docs" / "extending" / "attack.md"


def test_the_snippet_runs_from_a_users_own_file(tmp_path: Path) -> None:
    (snippet,) = blocks(PAGE, "python")
    (promised,) = blocks(PAGE, "")
    (tmp_path / "vowels.py").write_text(snippet.code, encoding="utf-8")
    done = subprocess.run([sys.executable, "vowels.py"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(promised.code)
    assert done.stdout.splitlines()[3:5] == ["drop-vowels 2 of 3", "drop-vowels@gentle 1 of 3"]
