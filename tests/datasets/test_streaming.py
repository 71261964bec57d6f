"""A file is never read into memory: what is held does not grow with the number of rows."""

from __future__ import annotations

import os
import resource
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stockade.datasets.examples import prepare_examples
from stockade.datasets.load import load_data

ROWS = 10_000
TEXT = "one more little film that nobody had asked for, and yet it has its moments " * 20
BOUND = 3 << 19
"""One and a half megabytes, a tenth of each text file."""


CHILDREN = Path(f"/proc/self/task/{os.getpid()}/children")


def write_csv(path: Path) -> None:
    path.write_text("text,label\n" + f'"{TEXT}",0\n' * (ROWS // 2) + f'"{TEXT}",1\n' * (ROWS // 2))


def write_jsonl(path: Path) -> None:
    path.write_text("".join(f'{{"text": "{TEXT}", "label": {label}}}\n' * (ROWS // 2) for label in (0, 1)))


@pytest.mark.parametrize(("name", "write"), [("r.csv", write_csv), ("r.jsonl", write_jsonl)])
def test_a_sample_of_a_text_file_holds_a_small_part_of_it(
    tmp_path: Path, name: str, write: Callable[[Path], None]
) -> None:
    path = tmp_path / name
    write(path)
    assert path.stat().st_size > 9 * BOUND
    tracemalloc.start()
    try:
        examples = prepare_examples(load_data(path), ("negative", "positive"), limit=100)
        assert sum(1 for _ in examples) == 100
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert examples.total == ROWS
    assert peak < BOUND


@pytest.mark.skipif(not CHILDREN.exists(), reason="looks at the reading process as Linux shows it")
def test_a_parquet_file_of_one_row_group_is_streamed_too(tmp_path: Path) -> None:
    path = tmp_path / "r.parquet"
    rows = 4 * ROWS
    table = pa.table({"text": [f"{TEXT}{number}" for number in range(rows)], "label": [0, 1] * (rows // 2)})
    pq.write_table(table, path, use_dictionary=False, compression="none", row_group_size=rows)
    size = path.stat().st_size
    assert size > 36 * BOUND
    del table
    source, others = load_data(path), set(CHILDREN.read_text().split())
    tracemalloc.start()
    try:
        held = [held_by_reader(others) for number, _ in enumerate(source.rows()) if number % 1000 == 0]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(held) == rows // 1000
    assert max(held) - held[0] < size / 2
    assert peak < 2 * BOUND


def held_by_reader(others: set[str]) -> int:
    """The bytes in memory of the process that reads a file, which is the one that is not among the others."""
    (reader,) = set(CHILDREN.read_text().split()) - others
    return int(Path("/proc", reader, "statm").read_text().split()[1]) * resource.getpagesize()
