"""Damaged files of every kind end in one sentence, never in a traceback; `make fuzz` tries for minutes."""

from __future__ import annotations

import gzip
import io
import json
import shutil
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import strategies as st

from stockade.core.errors import StockadeError
from stockade.datasets.load import load_data
from stockade.datasets.parallel import load_parallel
from stockade.defenses.chain import load_defenses
from stockade.defenses.detector import load_detector
from stockade.lexicon.neighbours import read_neighbours
from stockade.lexicon.rules import read_rules
from stockade.lexicon.vectors import read_vectors
from stockade.models.adapters import load_model
from stockade.studies.transferability.matrix import TransferMatrix
from tests.e2e.conftest import in_process
from tests.security import kit
from tests.security.fuzzing import damaged_bytes, damaged_json, tried

LINES = b'text,label\n"a ""fine"" film",1\nbad,0\n'
RULE = {"label": "positive", "word": "funny", "replacement": "laughable", "salience": 3.5, "count": 104}


def _parquet() -> bytes:
    stream = io.BytesIO()
    pq.write_table(pa.table({"text": ["a film", "bad"], "label": [1, 0]}), stream)
    return stream.getvalue()


def _npz() -> bytes:
    stream = io.BytesIO()
    words, about = (np.frombuffer(text, dtype=np.uint8) for text in (b"film\nbad", b"{}"))
    np.savez_compressed(stream, words=words, matrix=np.ones((2, 3), np.int8), about=about)
    return stream.getvalue()


def _npy() -> bytes:
    stream = io.BytesIO()
    np.save(stream, np.ones((2, 3), np.float32))
    return stream.getvalue()


