"""csv, tsv, json lines and parquet: what is read, and the sentence for what cannot be."""

from __future__ import annotations

import csv
import dataclasses
import gzip
import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.core.errors import DataError
from stockade.core.records import Record
from stockade.datasets.load import load_data
from stockade.datasets.source import DataSource, Row

ROWS = [('a fine, "witty" film', 1), ("dull\nand long", 0), ("😀 مرحبا नमस्ते", 1)]
EXPECTED = [Row(str(number), text, None, label) for number, (text, label) in enumerate(ROWS)]


def write_csv(path: Path, delimiter: str = ",") -> Path:
    with path.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream, delimiter=delimiter).writerows([("text", "label"), *ROWS])
    return path


def write_jsonl(path: Path) -> Path:
    lines = (json.dumps({"text": text, "label": label}) for text, label in ROWS)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def write_parquet(path: Path) -> Path:
    texts, labels = zip(*ROWS, strict=True)
    pq.write_table(pa.table({"text": texts, "label": labels}), path)
    return path


def zipped(path: Path) -> Path:
    target = path.with_name(f"{path.name}.gz")
    target.write_bytes(gzip.compress(path.read_bytes()))
    return target


@pytest.fixture
def written(tmp_path: Path) -> dict[str, Path]:
    plain = {
        "csv": write_csv(tmp_path / "reviews.csv"),
        "tsv": write_csv(tmp_path / "reviews.tsv", "\t"),
        "jsonl": write_jsonl(tmp_path / "reviews.jsonl"),
        "parquet": write_parquet(tmp_path / "reviews.parquet"),
    }
    return plain | {f"{kind}.gz": zipped(plain[kind]) for kind in ("csv", "tsv", "jsonl")}


@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl", "parquet", "csv.gz", "tsv.gz", "jsonl.gz"])
def test_every_format_gives_the_same_rows_again_and_again(written: dict[str, Path], kind: str) -> None:
    source = load_data(written[kind])
    assert list(source.rows()) == EXPECTED
    assert list(source.rows()) == EXPECTED
    assert source.name == written[kind].name
    assert source.label_names is None


def test_a_path_may_be_a_string_and_its_extension_in_capitals(tmp_path: Path) -> None:
    assert list(load_data(str(write_csv(tmp_path / "REVIEWS.CSV"))).rows()) == EXPECTED


def test_the_fingerprint_is_of_the_bytes_and_the_columns_not_of_the_name(tmp_path: Path) -> None:
    first, second = tmp_path / "a.csv", tmp_path / "b.csv"
    first.write_text("text,title,label\na film,A,1\n")
    second.write_text("text,title,label\na film,A,1\n")
    source = load_data(first)
    assert source.fingerprint() == source.fingerprint() == load_data(second).fingerprint()
    assert load_data(first, text_column="title").fingerprint() != source.fingerprint()
    second.write_text("text,title,label\na film,A,0\n")
    assert load_data(second).fingerprint() != source.fingerprint()


def test_a_file_that_changes_between_two_readings_is_refused(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "reviews.csv")
    source = load_data(path)
    path.write_text("text,label\nanother film altogether,1\n")
    with pytest.raises(DataError, match=r"^reviews\.csv has changed since it was opened"):
        list(source.rows())


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")), min_size=1))
def test_csv_gives_back_every_text_to_the_letter(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    texts = [f"“{text}”" for text in texts]  # never blank, which would be a missing text
    path = tmp_path_factory.mktemp("csv") / "texts.csv"
    with path.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows([("text", "label"), *((text, 0) for text in texts)])
    assert [row.text for row in load_data(path).rows()] == texts


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")), min_size=1))
def test_tsv_with_quotes_gives_back_every_text_that_a_quoted_file_can_hold(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str]
) -> None:
    texts = [f"“{text.translate(dict.fromkeys(map(ord, chr(9) + chr(10) + chr(13))))}”" for text in texts]
    path = tmp_path_factory.mktemp("tsv") / "texts.tsv"
    with path.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream, delimiter="\t").writerows([("text", "label"), *((text, 0) for text in texts)])
    assert [row.text for row in load_data(path).rows()] == texts


def test_quotes_in_a_plain_tsv_are_characters(tmp_path: Path) -> None:
    path = tmp_path / "corpus.tsv"
    path.write_text('sentence\tlabel\n"so bad" it is good\t1\n"unclosed\t0\nand closed" here\t1\n')
    assert [row.text for row in load_data(path).rows()] == ['"so bad" it is good', '"unclosed', 'and closed" here']


