"""Words of similar meaning, nearest first, with their cosine.

The table is not a list of neighbours but the counter-fitted vectors themselves, in small integers: that is smaller than
fifty neighbours for each word, answers for any two words, and any count. Sums of products of such integers are exact in
single precision, whatever the order a machine adds them in, so every machine finds the same neighbours in the same
order. A lookup is one product of a matrix with a vector, kept for the words asked last.

Attacks ask `load_neighbours()`. A run that was given a table of its own says so with `use_neighbours`, so that no
attack need know of files.

The file is an .npz with `words` (UTF-8, one a line), `matrix` (int8) and `about` (JSON: what it was made from).
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stockade.artifacts import read_artifact
from stockade.core.errors import DataError, OptionError
from stockade.core.limits import LARGEST_ARRAYS
from stockade.lexicon.counterfit import (
    CounterFitting,
    counterfit,
    read_pairs,
    whitened,
    wordnet_antonyms,
    wordnet_synonyms,
)
from stockade.lexicon.vectors import GLOVE_PACKAGE, Matrix, WordVectors, read_glove, read_vectors
from stockade.lexicon.wordnet import load_wordnet

ARTIFACT, MADE_BY = "neighbours.npz", "tools/build_neighbours.py"
WORDS = 40_000
_ALWAYS = 10_000  # the most frequent words are kept whether WordNet knows them or not
_WORD = re.compile(r"[^\W\d_]{2,}(?:['-][^\W\d_]+)*")
_LEVELS = 63  # vectors are rounded to -63 … 63: an eighth smaller than full bytes, cosines within 0.015

Observer = Callable[[str, int, int], None]  # what is being done, steps done, steps in all


class Neighbour(NamedTuple):
    """A word near another, with their cosine. The squared distance of vectors of length one is 2 - 2 cosine."""

    word: str
    cosine: float


class Neighbours:
    """Word neighbours by lookup in a table. Case is ignored; a word that is not in the table has no neighbours."""

    def __init__(
        self, words: tuple[str, ...], matrix: NDArray[np.int8], about: Mapping[str, Any] | None = None
    ) -> None:
        """`matrix` has a row per word; only its direction counts, and no row is all zeros."""
        self.words, self.about = words, dict(about or {})
        self._index = {word: row for row, word in enumerate(words)}
        self.matrix = matrix.astype(np.float32)
        self._lengths = np.sqrt(np.square(self.matrix).sum(axis=1).astype(np.float64))
        self._nearest = lru_cache(maxsize=1 << 13)(self._find_nearest)

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: object) -> bool:
        return isinstance(word, str) and word.lower() in self._index

    def fingerprint(self) -> str:
        """A hash of words and vectors: whatever file they come from, equal tables have equal ones."""
        digest = hashlib.sha256("\n".join(self.words).encode("utf-8", "surrogatepass"))
        digest.update(self.matrix.astype(np.int8).tobytes())
        return digest.hexdigest()

    def neighbours(
        self,
        word: str,
        *,
        count: int = 50,
        min_cosine: float | None = None,
        max_squared_distance: float | None = None,
    ) -> tuple[Neighbour, ...]:
        """The nearest words, nearest first, without the word itself; equally near ones by their order in the table.

        Parameters
        ----------
        word : str
            The word, in any case.
        count : int
            The most words to return.
        min_cosine : float, optional
            The least cosine, a closed bound as in TextFooler.
        max_squared_distance : float, optional
            The squared distance that a neighbour must stay below, an open bound as in the genetic attack.
        """
        if count < 0:
            raise OptionError(f"The number of neighbours cannot be {count}; give 0 or more.")
        lowest = -1.0 if min_cosine is None else min_cosine
        farthest = np.inf if max_squared_distance is None else max_squared_distance
        row = self._index.get(word.lower())
        nearest = self._nearest(row, max(count, 50)) if row is not None else ()
        return tuple(near for near in nearest[:count] if near.cosine >= lowest and 2 - 2 * near.cosine < farthest)

    def cosine(self, a: str, b: str) -> float | None:
        """The cosine of two words, `None` when the table lacks one of them."""
        first, second = self._index.get(a.lower()), self._index.get(b.lower())
        return None if first is None or second is None else float(self._cosines(first, slice(second, second + 1))[0])

    def _cosines(self, row: int, others: slice) -> NDArray[np.float64]:
        products = (self.matrix[others] @ self.matrix[row]).astype(np.float64)
        cosines: NDArray[np.float64] = np.minimum(products / (self._lengths[row] * self._lengths[others]), 1.0)
        return cosines

    def _find_nearest(self, row: int, count: int) -> tuple[Neighbour, ...]:
        cosines = self._cosines(row, slice(None))
        cosines[row] = -2.0
        count = min(count, len(cosines) - 1)
        if count == 0:
            return ()
        least = np.partition(cosines, -count)[-count]
        rows = np.flatnonzero(cosines >= least)
        rows = rows[np.argsort(-cosines[rows], kind="stable")][:count]
        return tuple(Neighbour(self.words[i], float(cosines[i])) for i in rows)


_in_use: ContextVar[Neighbours | None] = ContextVar("neighbours in use", default=None)


@contextmanager
def use_neighbours(table: Neighbours | None) -> Iterator[None]:
    """Make `load_neighbours()` answer with this table inside the `with`; None is the one that comes with the package.

    None overrules an outer `use_neighbours` too, so that what a run's manifest says of its table is always true.
    """
    token = _in_use.set(table)
    try:
        yield
    finally:
        _in_use.reset(token)


def load_neighbours() -> Neighbours:
    """The table in use: the run's own (`use_neighbours`), else the one that comes with the package."""
    chosen = _in_use.get()
    return _built_in() if chosen is None else chosen


