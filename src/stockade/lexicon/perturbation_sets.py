"""Perturbation sets: for each word the words of like meaning that may stand in its place (Ye et al. 2020, SAFER: A
Structure-free Approach for Certified Robustness to Adversarial Word Substitutions).

Words whose vectors have a cosine of at least 0.8 are synonyms; the set of a word is its connected component in that
graph, or, of a component of more than `maximum` words, the `maximum` of them that are nearest to the word, itself among
them. So two synonyms have sets of equal size, and the share that the sets have in common bounds what a change of one
word into the other can do to a draw from its set.

Vectors lose their mean and their first principal directions before they are compared. They are then rounded to whole
numbers, so small that sums of their products are exact in single precision: every machine finds the same sets.

What is proved with these overlaps rests on one thing: when a word of a text is replaced by a synonym, the new text is
read as the same words around the same gaps, with the synonym in the place of the word. Its copies are then drawn from
the same sets everywhere else, and there from a set of which at least the overlap is shared. Three things see to it.

- A pair of words counts only if both, in each case they can be put in, are read as one word, show that case, and are
  found in the table again (`usable_pairs`). "u.s." is two words, "高兴" as well: a table may hold them, but they are
  nobody's synonyms.
- Words with a blank, punctuation or an emoji between them are read independently of each other (`separates`).
- Words that touch may be read as one when they are replaced: 日日 is two words and 일일 is one. For two neighbours
  without a separator every pair of what may stand in the two places is looked at (`read_apart`); if any is read
  otherwise, both have overlap 0 in this text. If no pair is, no combination is, because the end of a word depends on
  the first character of the next one and on nothing behind it.

So a replacement that moves a boundary is one of a word with overlap 0, of which nothing is promised.

Differences to the paper: the words are those of the table, which are frequent ones, instead of those that come more
than once in a data set; so the sets depend on no data.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise, product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stockade.core.files import FileState, file_state, replace_file
from stockade.core.text import (
    Boundary,
    Case,
    Text,
    boundary_of,
    case_of,
    in_case,
    is_single_word,
    read_apart,
    separates,
)
from stockade.engine.batching import cache_folder
from stockade.lexicon.neighbours import Neighbours, load_neighbours, read_neighbours, use_neighbours
from stockade.lexicon.vectors import Matrix

Pairs = NDArray[np.int32]
"""A row for each two words that are synonyms: their places in the table, the smaller first."""

_SCALE = 2000
_BLOCK = 512
_SLACK = 0.99
"""Rounded vectors are a little longer or shorter than one: what may reach the bound is looked at exactly."""


@dataclass(frozen=True, slots=True)
class WordSet:
    """The perturbation set of one word of a text. `overlap` is the share of the set that is left in the set of any
    synonym of the word, at worst; 0 if a synonym may be read together with a neighbour.
    """

    index: int
    words: tuple[str, ...]
    overlap: float


def refined(matrix: Matrix, directions: int) -> Matrix:
    """The rows at length one, without their mean and the first principal directions, as whole numbers."""
    rows = _unit(matrix.astype(np.float64))
    rows -= rows.mean(0)
    if directions:
        _, axes = np.linalg.eigh(rows.T @ rows)
        first = axes[:, ::-1][:, :directions]
        rows -= (rows @ first) @ first.T
    return np.rint(_unit(rows) * _SCALE).astype(np.float32)


def similar_pairs(vectors: Matrix, min_cosine: float) -> Pairs:
    """The pairs of rows with at least that cosine."""
    lengths = _lengths(vectors)
    likely = np.float32(_SLACK * min_cosine * _SCALE**2)
    blocks = [np.zeros((0, 2), dtype=np.int32)]
    for start in range(0, len(vectors), _BLOCK):
        products = vectors[start : start + _BLOCK] @ vectors[start:].T
        first, second = np.nonzero(products >= likely)
        exact = products[first, second] >= min_cosine * lengths[start + first] * lengths[start + second]
        wanted = exact & (first < second)
        blocks.append(np.stack([first[wanted], second[wanted]], 1).astype(np.int32) + np.int32(start))
    return np.concatenate(blocks)


class PerturbationSets:
    """The perturbation sets of words, by lookup. Case is ignored; a word without synonyms has no set."""

    def __init__(self, words: tuple[str, ...], vectors: Matrix, pairs: Pairs, maximum: int = 100) -> None:
        self.words, self.maximum = words, maximum
        self._vectors, self._lengths = vectors, _lengths(vectors)
        self._row = {word: row for row, word in enumerate(words)}
        self._synonyms = _neighbours_of(len(words), pairs)
        self._component, self._members = _components(len(words), pairs)
        self._rows = lru_cache(maxsize=1 << 16)(self._find_rows)
        self._overlap = lru_cache(maxsize=1 << 16)(self._find_overlap)
        self._boundaries = lru_cache(maxsize=1 << 14)(self._find_boundaries)

    def of(self, word: str) -> tuple[str, ...]:
        """The words that may stand for this one, itself among them, in the order of the table; none without a set."""
        row = self._with_synonyms(word)
        return () if row is None else tuple(self.words[member] for member in self._rows(row))

    def synonyms(self, word: str) -> tuple[str, ...]:
        """The words that an attacker may put in the place of this one: those directly beside it in the graph."""
        row = self._with_synonyms(word)
        return () if row is None else tuple(self.words[synonym] for synonym in self._synonyms[row])

    def overlap(self, word: str) -> float:
        """q_w: the least share of the word's set that is also in the set of one of its synonyms; 1 without a set."""
        row = self._with_synonyms(word)
        return 1.0 if row is None else self._overlap(row)

    def in_text(self, text: Text) -> tuple[WordSet, ...]:
        """The sets of the words of a text, as it is read from its string, that have one, in order."""
        sets = [(index, word, self.of(word)) for index, word in enumerate(text.words)]
        joined = self._may_be_joined(text)
        return tuple(
            WordSet(index, words, 0.0 if index in joined else self.overlap(word))
            for index, word, words in sets
            if words
        )

    def _may_be_joined(self, text: Text) -> set[int]:
        """The words that are read together with a neighbour, or otherwise than before, for some choice of synonyms."""
        joined: set[int] = set()
        for index, (left, right) in enumerate(pairwise(text.words)):
            gap = text.gaps[index + 1]
            if separates(gap):
                continue
            choices = product(self._possible_boundaries(left), self._possible_boundaries(right))
            if not all(read_apart(before, gap, after) for before, after in choices):
                joined |= {index, index + 1}
        return joined

    def _possible_boundaries(self, word: str) -> frozenset[Boundary]:
        """What may stand in the place of a word, as its neighbours see it."""
        row = self._with_synonyms(word)
        synonyms = frozenset[Boundary]() if row is None else self._boundaries(row, case_of(word))
        return synonyms | {boundary_of(word)}

    def _with_synonyms(self, word: str) -> int | None:
        row = self._row.get(word.lower())
        return row if row is not None and len(self._synonyms[row]) else None

    def _find_rows(self, row: int) -> tuple[int, ...]:
        members = self._members[self._component[row]]
        if len(members) <= self.maximum:
            return tuple(members.tolist())
        cosines = (self._vectors[members] @ self._vectors[row]).astype(np.float64) / self._lengths[members]
        cosines[members == row] = np.inf
        nearest = members[np.argsort(-cosines, kind="stable")[: self.maximum]]
        return tuple(sorted(nearest.tolist()))

    def _find_boundaries(self, row: int, case: Case) -> frozenset[Boundary]:
        return frozenset(boundary_of(in_case(self.words[synonym], case)) for synonym in self._synonyms[row].tolist())

    def _find_overlap(self, row: int) -> float:
        members = set(self._rows(row))
        others = [self._rows(other) for other in self._synonyms[row].tolist()]
        return min(len(members.intersection(other)) / max(len(members), len(other)) for other in others)


