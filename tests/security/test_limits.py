"""A few bytes of a stranger's do not fill the memory, take for ever, or end in a traceback."""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import shutil
import tempfile
from pathlib import Path

import click
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stockade.cli import main as command_line
from stockade.core import parquet_worker
from stockade.core.errors import DataError, ModelError, RunError
from stockade.core.limits import LONGEST_CELL, LONGEST_LINE, MOST_COLUMNS, MOST_LABELS
from stockade.datasets.load import load_data
from stockade.experiment.store import ResultStore
from stockade.lexicon.neighbours import read_neighbours
from stockade.lexicon.vectors import read_vectors
from stockade.models.adapters import load_model
from stockade.models.masked_lm import MaskedLM
from stockade.training.data import prepare_data
from tests.e2e.conftest import in_process
from tests.models.conftest import tiny_bert, tiny_tokenizer

GIGABYTES = 160
"""As many members of a gzip file, sixteen megabytes each, make one line of 2.5 gigabytes in 2.6 megabytes."""


def endless(start: bytes) -> bytes:
    return gzip.compress(start) + gzip.compress(b"a" * (1 << 24)) * GIGABYTES


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("r.csv.gz", b""),
        ("r.csv.gz", b'text,label\nfilm,1\n"'),
        ("r.csv.gz", b"text,label\nfilm,1\n"),
        ("r.tsv.gz", b"text\tlabel\nfilm\t1\n"),
        ("r.jsonl.gz", b""),
        ("r.jsonl.gz", b'{"text": "film", "label": 1}\n{'),
    ],
)
def test_a_line_of_gigabytes_is_refused_after_some_megabytes(tmp_path: Path, name: str, start: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(endless(start))
    assert path.stat().st_size < 1 << 22
    with pytest.raises(DataError, match=rf"{name} line \d is longer than {LONGEST_LINE:,} bytes"):
        list(load_data(path).rows())


def test_words_with_a_vector_of_gigabytes_are_refused(tmp_path: Path) -> None:
    (tmp_path / "v.txt.gz").write_bytes(endless(b"film 1.0 2.0\n"))
    with pytest.raises(DataError, match=f"longer than {LONGEST_LINE:,} bytes"):
        read_vectors(tmp_path / "v.txt.gz")


@pytest.mark.parametrize("rows", [1, 100_000])
def test_parquet_with_huge_cells_is_refused(tmp_path: Path, rows: int) -> None:
    path = tmp_path / "r.parquet"
    repeated = pa.DictionaryArray.from_arrays(np.zeros(rows, dtype=np.int32), pa.array(["a" * 50_000_000]))
    table = pa.table({"text": repeated, "label": np.zeros(rows, dtype=np.int64)})
    pq.write_table(table, path, compression="zstd", write_statistics=False, dictionary_pagesize_limit=1 << 30)
    assert path.stat().st_size < 1 << 14
    with pytest.raises(DataError, match=f"a cell of 50,000,000 bytes, expected at most {LONGEST_CELL:,}"):
        list(load_data(path).rows())


def test_parquet_that_unpacks_to_far_more_than_it_is_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stockade.core.parquet_worker.LARGEST_CHUNK", 1 << 20)
    path = tmp_path / "r.parquet"
    table = pa.table({"text": ["a" * 10_000] * 1_000, "label": [0] * 1_000})
    pq.write_table(table, path, compression="zstd", use_dictionary=False)
    (message,) = parquet_worker.answers(str(path), path.name, ["text"])
    assert re.match(
        r'The column "text" of r\.parquet takes .* times its size in the file', json.loads(message)["refused"]
    )


@pytest.mark.parametrize("name", ["r.csv", "r.tsv", "r.jsonl", "r.parquet"])
def test_a_table_of_too_many_columns_is_refused(tmp_path: Path, name: str) -> None:
    columns = [f"c{number}" for number in range(MOST_COLUMNS)] + ["text"]
    path = tmp_path / name
    if name.endswith("parquet"):
        pq.write_table(pa.table({column: ["x"] for column in columns}), path)
    elif name.endswith("jsonl"):
        path.write_text(json.dumps(dict.fromkeys(columns, "x")) + "\n")
    else:
        mark = "," if name.endswith("csv") else "\t"
        path.write_text(f"{mark.join(columns)}\n{mark.join('x' for _ in columns)}\n")
    with pytest.raises(DataError, match=f"10,001 columns .*expected at most {MOST_COLUMNS:,}"):
        load_data(path)


def test_training_on_data_with_too_many_labels_is_refused(tmp_path: Path) -> None:
    lines = "".join(f"a film,l{number}\n" * 3 for number in range(MOST_LABELS + 1))
    (tmp_path / "r.csv").write_text("text,label\n" + lines)
    with pytest.raises(DataError, match="different labels"):
        prepare_data(load_data(tmp_path / "r.csv"), None)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"num_labels": 10**9}, "num_labels 1000000000 in its config.json, expected at most 10,000"),
        ({"num_hidden_layers": 10**9}, "num_hidden_layers 1000000000 .* at most 1,000"),
        ({"id2label": {str(n): str(n) for n in range(10_001)}}, "names 10,001 classes"),
    ],
)
def test_a_model_whose_config_promises_too_much_is_refused(
    tmp_path: Path, change: dict[str, object], sentence: str
) -> None:
    folder = tmp_path / "bert"
    tiny_bert().save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)
    config = json.loads((folder / "config.json").read_text())
    config.pop("id2label", None)
    (folder / "config.json").write_text(json.dumps({**config, **change}))
    with pytest.raises(ModelError, match=sentence):
        load_model(str(folder))
    with pytest.raises(ModelError, match=sentence):
        MaskedLM.from_pretrained(folder)


