"""Certificates from the command line: made, checked, shown, exported, resumed; and what is refused."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

import stockade as st
from stockade.cli.main import cli
from stockade.core.errors import StockadeError
from tests.e2e.conftest import ROWS, Stockade
from tests.toys import WeightVictim

Refused = Callable[..., str]
MODEL = ("python:victim:predict", "data.jsonl", "--defense", "ranmask:rate=0.7")
CERTIFY = ("certify", *MODEL, "--method", "ranmask-gap", "--method", "ranmask-legacy:most=200,selection=50")
ATTACK = ("attack", "python:victim:predict", "data.jsonl", "--no-similarity", "--attack", "deepwordbug")


def documents(stockade: Stockade, folder: str, *options: str) -> list[dict[str, Any]]:
    result = stockade("export", folder, *options)
    assert result.returncode == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_certify_verify_report_show_and_export(stockade: Stockade, stockade_process: Stockade, folder: Path) -> None:
    made = stockade_process(*CERTIFY, "--out", "runs/c")
    assert made.returncode == 0, made.stderr
    assert "ranmask-legacy (not a certificate)" in " ".join(made.stdout.split())
    assert (folder / "runs/c/report.html").exists()
    summary = json.loads((folder / "runs/c/summary.json").read_text())
    assert summary["complete"]

    verified = stockade("verify", "runs/c")
    assert (verified.returncode, verified.stdout) == (0, f"{2 * len(ROWS)} results checked: all hold\n")
    untrusted = stockade("verify", "runs/c", "--resample")  # python:victim is code that only the folder names
    assert (untrusted.returncode, "--trust-run" in untrusted.stderr) == (2, True)
    resampled = stockade("verify", "runs/c", "--resample", "--trust-run")
    assert (resampled.returncode, resampled.stdout) == (0, verified.stdout)

    rows = documents(stockade, "runs/c", "--method", "ranmask-gap")
    assert [row["text"] for row in rows] == [text for text, _ in ROWS]
    right = [row for row in rows if row["radius"] is not None and row["predicted"] == row["label"]]
    assert summary["methods"]["ranmask-gap"]["accuracy"]["value"] == len(right) / len(ROWS)

    shown = " ".join(stockade("show", "runs/c", "--method", "ranmask-gap", "--limit", "100").stdout.split())
    for row in rows:
        verdict = row["status"] if row["radius"] is None else f"{row['predicted']}, radius {row['radius']}"
        status = "class only" if row["radius"] == 0 else row["status"]
        block = f"ranmask-gap {status} {verdict} (example {row['id']}, true class {row['label']},"
        assert block in shown
        text = shown[shown.index(block) :]
        assert text.index(row["text"]) < text.index(f"{row['statement']}.")
    few = stockade("show", "runs/c", "--status", "claimed", "--limit", "2").stdout
    assert few.count("NOT A CERTIFICATE. Claimed") == few.count("true class") == 2
    assert "No examples with status error." in stockade("show", "runs/c", "--status", "error").stdout

    (folder / "runs/c/report.html").unlink()
    for format in ("html", "md", "json"):
        assert stockade("report", "runs/c", "--format", format).stdout.strip() == f"runs/c/report.{format}"
    assert json.loads((folder / "runs/c/report.json").read_text()) == summary
    assert (folder / "runs/c/report.html").read_text().count("<article") == 2 * len(ROWS)


def test_csv_and_parquet_hold_what_json_lines_hold(stockade: Stockade, folder: Path) -> None:
    stockade(*CERTIFY, "--limit", "4", "--out", "runs/c")
    rows = documents(stockade, "runs/c")
    assert len(rows) == 8
    nested = ("selection", "evidence", "options", "defenses", "classes")
    table = list(csv.DictReader(io.StringIO(stockade("export", "runs/c", "--format", "csv").stdout)))
    assert [{name: json.loads(row[name]) for name in nested} for row in table] == [
        {name: row[name] for name in nested} for row in rows
    ]
    assert [row["radius"] for row in table] == ["" if row["radius"] is None else str(row["radius"]) for row in rows]
    written = stockade("export", "runs/c", "--format", "parquet", "--out", "c.parquet")
    assert "8 rows written to c.parquet" in written.stderr
    read = pyarrow.parquet.read_table(folder / "c.parquet").to_pylist()
    assert [{**row, **{name: json.loads(row[name]) for name in nested}} for row in read] == rows


def test_a_broken_run_is_shown_as_it_is_and_goes_on_to_the_same_end(stockade: Stockade, folder: Path) -> None:
    stockade(*CERTIFY, "--out", "runs/whole")
    stockade(*CERTIFY, "--out", "runs/part", "--concurrency", "3")
    with sqlite3.connect(folder / "runs/part/run.sqlite") as store:  # as a killed process leaves it
        store.execute("DELETE FROM results WHERE CAST(id AS INTEGER) >= 4")
    (folder / "runs/part/summary.json").unlink()
    assert stockade("report", "runs/part").returncode == 0
    assert f"Not complete: 4 of {len(ROWS)} texts are done" in (folder / "runs/part/report.html").read_text()
    assert len(documents(stockade, "runs/part", "--method", "ranmask-gap")) == 4
    broken = stockade("verify", "runs/part")
    assert broken.returncode == 1
    assert "summary.json is missing: the job was interrupted before its end" in broken.stdout

    untrusted = stockade("certify", "--resume", "--out", "runs/part")
    assert (untrusted.returncode, "--trust-run" in untrusted.stderr) == (2, True)
    resumed = stockade("certify", "--resume", "--out", "runs/part", "--trust-run")
    assert resumed.returncode == 0, resumed.stderr
    assert documents(stockade, "runs/part") == documents(stockade, "runs/whole")
    assert stockade("verify", "runs/part").returncode == 0


def test_a_certificate_that_was_tampered_with_is_noticed(stockade: Stockade, folder: Path) -> None:
    stockade(*CERTIFY, "--out", "runs/c")
    where = "WHERE part = 'ranmask-gap' AND id = '0'"
    with sqlite3.connect(folder / "runs/c/run.sqlite") as store:
        (document,) = store.execute(f"SELECT document FROM results {where}").fetchone()
        changed = json.dumps(json.loads(document) | {"radius": 7})
        store.execute(f"UPDATE results SET document = ? {where}", (changed,))
    verified = stockade("verify", "runs/c")
    assert verified.returncode == 1
    assert "ranmask-gap, example 0: recorded radius 7, the evidence gives" in verified.stdout


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["python:victim:predict", "data.jsonl"], "this one has no defense: add --defense partition:by=position"),
        ([*MODEL, "--method", "ranmask-gp"], 'Did you mean "ranmask-gap"?'),
        ([*MODEL, "--method", "position-partition"], "add --defense partition:by=position"),
        ([*MODEL, "--alpha", "0"], "expected a probability between 0 and 1"),
        ([*MODEL, "--method", "ranmask-gap:mosst=3"], "mosst"),
        ([*MODEL, "--limit", "0"], "limit"),
        (["python:victim:predict"], "DATA is missing"),
        (["--resume"], "--resume needs the job's folder"),
    ],
)
def test_what_cannot_be_certified_is_refused_in_one_sentence(refused: Refused, words: list[str], sentence: str) -> None:
    out = [] if words == ["--resume"] else ["--out", "runs/x"]
    assert sentence in refused("certify", *words, *out)


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run of certificates, c, and one of an attack, a."""
    victim = WeightVictim({"good": 4.0}, bias=-0.1)
    rows = [("good good good good film", "positive"), ("a film of no note", "negative")]
    st.certify(st.defend(victim, "ranmask", rate=0.7), rows, out=tmp_path / "c")
    st.attack(victim, rows, "deepwordbug@textattack", similarity=False, out=tmp_path / "a")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refusal(*words: str) -> str:
    """The sentence with which a command ends, in this process: others show how it is printed."""
    with pytest.raises(StockadeError) as caught:
        cli.main(list(words), prog_name="stockade", standalone_mode=False)
    return str(caught.value)