def joint_overlap(sets: Iterable[WordSet], changed: int) -> float:
    """Q_R: what the draws for a text have in common with those for a text with at most `changed` words replaced by
    synonyms, at worst: the product of the least overlaps.
    """
    return float(np.prod(sorted(word_set.overlap for word_set in sets)[:changed]))


def load_perturbation_sets(
    vectors: str | None = None, min_cosine: float = 0.8, directions: int = 8, maximum: int = 100
) -> PerturbationSets:
    """The perturbation sets of a table of word vectors.

    Comparing all words takes some seconds, so the pairs are stored in the user's cache folder.

    Parameters
    ----------
    vectors : str, optional
        A file of neighbours or vectors; the table that comes with the package by default.
    min_cosine : float
        From which cosine on two words are synonyms.
    directions : int
        How many principal directions the vectors lose before they are compared.
    maximum : int
        The most words of a set.
    """
    return _sets_of(vectors, None if vectors is None else file_state(vectors), min_cosine, directions, maximum)


@lru_cache(maxsize=4)
def _sets_of(
    vectors: str | None, _state: FileState | None, min_cosine: float, directions: int, maximum: int
) -> PerturbationSets:
    with use_neighbours(None):  # a table that a run has for its attacks does not change the model it attacks
        table = load_neighbours() if vectors is None else read_neighbours(vectors)
    vectors_of_words = refined(table.matrix, directions)
    pairs = _cached_pairs(table, vectors_of_words, min_cosine)
    return PerturbationSets(table.words, vectors_of_words, usable_pairs(table.words, pairs), maximum)


