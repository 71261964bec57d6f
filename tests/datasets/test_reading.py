"""Files that are not UTF-8, not separated by commas, or not whole: read as the user says, and counted."""

from __future__ import annotations

from pathlib import Path

import pytest

import stockade as st
from stockade.core.errors import DataError, OptionError
from stockade.datasets.load import load_data
from stockade.datasets.source import Skipped, TableSource
from stockade.experiment.inputs import DataOptions, skipped_rows


def texts(path: Path, **options: object) -> list[tuple[str, str, object]]:
    source = load_data(path, **options)  # type: ignore[arg-type]
    return [(row.id, row.text, row.label) for row in source.rows()]


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16"])
def test_the_encoding_can_be_named(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "r.csv"
    path.write_bytes("text,label\ncafé society,1\n".encode(encoding))
    with pytest.raises(DataError, match="UTF-8"):
        texts(path)
    assert texts(path, encoding=encoding) == [("0", "café society", 1)]
    lines = tmp_path / "r.jsonl"
    lines.write_bytes('{"text": "café society", "label": 1}\n'.encode(encoding))
    assert texts(lines, encoding=encoding) == [("0", "café society", 1)]


def test_an_encoding_that_does_not_fit_or_does_not_exist(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_bytes("text,label\ncafé,1\n".encode("latin-1"))
    with pytest.raises(DataError, match=r"r\.csv is not ascii text .* Name another with --encoding"):
        texts(path, encoding="ascii")
    for encoding in ("utf-9", "rot13"):
        with pytest.raises(OptionError, match=f"--encoding {encoding} is no encoding of text"):
            texts(path, encoding=encoding)


@pytest.mark.parametrize(("delimiter", "mark"), [(";", ";"), ("|", "|"), ("tab", "\t"), ("\\t", "\t"), ("^", "^")])
def test_the_delimiter_can_be_named(tmp_path: Path, delimiter: str, mark: str) -> None:
    path = tmp_path / "r.csv"
    path.write_text(f'text{mark}label\n"a {mark} b, c"{mark}1\nplain{mark}0\n')
    assert texts(path, delimiter=delimiter) == [("0", f"a {mark} b, c", 1), ("1", "plain", 0)]


def test_a_file_with_semicolons_is_told_of_the_option(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_text("text;label\na;1\n")
    with pytest.raises(DataError, match="instead of semicolons, or name the semicolon with --delimiter"):
        texts(path)
    with pytest.raises(OptionError, match='--delimiter ";;" is not one character'):
        texts(path, delimiter=";;")


def test_options_that_mean_nothing_are_refused(tmp_path: Path) -> None:
    lines = tmp_path / "r.jsonl"
    lines.write_text('{"text": "a", "label": 1}\n')
    with pytest.raises(OptionError, match=r"--delimiter is for text files, and r\.jsonl is none"):
        load_data(lines, delimiter=";")
    with pytest.raises(OptionError, match="--encoding is for text files"):
        load_data("builtin:reviews", encoding="latin-1")
    with pytest.raises(OptionError, match="--encoding is for text files"):
        load_data([("a", 1)], encoding="latin-1")


BROKEN_CSV = 'text,label\ngood,1\n,1\none cell\nbad,0\n"stray" quote,1\nfine,\nlast,1\n'
BROKEN_LINES = '{"text": "good", "label": 1}\nnot json\n[1]\n{"text": "bad", "label": 0}\n{"text": 3, "label": 1}\n'


def test_bad_rows_are_skipped_and_counted_and_the_others_keep_their_numbers(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_text(BROKEN_CSV)
    with pytest.raises(DataError, match=r"row 1 \(line 3\) has no text"):
        texts(path)
    source = load_data(path, skip_bad_rows=True)
    assert isinstance(source, TableSource)
    assert [(row.id, row.text) for row in source.rows()] == [("0", "good"), ("3", "bad"), ("6", "last")]
    reason = 'row 1 (line 3) has no text in column "text". Fill it in or remove the row.'
    assert source.skipped == Skipped(4, reason)
    assert next(iter(source.rows())).text == "good", "a pass that is not finished changes nothing"
    assert source.skipped.count == 4


def test_bad_lines_of_json_are_skipped_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text(BROKEN_LINES)
    with pytest.raises(DataError, match="line 2 is not JSON"):
        texts(path)
    assert texts(path, skip_bad_rows=True) == [("0", "good", 1), ("3", "bad", 0)]


def test_rows_of_python_objects_are_skipped_too() -> None:
    source = load_data([("good", 1), ("", 1), ("bad", 0)], skip_bad_rows=True)
    assert [row.id for row in source.rows()] == ["0", "2"]


def test_a_quote_that_is_never_closed_is_an_error_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_text('text,label\ngood,1\n"open,1\nbad,0\n')
    with pytest.raises(DataError, match="opens a double quote that is never closed"):
        texts(path, skip_bad_rows=True)


def test_a_fingerprint_depends_on_how_a_file_is_read_and_stays_what_it_was_by_default(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_text("text,label\na,1\n")
    plain = load_data(path).fingerprint()
    others = [
        load_data(path, encoding="latin-1").fingerprint(),
        load_data(path, skip_bad_rows=True).fingerprint(),
        load_data(path, delimiter="comma").fingerprint(),
    ]
    assert len({plain, *others}) == 4


def test_a_run_says_how_many_rows_were_skipped(tmp_path: Path) -> None:
    def victim(batch: list[str]) -> list[list[float]]:
        return [[0.1, 0.9] if text in ("good", "last") else [0.9, 0.1] for text in batch]

    path = tmp_path / "r.csv"
    path.write_text(BROKEN_CSV)
    result = st.attack(
        victim, path, "deepwordbug", similarity=False, data_options=DataOptions(skip_bad_rows=True), out=tmp_path / "a"
    )
    (sentence,) = skipped_rows(result.manifest.inputs["data"])
    assert sentence.startswith("Skipped 4 rows of 7 that could not be read; the first: row 1 (line 3) has no text")
    assert sentence in result.summary["warnings"]
    assert sentence in result.document().to_markdown().replace("\\", "")
    assert skipped_rows({"rows": 3}) == []


def test_one_sentence_is_data_without_a_label() -> None:
    source = load_data("text:A fine film.", needs_labels=False)
    assert [(row.id, row.text) for row in source.rows()] == [("0", "A fine film.")]
    with pytest.raises(DataError, match=r"has no label, expected one\. Say that there is none with --unlabelled"):
        load_data("text:A fine film.")
    with pytest.raises(DataError, match="The text is empty"):
        load_data("text: ", needs_labels=False)