@pytest.mark.usefixtures("runs")
def test_commands_refuse_what_does_not_belong_to_the_run() -> None:
    mixed = refusal("report", "a", "c")
    assert "Only several attacks, or several certifications, go on one page" in mixed
    assert "a (attack), c (certify)" in mixed
    for command in ("show", "export"):
        assert 'Did you mean "ranmask-gap"?' in refusal(command, "c", "--method", "ranmask-gab")
        assert "which is not an attack: leave it out" in refusal(command, "c", "--attack", "deepwordbug")
        assert "which holds no certificates: leave it out" in refusal(command, "a", "--method", "ranmask-gap")
        assert "no attack in this run" in refusal(command, "a", "--attack", "pwws")
    assert "(found: certified, claimed, abstained, error, all)" in refusal("show", "c", "--status", "success")
    assert "(found: success, failed, skipped, error, all)" in refusal("show", "a", "--status", "abstained")
    assert "expected at least 1" in refusal("show", "c", "--limit", "0")
    assert "--resample is for certificates" in refusal("verify", "a", "--resample")
    assert 'no export format "xlsx"' in refusal("export", "c", "--format", "xlsx")


def test_what_is_no_run_of_certificates(runs: Path) -> None:
    (runs / "empty").mkdir()
    for command in ("show", "export", "report"):
        assert "there is no such folder" in refusal(command, "none")
        assert "empty is not a run: it has no manifest.json" in refusal(command, "empty")
    store = runs / "c/run.sqlite"
    store.write_bytes(b"this is no database at all" * 100)
    for command in ("show", "export", "report", "verify"):
        assert "run.sqlite cannot be read" in refusal(command, "c")
    store.unlink()  # as when the process was killed before the first certificate
    for command in ("show", "export", "report", "verify"):
        assert "c has no results: it has no run.sqlite" in refusal(command, "c")