DATA = {
    "r.csv": LINES,
    "r.tsv": LINES.replace(b",", b"\t"),
    "r.jsonl": b'{"text": "a film", "label": 1}\n{"text": "bad", "label": "0"}\n',
    "r.parquet": _parquet(),
    "r.csv.gz": gzip.compress(LINES),
    "r.jsonl.gz": gzip.compress(b'{"text": "a film", "label": 1}\n'),
}
TABLES = {
    "t.npz": _npz(),
    "t.npy": _npy(),
    "t.txt": b"film 1.0 2.0\nbad 0.5 0.25\n",
    "t.txt.gz": gzip.compress(b"film 1.0 2.0\nbad 0.5 0.25\n"),
    "t.bin": b"2 2\nfilm " + np.ones(2, "<f4").tobytes() + b"\nbad " + np.ones(2, "<f4").tobytes() + b"\n",
    "t.jsonl": b'{"stockade_rules": 1}\n' + json.dumps(RULE).encode() + b"\n",
    "t.csv": b"source,a,b\na,,0.5\nb,0.25,\n",
    "t.json": b'{"schema": 1}',
    "t.parquet": _parquet(),
}
FILES = ("manifest.json", "summary.json", "run.sqlite", "run.lock", "report.html")
DAMAGES = (*["manifest.json"] * 3, *["rows"] * 4, "run.sqlite", "run.lock", "summary.json", "folder")
COMMANDS = (
    ("show", "run"),
    ("report", "run"),
    ("export", "run", "--format", "csv", "--out", "rows.csv"),
    ("verify", "run"),
    ("resume", "run"),
)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The current directory, with an honest folder of each kind in `runs`."""
    folder = tmp_path_factory.mktemp("fuzz")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("STOCKADE_CACHE", str(folder / "cache"))
        kit.lay_out(folder)
        (folder / f"{kit.CANARY}.py").unlink()
        for kind, make in kit.MAKERS.items():
            make(folder / "runs" / kind)
        yield folder


def holds_up(*words: str) -> None:
    """Run a command that must end in an orderly way, whatever it reads."""
    result = in_process(*words)
    assert result.returncode in (0, 1, 2, 3), (words, result.stderr)
    if result.returncode == 2:
        assert len(result.stderr.strip().splitlines()) == 1, (words, result.stderr)


@tried(60)
def test_data_files(place: Path, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(DATA)))
    (place / name).write_bytes(data.draw(damaged_bytes(DATA[name])))
    for load in (load_data, load_parallel):
        with suppress(StockadeError):
            source: Any = load(place / name)
            for row in source.rows() if hasattr(source, "rows") else source:
                assert row


@tried(60)
def test_tables_of_words_rules_and_rates(place: Path, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(TABLES)))
    path = place / name
    path.write_bytes(data.draw(damaged_bytes(TABLES[name])))
    readers: dict[str, list[Any]] = {
        ".jsonl": [read_rules],
        ".csv": [TransferMatrix.read],
        ".json": [lambda file: load_detector(str(file))],
        ".parquet": [lambda file: read_vectors(_beside(file))],
    }
    for read in readers.get(path.suffix, [read_neighbours, read_vectors]):
        with suppress(StockadeError):
            read(path)
    if name == "t.txt":
        path.unlink()  # it would be the words of t.npy


def _beside(words: Path) -> Path:
    """A matrix in a folder whose only other file holds its words."""
    folder = words.parent / "vectors"
    folder.mkdir(exist_ok=True)
    words.rename(folder / words.name)
    (folder / "v.npy").write_bytes(TABLES["t.npy"])
    return folder / "v.npy"


@tried(15)
def test_files_of_a_model(place: Path, data: st.DataObject) -> None:
    theirs = place / "theirs"
    shutil.rmtree(theirs, ignore_errors=True)
    shutil.copytree(place / kit.MODEL, theirs)
    item = {"key": "ranmask", "name": "ranmask", "preset": "default", "options": {"rate": 0.3}}
    (theirs / "defense.json").write_text(json.dumps({"schema": 1, "defenses": [item]}))
    name = data.draw(st.sampled_from(sorted(path.name for path in theirs.iterdir())))
    path = theirs / name
    if path.suffix == ".json" and data.draw(st.booleans()):
        path.write_text(json.dumps(data.draw(damaged_json(json.loads(path.read_text())))))
    else:
        path.write_bytes(data.draw(damaged_bytes(path.read_bytes())))
    with suppress(StockadeError):
        load_defenses(theirs)
    with suppress(StockadeError):
        assert load_model(str(theirs)).labels


@tried(40)
def test_files_of_options(place: Path, data: st.DataObject) -> None:
    options = ["attack", "limit", "budget", "preset", "similarity", "seed", "out", "label-map", "attack_options", "x"]
    written = [
        "1",
        "-1",
        '"x"',
        "true",
        "[1]",
        '["pwws"]',
        "{}",
        "1979-05-27",
        "inf",
        '{"pwws" = 1}',
        "{pwws = {x = 1}}",
    ]
    lines = [f"{data.draw(st.sampled_from(options))} = {data.draw(st.sampled_from(written))}" for _ in range(2)]
    content = "\n".join(lines).encode()
    (place / "o.toml").write_bytes(content if data.draw(st.booleans()) else data.draw(damaged_bytes(content)))
    holds_up("attack", kit.MODEL, "absent.csv", "--attack", "pwws", "--config", "o.toml")


def _damage_json(run: Path, name: str, data: st.DataObject) -> None:
    path = run / name
    if data.draw(st.integers(0, 3)) and path.exists():
        path.write_text(json.dumps(data.draw(damaged_json(json.loads(path.read_text())))))
    else:
        path.write_bytes(data.draw(damaged_bytes(path.read_bytes() if path.exists() else b"{}")))


def _damage_rows(run: Path, data: st.DataObject) -> None:
    """Change the document, or another cell, of one stored result."""
    with closing(sqlite3.connect(run / "run.sqlite", isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode=DELETE")
        rows = connection.execute("SELECT rowid, document FROM results ORDER BY rowid").fetchall()
        if not rows:
            return
        rowid, document = data.draw(st.sampled_from(rows))
        column = data.draw(st.sampled_from(["document"] * 5 + ["part", "id", "position", "status"]))
        if column == "document":
            changed: Any = json.dumps(data.draw(damaged_json(json.loads(document))))
        else:
            changed = data.draw(st.one_of(st.text("ab\x1b", max_size=4), st.integers(-5, 5), st.binary(max_size=4)))
        with suppress(sqlite3.IntegrityError):
            connection.execute(f"UPDATE results SET {column} = ? WHERE rowid = ?", (changed, rowid))


def _damaged_run(place: Path, kind: str, data: st.DataObject) -> None:
    run = place / "run"
    shutil.rmtree(run, ignore_errors=True)
    shutil.copytree(place / "runs" / kind, run)
    folders = sorted({path.parent for path in run.rglob("manifest.json")})
    folder = data.draw(st.sampled_from(folders))
    match data.draw(st.sampled_from(DAMAGES)):
        case "rows":
            _damage_rows(folder, data)
        case "run.sqlite" | "run.lock" as name:
            path = folder / name
            path.write_bytes(data.draw(damaged_bytes(path.read_bytes() if path.exists() else b"")))
        case "folder":
            name = data.draw(st.sampled_from(FILES))
            (folder / name).unlink(missing_ok=True)
            (folder / name).mkdir()
        case name:
            _damage_json(folder, name, data)


@pytest.mark.parametrize("kind", ["attack", "certify"])
@tried(25)
def test_folders_of_texts(place: Path, kind: str, data: st.DataObject) -> None:
    _damaged_run(place, kind, data)
    for words in COMMANDS:
        holds_up(*words)


@pytest.mark.parametrize("kind", ["evaluate", "study"])
@tried(6)
def test_folders_of_jobs(place: Path, kind: str, data: st.DataObject) -> None:
    _damaged_run(place, kind, data)
    for words in COMMANDS:
        holds_up(*words)


@pytest.mark.parametrize("kind", ["tune", "train"])
@tried(10)
def test_folders_of_searches_and_trainings(place: Path, kind: str, data: st.DataObject) -> None:
    _damaged_run(place, kind, data)
    for words in COMMANDS:
        holds_up(*words)


@tried(10)
def test_a_study_that_reads_the_folder_of_another(place: Path, data: st.DataObject) -> None:
    _damaged_run(place, "study", data)
    shutil.rmtree(place / "made", ignore_errors=True)
    holds_up("study", "ensemble", "--matrix", "run", "--search-only", "--out", "made")
    sys.modules.pop(kit.CANARY, None)
