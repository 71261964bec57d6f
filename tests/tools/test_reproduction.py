"""`tools/reproduction.py`: the page follows from the catalogue and the kept results, and from nothing else."""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import reproduction

PAPER: dict[str, Any] = {
    "title": "A paper",
    "items": [
        {"item": "Table 1", "what": "rates", "command": "stockade study bae MODEL DATA", "results": ["run"]},
        {"item": "Figure 1", "what": "a drawing", "command": ""},
    ],
}
KEPT = {
    "run": {
        "seconds": 150,
        "claims": [{"verdict": "held"}, {"verdict": "held"}, {"verdict": "not held"}, {"verdict": "undecided"}],
    }
}


def test_a_row_counts_verdicts_and_says_what_was_not_run() -> None:
    lines = reproduction.page([PAPER], KEPT).splitlines()
    ran = next(line for line in lines if line.startswith("| Table 1"))
    assert ran.endswith("| [run](../benchmarks/results/run.md) | 2 / 1 / 1 | 2 min |")
    assert next(line for line in lines if line.startswith("| Figure 1")).endswith("| – | – | no | – | – |")


def test_results_that_are_not_there_are_named() -> None:
    with pytest.raises(SystemExit, match=r"no benchmarks/results/run\.json"):
        reproduction.page([PAPER], {})


def made_study(folder: Path, **changes: Any) -> Path:
    folder.mkdir(parents=True)
    summary = {
        "study": "bae",
        "complete": True,
        "created": "2026-01-01",
        "limit": 5,
        "seed": 0,
        "warnings": [f"look at {folder}/run"],
        "claims": [{"claim": "a", "verdict": "held"}],
    }
    (folder / "summary.json").write_text(json.dumps({**summary, **changes}))
    (folder / "manifest.json").write_text(json.dumps({"versions": {"stockade": "1"}}))
    (folder / "report.md").write_text(
        f"# Study\n\nIn {folder}, of `/data/mr/test.jsonl` 1/2 <b/>.\n\n## Manifest\n\n{folder}\n"
    )
    (folder / "run").mkdir()
    for path, seconds in ((folder / "run.sqlite", 30.0), (folder / "run" / "run.sqlite", 12.4)):
        with sqlite3.connect(path) as store:
            store.execute("CREATE TABLE effort (part TEXT, seconds REAL)")
            store.execute("INSERT INTO effort VALUES ('a', ?)", (seconds,))
    return folder


def test_a_recorded_study_keeps_claims_and_cost_and_no_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reproduction, "RESULTS", tmp_path / "results")
    folder = made_study(tmp_path / "runs" / "mine")
    assert reproduction.main(["record", str(folder), "mine", "stockade study bae MODEL DATA"]) == 0
    kept = json.loads((tmp_path / "results" / "mine.json").read_text())
    assert kept["seconds"] == 42
    assert kept["warnings"] == ["look at RUN/run"]
    assert (tmp_path / "results" / "mine.md").read_text() == "# Study\n\nIn RUN, of `test.jsonl` 1/2 <b/>.\n"


def test_an_unfinished_study_is_not_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reproduction, "RESULTS", tmp_path / "results")
    folder = made_study(tmp_path / "mine", complete=False)
    with pytest.raises(SystemExit, match="not complete"):
        reproduction.main(["record", str(folder), "mine", ""])
    assert not (tmp_path / "results").exists()


def test_the_page_is_what_the_tool_writes() -> None:
    script = Path(reproduction.__file__)
    assert subprocess.run([sys.executable, str(script), "check"], check=False).returncode == 0


def test_kept_results_name_no_machine() -> None:
    for path in reproduction.RESULTS.glob("*"):
        assert not re.search(r"(?<![\w.])/(tmp|work|root|home)/", path.read_text(encoding="utf-8")), path.name
