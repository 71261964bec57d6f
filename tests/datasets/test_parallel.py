"""Parallel data: which columns are read, and what is said of broken rows."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stockade.core.errors import DataError, OptionError
from stockade.datasets.parallel import SentencePair, load_parallel
from stockade.datasets.source import DataSource

ROWS = [("a dog", "ein Hund"), ("a cat", "eine Katze")]
PAIRS = [SentencePair("0", "a dog", "ein Hund"), SentencePair("1", "a cat", "eine Katze")]


@pytest.mark.parametrize(
    ("header", "columns"),
    [
        ("source,target", ("source", "target")),
        ("Target,Source", ("Source", "Target")),
        ("src,tgt", ("src", "tgt")),
        ("en,de", ("en", "de")),
        ("de,en", ("de", "en")),
        ("English,German", ("English", "German")),
        ("text,translation", ("text", "translation")),
        ("left,right", ("left", "right")),
    ],
)
def test_columns_are_guessed_by_their_names(tmp_path: Path, header: str, columns: tuple[str, str]) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text(f"{header}\na dog,ein Hund\n")
    loaded = load_parallel(path)
    assert (loaded.source_column, loaded.target_column) == columns


@pytest.mark.parametrize(
    ("named", "columns"),
    [
        ({"source_column": "de"}, ("de", "en")),
        ({"target_column": "en"}, ("de", "en")),
        ({"source_column": "EN"}, ("en", "de")),
        ({"source_column": "note", "target_column": "en"}, ("note", "en")),
    ],
)
def test_named_columns_win_and_turn_the_direction(named: dict[str, Any], columns: tuple[str, str]) -> None:
    loaded = load_parallel([{"id": 1, "en": "a dog", "de": "ein Hund", "note": "x"}], **named)
    assert (loaded.source_column, loaded.target_column) == columns


def test_every_format_gives_the_same_pairs(tmp_path: Path) -> None:
    (tmp_path / "p.tsv").write_text("en\tde\n" + "".join(f"{source}\t{target}\n" for source, target in ROWS))
    lines = "".join(json.dumps({"en": source, "de": target}) + "\n" for source, target in ROWS)
    (tmp_path / "p.jsonl").write_text(lines)
    with gzip.open(tmp_path / "p.jsonl.gz", "wt") as stream:
        stream.write(lines)
    frame = pd.DataFrame(ROWS, columns=["en", "de"])
    pq.write_table(pa.Table.from_pandas(frame), tmp_path / "p.parquet")
    references: list[object] = [tmp_path / name for name in ("p.tsv", "p.jsonl", "p.jsonl.gz", "p.parquet")]
    for reference in [*references, ROWS, frame, [{"source": s, "target": t} for s, t in ROWS]]:
        loaded = load_parallel(reference)
        assert list(loaded.pairs()) == PAIRS
        assert isinstance(loaded, DataSource)
        assert [row.input for row in loaded.rows()] == ROWS
        assert load_parallel(loaded) is loaded


def test_fingerprint_follows_content_and_direction() -> None:
    first, other = load_parallel(ROWS), load_parallel([*ROWS, ("a bird", "ein Vogel")])
    turned = load_parallel(ROWS, source_column="target", target_column="source")
    assert first.fingerprint() == load_parallel(list(ROWS)).fingerprint()
    assert len({first.fingerprint(), other.fingerprint(), turned.fingerprint()}) == 3


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("a bird,", 'pairs.csv row 1 (line 3) has no text in column "de". Fill it in or remove the row.'),
        (",ein Vogel", 'pairs.csv row 1 (line 3) has no text in column "en". Fill it in or remove the row.'),
        ("  ,ein Vogel", 'pairs.csv row 1 (line 3) has no text in column "en". Fill it in or remove the row.'),
    ],
)
def test_missing_side_is_an_error_that_names_the_row(tmp_path: Path, line: str, problem: str) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text(f"en,de\na dog,ein Hund\n{line}\n")
    with pytest.raises(DataError) as error:
        list(load_parallel(path).pairs())
    assert str(error.value) == problem


def test_number_in_place_of_a_text_names_the_right_option() -> None:
    with pytest.raises(DataError, match=r'has 7 in column "target", expected a text.*--target-column'):
        list(load_parallel([("a dog", 7)]).pairs())


def test_wrong_columns_are_errors_of_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text("id,phrase,version\n1,a dog,ein Hund\n")
    with pytest.raises(DataError, match=r'has no column "source" \(found: id, phrase, version\).*--source-column NAME'):
        load_parallel(path)
    with pytest.raises(DataError, match=r'has no column "target".*--target-column'):
        load_parallel(path, source_column="phrase")
    with pytest.raises(DataError, match=r'has no column "phrases".*--source-column phrase'):
        load_parallel(path, source_column="phrases", target_column="version")
    with pytest.raises(OptionError, match="as source and as target"):
        load_parallel(path, source_column="phrase", target_column="phrase")
    with pytest.raises(DataError, match="has columns but no rows"):
        load_parallel(pd.DataFrame({"en": [], "de": []}))
    with pytest.raises(DataError, match=r"expected \(source, target\)"):
        load_parallel([("a", "b"), ("a", "b", "c")])
    with pytest.raises(OptionError, match="chosen already"):
        load_parallel(load_parallel(ROWS), source_column="source")


def test_the_built_in_reviews_are_no_translations() -> None:
    with pytest.raises(DataError, match=r"^builtin:reviews has texts with labels, expected source sentences"):
        load_parallel("builtin:reviews")
