"""The attack of docs/extending/attack.md, run as a user would: from a file of their own."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "extending" / "attack.md"


def test_the_snippet_runs_from_a_users_own_file(tmp_path: Path) -> None:
    page = PAGE.read_text(encoding="utf-8")
    (snippet,) = re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    (promised,) = re.findall(r"^```\n(success.*?)^```", page, re.DOTALL | re.MULTILINE)
    (tmp_path / "vowels.py").write_text(snippet, encoding="utf-8")
    done = subprocess.run([sys.executable, "vowels.py"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(promised)
    assert done.stdout.splitlines()[3:5] == ["drop-vowels 2 of 3", "drop-vowels@gentle 1 of 3"]
