"""Parquet files are read by a process of their own: what it sends is what the file holds, however it ends."""

from __future__ import annotations

import base64
import datetime
import json
import math
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stockade.core import parquet, parquet_worker
from stockade.core.errors import DataError
from stockade.core.limits import LARGEST_READER
from stockade.core.parquet import OtherValue, ParquetError, read_rows, read_schema
from stockade.datasets.load import load_data
from stockade.lexicon.vectors import read_vectors

ABORTING = base64.b64decode(
    "UEFSMRUAFRYVFiwVAhUAFQYVBhwAAAACAAAAAgEBAAAAYRUAFRwVHCwVAhUAFQYVBhwAAAACAAAAAgEBAAAAAAAAABUEGTw1ABgGc2NoZW1h"
    "FQQAFQwlAhgEdGV4dCUATBwAAAAVBCUCGAVsYWJlbAAWAhkcGSwmABwVDBklBgAZGAR0ZXh0FQAWAhY8FjwmCEkcFQAVABUCADwWAhlMGSYA"
    "AgAAACYAHBUEGSUGABkYBWxhYmVsFQAWAhZCFkImREkcFQAVABUCADwpBhkmAAIAAAAWfhYCJggWfgAoIHBhcnF1ZXQtY3BwLWFycm93IHZl"
    "cnNpb24gMjYuMC4xGSwcAAAcAAAAxQAAAFBBUjE="
)
"""A table of one row, of which one byte of the footer was changed: pyarrow 26 aborts when it looks at the columns."""
ROWS = 5_000
LONG = "a little film that nobody had asked for " * 50
"""Ten megabytes of rows, far more than a pipe holds."""


@pytest.fixture
def long_file(tmp_path: Path) -> Path:
    path = tmp_path / "long.parquet"
    pq.write_table(pa.table({"text": [f"{LONG}{row}" for row in range(ROWS)], "label": [0] * ROWS}), path)
    return path


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> list[subprocess.Popen[bytes]]:
    """The processes that are started."""
    started: list[subprocess.Popen[bytes]] = []

    class Recorded(subprocess.Popen):  # type: ignore[type-arg]
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            started.append(self)

    monkeypatch.setattr("stockade.core.parquet.subprocess.Popen", Recorded)
    return started


def open_descriptors() -> set[str]:
    return {entry.name for entry in Path("/proc/self/fd").iterdir()}


def test_rows_are_those_that_pyarrow_reads(tmp_path: Path) -> None:
    texts = ["plain", "", "two\nlines \x00\x1b\u2028", "😀 नमस्ते", '"quoted" \\ \ud7ff'] * 1_000
    columns = {
        "text": texts,
        "large": pa.array(texts, pa.large_string()),
        "category": pa.array(texts).dictionary_encode(),
        "whole": pa.array([2**62 + row for row in range(ROWS)]),
        "real": pa.array([0.1, -math.inf, 1e300, None, 3.0] * 1_000),
        "truth": pa.array([True, None, False, True, False] * 1_000),
        "none": pa.nulls(ROWS),
        "list": pa.array([[row, None] if row % 3 else None for row in range(ROWS)]),
        "struct": pa.array([{"de": "gut", "number": row} for row in range(ROWS)]),
    }
    path = tmp_path / "r.parquet"
    pq.write_table(pa.table(columns), path, row_group_size=3_000)
    assert read_schema(path, "r").columns == tuple(columns)
    expected = [tuple(row.values()) for row in pq.read_table(path).to_pylist()]
    assert [tuple(row) for row in read_rows(path, "r", tuple(columns))] == expected
    assert [row[0] for row in read_rows(path, "r", ["struct"])] == pq.read_table(path)["struct"].to_pylist()


def test_what_json_has_not_got_is_shown_as_python_writes_it(tmp_path: Path) -> None:
    values = [datetime.date(2020, 1, 31), b"bytes \xff", Decimal("1.50"), datetime.datetime(2020, 1, 31, 12)]
    names = [f"c{number}" for number in range(len(values))]
    path = tmp_path / "r.parquet"
    pq.write_table(pa.table({name: [value] for name, value in zip(names, values, strict=True)}), path)
    (row,) = read_rows(path, "r", names)
    assert [repr(cell) for cell in row] == [repr(value) for value in values]
    assert all(isinstance(cell, OtherValue) for cell in row)
    with pytest.raises(DataError, match=r'row 0 .* has datetime.date\(2020, 1, 31\) in column "c0", expected the name'):
        list(load_data(write(tmp_path / "d.parquet", text=["a"], c0=values[:1]), label_column="c0").rows())