@pytest.mark.parametrize(("ending", "mark"), [("\n", ""), ("\r\n", ""), ("\r", ""), ("\n", "\ufeff")])
def test_line_endings_byte_order_marks_and_blank_lines_do_not_matter(tmp_path: Path, ending: str, mark: str) -> None:
    path = tmp_path / "reviews.csv"
    path.write_bytes((mark + ending.join(["text,label", "", "good film,1", "", "bad film,0", ""])).encode())
    assert [(row.id, row.text, row.label) for row in load_data(path).rows()] == [
        ("0", "good film", 1),
        ("1", "bad film", 0),
    ]


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_a_text_of_a_megabyte_is_read(tmp_path: Path, kind: str) -> None:
    text = "word " * 210_000
    path = tmp_path / f"long.{kind}"
    line = json.dumps({"text": text, "label": 1})
    path.write_text(line if kind == "jsonl" else f"text,label\n{text},1\n")
    assert [row.text for row in load_data(path).rows()] == [text]


def test_csv_labels_that_look_like_whole_numbers_are_ints(tmp_path: Path) -> None:
    path = tmp_path / "reviews.csv"
    path.write_text("text,label\na,0\nb,1\nc,1.0\nd, -1 \ne,pos\nf,01\ng,1.5\n")
    assert [row.label for row in load_data(path).rows()] == [0, 1, 1, -1, "pos", "01", "1.5"]


def test_json_labels_keep_their_numbers_and_truth_values_are_0_and_1(tmp_path: Path) -> None:
    path = tmp_path / "reviews.jsonl"
    path.write_text("\n".join(f'{{"text": "a", "label": {label}}}' for label in ("0", "true", "false", "2.0", '"pos"')))
    labels = [row.label for row in load_data(path).rows()]
    assert labels == [0, 1, 0, 2, "pos"]
    assert [type(label) for label in labels] == [int, int, int, int, str]


def test_parquet_reads_categories_truth_values_and_recorded_label_names(tmp_path: Path) -> None:
    features = {"label": {"names": ["neg", "pos"], "_type": "ClassLabel"}, "text": {"dtype": "string"}}
    texts = pa.array(["good film", "bad film"]).dictionary_encode()
    table = pa.table({"text": texts, "label": pa.array([True, False])})
    metadata = {"huggingface": json.dumps({"info": {"features": features}})}
    pq.write_table(table.replace_schema_metadata(metadata), tmp_path / "r.parquet")
    source = load_data(tmp_path / "r.parquet")
    assert [(row.text, row.label) for row in source.rows()] == [("good film", 1), ("bad film", 0)]
    assert source.label_names == ("neg", "pos")


Writer = Callable[[Path], object]


def text_file(content: str) -> Writer:
    return lambda path: path.write_text(content, encoding="utf-8", newline="")


def bytes_file(content: bytes) -> Writer:
    return lambda path: path.write_bytes(content)


def parquet_file(**columns: list[object]) -> Writer:
    return lambda path: pq.write_table(pa.table(columns), path)