@lru_cache(maxsize=1)
def _built_in() -> Neighbours:
    return _decode(read_artifact(ARTIFACT, MADE_BY), ARTIFACT)


def read_neighbours(path: str | Path) -> Neighbours:
    """A table that `stockade lexicon build` wrote, or vectors counter-fitted by others, in any format of `vectors`."""
    path = Path(path)
    if not path.is_file():
        raise DataError(f"There is no neighbour table {path}; make one with stockade lexicon build {path}.")
    if path.suffix == ".npz":
        try:
            content = path.read_bytes()
        except OSError as error:
            raise DataError(f"The neighbour table {path} cannot be read: {error.strerror or error}.") from None
        return _decode(content, str(path))
    vectors = read_vectors(path)
    return Neighbours(vectors.words, _rounded(vectors.matrix, 127), {"vectors": path.name})


def write_neighbours(table: WordVectors, path: str | Path, about: Mapping[str, Any]) -> None:
    """Write a table of these vectors; the same vectors and sources give the same bytes."""
    arrays = {
        "words": np.frombuffer("\n".join(table.words).encode(), dtype=np.uint8),
        "matrix": _rounded(table.matrix, _LEVELS),
        "about": np.frombuffer(json.dumps(about, sort_keys=True).encode(), dtype=np.uint8),
    }
    with Path(path).open("wb") as file:
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """What a table is made from. Nothing given: GloVe 6B (50 dimensions) and WordNet.

    With both kinds of constraints from files WordNet is not asked at all, so the words may be of any language.
    """

    vectors: Path | None = None
    synonyms: tuple[Path, ...] = ()
    antonyms: tuple[Path, ...] = ()
    words: int = WORDS
    whiten: bool = True
    options: CounterFitting = field(default_factory=CounterFitting)

    def build(self, observe: Observer | None = None) -> tuple[WordVectors, dict[str, Any]]:
        """The counter-fitted vectors, and what to write about them."""
        if self.words < 1:
            raise OptionError(f"A table cannot have {self.words} words; give --words 1 or more.")
        tell = observe or (lambda stage, done, total: None)
        attracted = [pair for path in self.synonyms for pair in read_pairs(path)]
        repelled = [pair for path in self.antonyms for pair in read_pairs(path)]
        tell("reading vectors", 0, 1)
        keep = self._wanted({word for pair in attracted + repelled for word in pair})
        read = read_glove if self.vectors is None else partial(read_vectors, self.vectors)
        raw = read(keep=keep, limit=self.words)
        tell("reading constraints", 0, 1)
        synonyms = attracted or wordnet_synonyms(load_wordnet(), raw.words)
        antonyms = repelled or wordnet_antonyms(load_wordnet(), raw.words)
        tell("finding neighbourhoods", 0, 1)
        start = whitened(raw, synonyms) if self.whiten else raw
        fitted = counterfit(start, synonyms, antonyms, self.options, observe=partial(tell, "counter-fitting"))
        about = {
            "vectors": self.vectors.name if self.vectors else f"{GLOVE_PACKAGE} (GloVe 6B, 50 dimensions)",
            "synonyms": [path.name for path in self.synonyms] or ["WordNet 3.0"],
            "antonyms": [path.name for path in self.antonyms] or ["WordNet 3.0"],
            "synonym_pairs": sum(a in raw.index and b in raw.index for a, b in synonyms),
            "antonym_pairs": sum(a in raw.index and b in raw.index for a, b in antonyms),
            "whitened": start is not raw,
            "epochs": self.options.epochs,
        }
        return fitted, about

    def _wanted(self, named: set[str]) -> Callable[[str], bool]:
        """Lower-case words: the most frequent ones, then those that WordNet or a constraint knows."""
        wordnet = None if self.synonyms and self.antonyms else load_wordnet()
        taken = 0

        def wanted(word: str) -> bool:
            nonlocal taken
            good = word == word.lower() and _WORD.fullmatch(word) is not None
            good = good and (wordnet is None or taken < _ALWAYS or word in named or wordnet.has(word))
            taken += good
            return good

        return wanted


def _rounded(matrix: Matrix, levels: int) -> NDArray[np.int8]:
    largest = np.abs(matrix).max(axis=1, keepdims=True)
    rounded: NDArray[np.int8] = np.rint(matrix * (levels / largest)).astype(np.int8)
    return rounded


def _decode(content: bytes, name: str) -> Neighbours:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as packed:
            unpacked = sum(part.file_size for part in packed.infolist())
        if unpacked > LARGEST_ARRAYS:
            raise DataError(f"{name} takes {unpacked:,} bytes unpacked, expected at most {LARGEST_ARRAYS:,}.")
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            words = tuple(arrays["words"].tobytes().decode().split("\n"))
            matrix, about = arrays["matrix"], json.loads(arrays["about"].tobytes())
    except (LookupError, ValueError, OSError, EOFError, NotImplementedError, RuntimeError, MemoryError, SyntaxError,
            TypeError, OverflowError, zlib.error, zipfile.BadZipFile):  # fmt: skip
        raise DataError(f"{name} is no neighbour table; make one with stockade lexicon build OUT.npz.") from None
    sound = matrix.ndim == 2 and matrix.dtype == np.int8 and isinstance(about, dict)
    if not sound or len(matrix) != len(words) or not matrix.any(axis=1).all():
        raise DataError(f"{name} is damaged: {len(words)} words, but vectors of shape {matrix.shape} ({matrix.dtype}).")
    return Neighbours(words, matrix, about)