def write(path: Path, **columns: Any) -> Path:
    pq.write_table(pa.table(columns), path)
    return path


def test_nan_stays_a_number(tmp_path: Path) -> None:
    ((cell,),) = read_rows(write(tmp_path / "r.parquet", c=[math.nan]), "r", ["c"])
    assert isinstance(cell, float)
    assert math.isnan(cell)


def test_the_schema_has_the_class_names(tmp_path: Path) -> None:
    features = {"label": {"names": ["neg", "pos", "\ud83d"], "_type": "ClassLabel"}, "text": {"dtype": "string"}}
    metadata = {"huggingface": json.dumps({"info": {"features": features}})}
    table = pa.table({"text": ["a"], "label": [1], "name with \0 and .": [1]}).replace_schema_metadata(metadata)
    pq.write_table(table, tmp_path / "r.parquet")
    schema = read_schema(tmp_path / "r.parquet", "r")
    assert schema.class_names == {"label": ("neg", "pos", "\ud83d")}
    assert schema.columns == ("text", "label", "name with \0 and .")


@pytest.mark.parametrize("metadata", ["[" * 100_000, "{", "[]", '{"info": {"features": {"label": 3}}}'])
def test_metadata_that_names_no_classes_is_passed_over(tmp_path: Path, metadata: str) -> None:
    table = pa.table({"text": ["a"]}).replace_schema_metadata({"huggingface": metadata})
    pq.write_table(table, tmp_path / "r.parquet")
    assert read_schema(tmp_path / "r.parquet", "r").class_names == {}


def test_a_file_that_makes_the_library_abort_is_an_error_of_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "r.parquet"
    path.write_bytes(ABORTING)
    with pytest.raises(DataError) as caught:
        list(load_data(path).rows())
    assert str(caught.value).startswith("r.parquet cannot be read as parquet (")
    assert str(caught.value).endswith("). Copy, download or write it again.")
    np.save(tmp_path / "vectors.npy", np.ones((1, 2), np.float32))
    with pytest.raises(DataError, match=r"^The words in .*r\.parquet cannot be read \("):
        read_vectors(tmp_path / "vectors.npy")


DEATHS = {
    "at once": ("os.abort()", ParquetError, "ends the process that reads it with SIGABRT"),
    "between rows": ("send('{\"rows\":[[1]]}\\n'); os.abort()", ParquetError, "SIGABRT"),
    "within a message": ('send(\'{"rows":[[1]]}\\n{"rows":[[2]]}\'); os.abort()', ParquetError, "SIGABRT"),
    "by a bad address": ("os.kill(os.getpid(), signal.SIGSEGV)", ParquetError, "SIGSEGV"),
    "quietly": ("send('{\"rows\":[[1]]}\\n'); os._exit(0)", ParquetError, "ended with code 0"),
    "by an error of Python": ("raise ValueError", ParquetError, "ended with code 1"),
    "for want of memory": ("os.kill(os.getpid(), signal.SIGKILL)", DataError, "r was ended by SIGKILL before the last"),
}


@pytest.mark.parametrize("death", DEATHS)
def test_a_reader_that_dies_is_not_the_end_of_the_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, death: str, capfd: pytest.CaptureFixture[str]
) -> None:
    code, kind, sentence = DEATHS[death]
    program = f"import os, signal, sys\nsend = lambda text: os.write(1, text.encode())\n{code}"
    monkeypatch.setattr(parquet, "interpreter_command", lambda _: [sys.executable, "-c", program])
    path, rows = write(tmp_path / "r.parquet", text=["a"]), list[object]()
    with pytest.raises(kind, match=sentence):
        rows.extend(read_rows(path, "r", ["text"]))
    assert rows == ([[1]] if "send" in code else [])
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(("number", "sentence"), [(signal.SIGKILL, "ended by SIGKILL"), (signal.SIGSEGV, "SIGSEGV")])
def test_a_reader_that_is_killed_half_way_is_an_error(
    long_file: Path, processes: list[subprocess.Popen[bytes]], number: int, sentence: str
) -> None:
    rows = load_data(long_file).rows()
    assert next(rows).id == "0"
    os.kill(processes[-1].pid, number)
    with pytest.raises(DataError, match=sentence) as caught:
        assert len(list(rows)) < ROWS
    assert "\n" not in str(caught.value)


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="counts open files as Linux lists them")
@pytest.mark.parametrize("how", ["closed", "forgotten", "read to the end", "broken"])
def test_nothing_is_left_of_a_reader(long_file: Path, processes: list[subprocess.Popen[bytes]], how: str) -> None:
    before = open_descriptors()
    if how == "broken":
        long_file.write_bytes(ABORTING)
    try:
        rows: Iterator[object] | None = iter(read_rows(long_file, "r", ["text"]))
        assert rows is not None
        next(rows)
        if how == "closed":
            rows.close()  # type: ignore[attr-defined]
        elif how == "read to the end":
            assert sum(1 for _ in rows) == ROWS - 1
        rows = None
    except ParquetError:
        assert how == "broken"
    assert open_descriptors() == before
    (process,) = processes
    assert process.returncode is not None
    with pytest.raises(ChildProcessError):
        os.waitpid(process.pid, 0)


