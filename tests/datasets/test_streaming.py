"""A file is never read into memory: what is held does not grow with the number of rows."""

from __future__ import annotations

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


def test_a_parquet_file_of_one_row_group_is_streamed_too(tmp_path: Path) -> None:
    path = tmp_path / "r.parquet"
    rows = 2 * ROWS
    table = pa.table({"text": [f"{TEXT}{number}" for number in range(rows)], "label": [0, 1] * ROWS})
    pq.write_table(table, path, use_dictionary=False, compression="none", row_group_size=rows)
    assert path.stat().st_size > 18 * BOUND
    del table
    before = pa.total_allocated_bytes()
    held = [pa.total_allocated_bytes() - before for _ in load_data(path).rows()]
    assert len(held) == rows
    assert max(held) < 6 * BOUND