BROKEN: dict[str, tuple[str, Writer, str]] = {
    "empty csv": ("r.csv", text_file(""), "r.csv is empty, expected a header line"),
    "blank csv": ("r.csv", text_file("\n \n"), "r.csv is empty, expected a header line"),
    "empty jsonl": ("r.jsonl", text_file("\n"), "r.jsonl is empty. Expected one object per line"),
    "empty parquet": ("r.parquet", bytes_file(b""), "r.parquet is empty, expected a parquet table"),
    "header only": ("r.csv", text_file("text,label\n"), "r.csv has columns but no rows (found: text, label)"),
    "parquet without rows": ("r.parquet", parquet_file(text=[], label=[]), "r.parquet has columns but no rows"),
    "unknown extension": ("r.xyz", text_file("text,label\n"), "r.xyz has the extension .xyz, expected a .csv, .tsv"),
    "no extension": ("reviews_file", text_file("text,label\n"), "reviews_file has no extension, expected a .csv"),
    "json": ("r.json", text_file("[]"), "Write one object per line and name it .jsonl."),
    "gzipped parquet": ("r.parquet.gz", bytes_file(b"x"), "r.parquet.gz is a gzipped parquet file"),
    "missing text": (
        "r.csv",
        text_file('text,label\n"two\nlines",1\n,0\n'),
        'r.csv row 1 (line 4) has no text in column "text". Fill it in or remove the row.',
    ),
    "blank text": ("r.csv", text_file("text,label\na,1\n  ,0\n"), 'r.csv row 1 (line 3) has no text in column "text"'),
    "missing label": (
        "r.csv",
        text_file("text,label\na,1\nb,\n"),
        'r.csv row 1 (line 3) has no label in column "label"',
    ),
    "missing key": (
        "r.jsonl",
        text_file('{"text": "a", "label": 1}\n\n{"text": "b"}\n'),
        'r.jsonl row 1 (line 3) has no label in column "label"',
    ),
    "null text": (
        "r.parquet",
        parquet_file(text=["a", None], label=[0, 1]),
        'r.parquet row 1 (counted from 0) has no text in column "text"',
    ),
    "number as text": (
        "r.jsonl",
        text_file('{"text": 3, "label": 1}'),
        'r.jsonl row 0 (line 1) has 3 in column "text", expected a text. Name another column with --text-column.',
    ),
    "fraction as label": (
        "r.jsonl",
        text_file('{"text": "a", "label": 0.5}'),
        'has 0.5 in column "label", expected the name or the whole number of a class',
    ),
    "list as label": ("r.jsonl", text_file('{"text": "a", "label": [1]}'), 'has [1] in column "label", expected'),
    "NaN label": ("r.jsonl", text_file('{"text": "a", "label": NaN}'), "r.jsonl row 0 (line 1) has no label in column"),
    "broken JSON": (
        "r.jsonl",
        text_file('{"text": "a", "label": 1}\n{"text": "b", "label"}\n'),
        "r.jsonl line 2 is not JSON (expecting ':' delimiter at character 22). Expected one object per line",
    ),
    "JSON without a value": (
        "r.jsonl",
        text_file('{"text": "a", "label": 1}\n{"text": }'),
        "line 2 is not JSON (expecting value",
    ),
    "two objects on a line": ("r.jsonl", text_file('{"text": "a", "label": 1} {"text"'), "is not JSON (extra data"),
    "cut JSON": ("r.jsonl", text_file('{"text": "a", "lab'), "r.jsonl line 1 is not JSON (unterminated string"),
    "deep JSON": ("r.jsonl", text_file("[" * 100_000), "r.jsonl line 1 is not JSON (nested too deeply"),
    "JSON list": ("r.jsonl", text_file('[{"text": "a", "label": 1}]'), "r.jsonl line 1 is a list, not an object"),
    "JSON string": ("r.jsonl", text_file('{"text": "a", "label": 1}\n"b"'), 'r.jsonl line 2 is "b", not an object'),
    "twice in JSON": ("r.jsonl", text_file('{"text": "a", "text": "b", "label": 1}'), '2 columns named "text"'),
    "half a surrogate": ("r.jsonl", text_file('{"text": "\\ud83d", "label": 1}'), "half of a surrogate pair in column"),
    "bytes that are no UTF-8": (
        "r.csv",
        bytes_file(b"text,label\ngood,1\ncaf\xe9 noir,0\n"),
        "r.csv line 3 is not UTF-8 text (found: byte 0xe9 at position 4 of the line). Save the file as UTF-8, "
        "or name its encoding, as in --encoding latin-1.",
    ),
    "bytes in jsonl": ("r.jsonl", bytes_file(b'{"text": "caf\xe9", "label": 0}\n'), "r.jsonl line 1 is not UTF-8 text"),
    "UTF-16": ("r.csv", bytes_file("text,label\na,1\n".encode("utf-16")), "The file looks like UTF-16"),
    "UTF-16 without a mark": ("r.csv", bytes_file("text,label\na,1\n".encode("utf-16-le")), "NUL bytes in its header"),
    "gzip under another name": ("r.csv", bytes_file(gzip.compress(b"text,label\n")), "let its name end in .gz"),
    "too many cells": (
        "r.csv",
        text_file("text,label\na,1\nwell, well,1\n"),
        "r.csv row 1 (line 3) has too many cells (found: 3, expected: 2 as in the header). Put double quotes around",
    ),
    "too few cells": (
        "r.csv",
        text_file("text,id,label\na,7,1\nb\n"),
        "r.csv row 1 (line 3) has too few cells (found: 1",
    ),
    "too many tabs": (
        "r.tsv",
        text_file("text\tlabel\na\tb\t1\n"),
        "r.tsv row 0 (line 2) has too many cells (found: 3",
    ),
    "quote never closed": ("r.csv", text_file('text,label\na,1\n"b,0\nc,1\n'), "r.csv line 3 opens a double quote"),
    "a cell without end": (
        "r.csv",
        text_file('text,label\n"' + "a,1\n" * 5_000_000),
        "line 2 begins a cell of more than",
    ),
    "json lines as csv": ("r.csv", text_file('{"id": 1, "words": "a"}\n'), "r.csv has no header line"),
    "letters behind a quote": ("r.csv", text_file('text,label\n"so" bad,0\n'), "r.csv line 2 has letters behind"),
    "NUL": ("r.csv", bytes_file(b"text,label\na,1\nb\0c,0\n"), "r.csv row 1 (line 3) has a NUL byte in column"),
    "NUL in jsonl": (
        "r.jsonl",
        bytes_file(b'{"text": "b\0c", "label": 1}'),
        "r.jsonl line 1 is not JSON (invalid control",
    ),
    "escaped NUL": ("r.jsonl", text_file('{"text": "b\\u0000c", "label": 1}'), "r.jsonl row 0 (line 1) has a NUL byte"),
    "duplicated columns": (
        "r.csv",
        text_file("text,label,text\na,1,b\n"),
        'r.csv has 2 columns named "text" (found: text, label, text), expected each name once. Rename all but one.',
    ),
    "semicolons": ("r.csv", text_file("text;label\na;1\n"), "separate them by commas instead of semicolons"),
    "no parquet": ("r.parquet", text_file("text,label\na,1\n"), "r.parquet cannot be read as parquet"),
    "no gzip": ("r.csv.gz", text_file("text,label\na,1\n"), "r.csv.gz cannot be unpacked"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_file_is_one_sentence_that_says_what_and_where(tmp_path: Path, case: str) -> None:
    name, write, sentence = BROKEN[case]
    write(tmp_path / name)
    with pytest.raises(DataError) as caught:
        list(load_data(tmp_path / name).rows())
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


@given(st.binary(max_size=60), st.sampled_from(["r.csv", "r.tsv", "r.jsonl", "r.parquet", "r.csv.gz", "r.jsonl.gz"]))
def test_whatever_the_bytes_are_the_error_is_ours(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, name: str
) -> None:
    for start in (b"", b"text,label\nfilm,1\n", b"text\tlabel\nfilm\t1\n", b'{"text": "film", "label": 1}\n'):
        path = tmp_path_factory.mktemp("bytes") / name
        path.write_bytes(gzip.compress(start + content) if name.endswith(".gz") else start + content)
        with suppress(DataError):
            assert all(row.text.strip() for row in load_data(path).rows())


def test_truncated_gzip_and_corrupt_gzip_say_so(tmp_path: Path) -> None:
    packed = gzip.compress(b"text,label\n" + b"".join(b"film number %d,1\n" % number for number in range(50_000)))
    path = tmp_path / "r.csv.gz"
    path.write_bytes(packed[: len(packed) // 2])
    with pytest.raises(DataError, match=r"^r\.csv\.gz is cut off: its gzip data ends before"):
        list(load_data(path).rows())
    path.write_bytes(packed[:-8] + bytes(8))
    with pytest.raises(DataError, match=r"^r\.csv\.gz cannot be unpacked"):
        list(load_data(path).rows())


def test_a_truncated_parquet_file_says_so(tmp_path: Path) -> None:
    path = write_parquet(tmp_path / "r.parquet")
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(DataError, match=r"^r\.parquet cannot be read as parquet"):
        load_data(path)


def test_paths_that_are_no_files(tmp_path: Path) -> None:
    write_csv(tmp_path / "reviews.csv")
    with pytest.raises(
        DataError, match=r'^There is no file ".*review\.csv", expected .*Did you mean .*reviews\.csv\?$'
    ):
        load_data(tmp_path / "review.csv")
    with pytest.raises(DataError, match=r"is a folder, expected a \.csv.* such as .*reviews\.csv\.$"):
        load_data(tmp_path)
    for path in (tmp_path / "none" / "x.csv", tmp_path / "reviews.csv" / "x.csv", Path("a\0b.csv")):
        with pytest.raises(DataError, match=r"^There is no file"):
            load_data(path)
    with pytest.raises(DataError, match="cannot be read"):
        load_data("a very long text instead of a path " * 500)


def test_a_parquet_file_with_text_that_is_no_utf8_is_a_sentence(tmp_path: Path) -> None:
    broken = pa.StringArray.from_buffers(1, pa.py_buffer(b"\0\0\0\0\2\0\0\0"), pa.py_buffer(b"\xff\xfe"))
    pq.write_table(pa.table({"text": broken, "label": [1]}), tmp_path / "r.parquet")
    with pytest.raises(DataError, match=r"^r\.parquet"):
        list(load_data(tmp_path / "r.parquet").rows())


def test_a_file_source_is_a_data_source(written: dict[str, Path]) -> None:
    source = load_data(written["csv"])
    assert isinstance(source, DataSource)
    assert load_data(source) is source


@pytest.mark.parametrize("older", [False, True])
def test_our_own_csv_is_known_by_its_header_also_that_of_earlier_versions(tmp_path: Path, older: bool) -> None:
    """What a spreadsheet would run begins with an apostrophe, which is taken off again."""
    names = [field.name for field in dataclasses.fields(Record)]
    names = names[: names.index("hits")] if older else names
    values = {"id": "0", "label": "1", "original": "'=1+1"}
    path = tmp_path / "rows.csv"
    path.write_text(",".join(names) + "\n" + ",".join(values.get(name, "") for name in names) + "\n")
    (row,) = load_data(str(path), text_column="original", label_column="label").rows()
    assert str(row.input) == "=1+1"