def test_a_neighbour_table_that_unpacks_to_gigabytes_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stockade.lexicon.neighbours.LARGEST_ARRAYS", 1 << 20)
    np.savez_compressed(tmp_path / "t.npz", words=np.zeros(1 << 20, dtype=np.uint8))
    with pytest.raises(DataError, match="bytes unpacked, expected at most 1,048,576"):
        read_neighbours(tmp_path / "t.npz")


def test_an_array_whose_header_promises_terabytes_is_refused(tmp_path: Path) -> None:
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": "<f4", "fortran_order": False, "shape": (10**9, 10**4)})
    (tmp_path / "v.npy").write_bytes(stream.getvalue())
    (tmp_path / "v.txt").write_text("film\n")
    with pytest.raises(DataError, match=r"no \.npy file"):
        read_vectors(tmp_path / "v.npy")


@pytest.mark.parametrize("damage", ["cut", "flipped", "text inside"])
def test_a_corrupt_gzip_file_is_an_error_and_no_interruption(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    monkeypatch.chdir(tmp_path)
    packed = gzip.compress(b"text,label\n" + b"".join(b"film %d \xff,1\n" % n for n in range(20_000)))
    content = {
        "cut": packed[: len(packed) // 2],
        "flipped": packed[:5000] + bytes(byte ^ 255 for byte in packed[5000:5050]) + packed[5050:],
        "text inside": packed[:20] + b"text,label\n" * 50,
    }[damage]
    Path("r.csv.gz").write_bytes(content)
    result = in_process("lexicon", "entities", "r.csv.gz", "--out", "t.jsonl")
    assert result.returncode == 2, result.stderr
    assert "interrupted" not in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


def test_the_end_of_a_file_is_not_taken_for_control_d(monkeypatch: pytest.MonkeyPatch) -> None:
    def ends(**_: object) -> None:
        raise click.Abort from EOFError("no more")

    monkeypatch.setattr(command_line.cli, "main", ends)
    result = in_process("ls")
    assert (result.returncode, result.stderr) == (
        2,
        "stockade: a file ends before it should. Copy or download it again.\n",
    )


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and another user")
@pytest.mark.parametrize("with_log", [False, True])
def test_results_are_read_where_nothing_can_be_written(with_log: bool) -> None:
    """As on a mount that is read-only, by a user who may not write; a log that was not taken in is read too."""
    with tempfile.TemporaryDirectory() as place:  # pytest's own folders are closed to other users
        source, folder = Path(place) / "source", Path(place) / "run"
        source.mkdir()
        store = ResultStore(source, writable=True)
        store.add("part", "1", {"text": "one"})
        if not with_log:
            store.settle()
            store.close()
        shutil.copytree(source, folder)
        if with_log:
            assert (folder / "run.sqlite-wal").stat().st_size > 0
            (folder / "run.sqlite-shm").unlink(missing_ok=True)
            store.close()
        before = sorted(path.name for path in folder.iterdir())
        Path(place).chmod(0o755)
        for path in folder.iterdir():
            path.chmod(0o444)
        folder.chmod(0o555)
        child = os.fork()
        if not child:
            _read_as_somebody_else(folder)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert sorted(path.name for path in folder.iterdir()) == before
        folder.chmod(0o755)


def _read_as_somebody_else(folder: Path) -> None:
    """In a process of its own, which ends here: whether the results can be read by a user who may write nothing."""
    code = 2
    try:
        if os.getuid() == 0:
            os.setgid(65534)
            os.setuid(65534)
        code = 0 if list(ResultStore(folder).documents()) == [{"text": "one"}] else 1
    finally:
        os._exit(code)


def test_a_store_that_was_killed_while_it_was_made_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stockade.core.files.os.fsync", lambda _: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        ResultStore(tmp_path, writable=True)
    assert not list(tmp_path.iterdir())
    monkeypatch.undo()
    ResultStore(tmp_path, writable=True).close()
    assert [path.name for path in tmp_path.iterdir()] == ["run.sqlite"]


def test_a_result_that_is_not_an_object_is_refused(tmp_path: Path) -> None:
    store = ResultStore(tmp_path, writable=True)
    store.add("part", "1", {"text": "one"})
    store._connection.execute("UPDATE results SET document = '[1, 2]'")
    with pytest.raises(RunError, match="a result is list, expected an object"):
        list(store.documents())
    with pytest.raises(RunError, match="a result is list, expected an object"):
        store.get("part", "1")


def test_the_docs_list_every_limit() -> None:
    from stockade.core import limits

    text = (Path(__file__).parents[2] / "docs" / "data.md").read_text()
    for name, value in vars(limits).items():
        if name.isupper():
            assert f"{value:,}" in text, name


@pytest.mark.parametrize(
    "item", [{"name": None, "preset": "default", "options": {}}, [], None, {"name": [], "preset": 0}]
)
def test_a_defense_file_of_the_wrong_kind_is_refused(tmp_path: Path, item: object) -> None:
    from stockade.defenses.chain import load_defenses

    (tmp_path / "defense.json").write_text(json.dumps({"schema": 1, "defenses": [item]}))
    with pytest.raises(ModelError, match=r"defense\.json (cannot be read|names what)"):
        load_defenses(tmp_path)
