"""The adapter of docs/extending/adapter.md, run as a user would: from a file of their own."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "extending" / "adapter.md"


def test_the_snippet_runs_from_a_users_own_file(tmp_path: Path) -> None:
    (snippet,) = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    (tmp_path / "keyword_models.py").write_text(snippet, encoding="utf-8")
    done = subprocess.run([sys.executable, "keyword_models.py"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert re.fullmatch(r"success \| what a great film -> what a \w+ film", first)
    assert first.count("great") == 1
    assert second == "failed | an awful mess of a film -> None"