def test_the_reader_waits_for_whoever_reads(long_file: Path, processes: list[subprocess.Popen[bytes]]) -> None:
    rows = read_rows(long_file, "r", ["text"])
    next(rows)
    with pytest.raises(subprocess.TimeoutExpired):
        processes[0].wait(1)  # the whole file takes it a tenth of that
    assert sum(1 for _ in rows) == ROWS - 1


READING = """
import os, sys, time
from pathlib import Path
from stockade.core import parquet

def recorded(name, start=parquet._start):
    process = start(name)
    print(process.pid, flush=True)
    return process

parquet._start = recorded
try:
    for row in parquet.read_rows(Path(sys.argv[1]), "r", ["text"]):
        if sys.argv[2] == "die":
            os._exit(9)
        print("reading", flush=True)
        time.sleep(60)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


def reading(path: Path, then: str) -> subprocess.Popen[str]:
    """A process that prints the number of its reader, reads a row, and waits or dies."""
    return subprocess.Popen(
        [sys.executable, "-c", READING, str(path), then],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "STOCKADE_TRACEBACK": "1"},
        text=True,
        process_group=0,
    )


def test_control_c_is_for_the_process_that_wants_the_rows(long_file: Path) -> None:
    process = reading(long_file, "wait")
    assert process.stdout is not None
    reader = int(process.stdout.readline())
    assert process.stdout.readline() == "reading\n"
    os.killpg(process.pid, signal.SIGINT)
    assert process.communicate(timeout=30) == ("interrupted\n", "")
    with pytest.raises(ProcessLookupError):
        os.kill(reader, 0)


def test_a_reader_ends_when_the_process_that_wants_the_rows_has_died(long_file: Path) -> None:
    process = reading(long_file, "die")
    reader, errors = process.communicate(timeout=30)
    assert (process.returncode, errors) == (9, "")
    for _ in range(100):
        if not is_running(int(reader)):
            return
        time.sleep(0.1)
    raise AssertionError("the reader goes on")


def is_running(pid: int) -> bool:
    """Whether a process is there and no zombie, which it stays where nobody collects orphans."""
    listed = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
    return bool(listed.strip()) and not listed.strip().startswith("Z")


def test_a_file_that_is_no_parquet_starts_no_process(tmp_path: Path, processes: list[subprocess.Popen[bytes]]) -> None:
    path = tmp_path / "r.parquet"
    for content in (b"PAR", b"PAR1 and something else", bytes(1000)):
        path.write_bytes(content)
        with pytest.raises(ParquetError, match="does not end with PAR1"):
            read_schema(path, "r")
    path.unlink()
    with pytest.raises(ParquetError, match="No such file"):
        read_schema(path, "r")
    assert processes == []


def test_a_system_that_starts_no_process_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "interpreter_command", lambda _: [str(tmp_path / "absent")])
    with pytest.raises(DataError, match=r"No process can be started to read r \(No such file"):
        read_schema(write(tmp_path / "r.parquet", text=["a"]), "r")


def test_the_reader_has_a_limit_of_memory() -> None:
    child = os.fork()
    if not child:
        code = 1
        try:
            parquet_worker.limit_memory()
            try:
                bytearray(LARGEST_READER)
            except MemoryError:
                code = 0 if resource.getrlimit(resource.RLIMIT_CORE)[0] == 0 else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_more_memory_than_the_limit_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def exceeds(*_: object, **__: object) -> None:
        raise MemoryError("malloc of size 8589934592 failed")

    monkeypatch.setattr(pq, "ParquetFile", exceeds)
    (message,) = parquet_worker.answers("r.parquet", "r.parquet", ["text"])
    assert json.loads(message)["refused"].startswith("r.parquet needs more than 4,294,967,296 bytes of memory")


def test_the_reader_imports_nothing_from_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "r.parquet", text=["a"])
    for module in ("json", "resource", "pyarrow", "stockade"):
        (tmp_path / f"{module}.py").write_text("open('canary', 'w')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    assert read_schema(path, "r").columns == ("text",)
    assert not (tmp_path / "canary").exists()