def usable_pairs(words: tuple[str, ...], pairs: Pairs) -> Pairs:
    """The pairs of which each word, put in the place of the other, is read as itself and in the same case.

    A synonym takes the case of the word that it replaces, and must then have a set that is put in that case again: "I",
    "1990s", "straße" and "abª" do not say what case they are in, or become other words in capitals. It must be one word
    there and no more, and the table must hold it once, or another row would be found for it.

    Parameters
    ----------
    words
        The words of the table.
    pairs
        Those that are synonyms by their vectors.
    """
    rows = {word: row for row, word in enumerate(words)}
    kinds = np.zeros(len(words), dtype=np.int8)
    for row in np.unique(pairs).tolist():
        kinds[row] = _kind_of_case(words[row]) if rows[words[row]] == row else 0
    first, second = kinds[pairs[:, 0]], kinds[pairs[:, 1]]
    usable: Pairs = pairs[(first == second) & (first > 0)]
    return usable


def _kind_of_case(word: str) -> int:
    """1 for a word that shows its case in capitals and capitalised and comes back from both; 2 for one without case; 0
    for all others, and for what is not a single word.
    """
    cases: tuple[Case, ...] = ("plain", "capitalised", "capitals")
    forms = [in_case(word, case) for case in cases]
    if any(form.lower() != word or not is_single_word(form) for form in forms):
        return 0
    if len(set(forms)) == 1:
        return 2
    return int(all(case_of(form) == case for form, case in zip(forms, cases, strict=True)))


def _cached_pairs(table: Neighbours, vectors: Matrix, min_cosine: float) -> Pairs:
    name = hashlib.sha256(vectors.tobytes() + repr((len(table), min_cosine)).encode()).hexdigest()[:32]
    path = cache_folder() / f"synonyms-{name}.npy"
    with suppress(OSError, ValueError, EOFError):
        pairs: Pairs = np.load(path, allow_pickle=False)
        if pairs.ndim == 2 and pairs.shape[1] == 2 and pairs.dtype == np.int32:
            return pairs
    pairs = similar_pairs(vectors, min_cosine)
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, lambda temporary: _write(temporary, pairs))
    return pairs


def _write(path: Path, pairs: Pairs) -> None:
    with path.open("wb") as stream:
        np.save(stream, pairs)


def _unit(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    unit: NDArray[np.float64] = rows / np.where(lengths > 1e-9, lengths, np.inf)
    return unit


def _lengths(vectors: Matrix) -> NDArray[np.float64]:
    """Never zero: a vector of zeros is near to nothing whatever its length is called."""
    lengths: NDArray[np.float64] = np.sqrt(np.square(vectors).sum(1, dtype=np.float64))
    return np.maximum(lengths, 1.0)


def _neighbours_of(count: int, pairs: Pairs) -> list[NDArray[np.int32]]:
    """For each word the words it has a pair with, in order."""
    both = np.concatenate([pairs, pairs[:, ::-1]])
    both = both[np.lexsort((both[:, 1], both[:, 0]))]
    ends = np.searchsorted(both[:, 0], np.arange(1, count + 1))
    return np.split(both[:, 1], ends[:-1])


def _components(count: int, pairs: Pairs) -> tuple[NDArray[np.int32], list[NDArray[np.intp]]]:
    """The number of each word's component, and the words of each component in order."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    graph = coo_matrix((np.ones(len(pairs), dtype=np.int8), (pairs[:, 0], pairs[:, 1])), shape=(count, count))
    number, component = connected_components(graph, directed=False)
    order = np.argsort(component, kind="stable")
    return component, np.split(order, np.searchsorted(component[order], np.arange(1, number)))
