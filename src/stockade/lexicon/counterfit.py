"""Counter-fitting: move word vectors so that synonyms are near and antonyms far (Mrkšić et al. 2016).

Vectors learned from text put words together that occur in the same places, and "good" occurs where "bad" does.
Counter-fitting (§2 of the paper) starts there and walks down the sum of three terms, in d(u, v) = 1 - cos(u, v):

    antonym repel      Σ max(0, antonym_margin - d(u', v'))    over antonyms
    synonym attract    Σ max(0, d(u', v') - synonym_margin)    over synonyms
    preservation       Σ max(0, d(u', v') - d(u, v))           over pairs with cos(u, v) > neighbourhood at the start

Differences to the paper
- A subgradient need not visit pairs one by one: an epoch is one product of a sparse matrix with the vectors, over all
  pairs that violate their bound. So nothing is random, and there is no seed.
- As in the authors' program, not in the text: a word's step is the mean over its active pairs, not their sum; vectors
  are scaled to length one after each step; pairs that a constraint names leave the preservation term.
- A pair that is listed as synonyms and as antonyms counts as antonyms.
- `whitened` is ours: a change of scale that synonyms teach and that reaches words no constraint names.
"""

from __future__ import annotations

import gzip
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stockade.core.errors import DataError, OptionError
from stockade.lexicon.vectors import Matrix, WordVectors, normalised
from stockade.lexicon.wordnet import POS_ORDER, WordNet

Pair = tuple[str, str]
Rows = NDArray[np.int64]  # [pairs, 2]: row numbers
Observer = Callable[[int, int], None]  # epochs done, epochs in all
_BLOCK = 1024  # rows whose cosines to all words are in memory at once
_SYNONYMS_OF_A_WORD = 3  # per part of speech, in sense order: later senses are rare and mislead
_SHRINKAGE = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterFitting:
    """Hyper-parameters; the defaults are the paper's: `repel`, `attract`, `preserve` are its k1, k2, k3."""

    epochs: int = 20
    repel: float = 0.1
    attract: float = 0.1
    preserve: float = 0.1
    antonym_margin: float = 1.0
    synonym_margin: float = 0.0
    neighbourhood: float = 0.8

    def __post_init__(self) -> None:
        """Refuse values outside their range."""
        for field in fields(self):
            value, most = getattr(self, field.name), {"epochs": 10_000, "antonym_margin": 2}.get(field.name, 1)
            if not 0 <= value <= most:
                raise OptionError(f"The option {field.name} must be between 0 and {most}, not {value}.")


def counterfit(
    vectors: WordVectors,
    synonyms: Iterable[Pair],
    antonyms: Iterable[Pair],
    options: CounterFitting | None = None,
    *,
    observe: Observer | None = None,
) -> WordVectors:
    """The vectors after counter-fitting.

    Parameters
    ----------
    vectors : WordVectors
        Where the walk starts.
    synonyms, antonyms : iterable of pairs
        Words to pull together and to push apart, in any order; pairs with a word that has no vector are left out.
    options : CounterFitting, optional
        Weights, margins and the number of epochs; the paper's by default.
    observe : callable, optional
        Called with (epochs done, epochs in all) after each epoch.
    """
    from scipy.sparse import csr_array

    options, size, matrix = options or CounterFitting(), len(vectors), vectors.matrix
    repelled = _both_ways(_rows(vectors, antonyms))
    attracted = _without(_both_ways(_rows(vectors, synonyms)), repelled, size)
    near = _near(matrix, options.neighbourhood) if options.preserve else repelled[:0]  # all pairs of words: slow
    near = _without(near, np.concatenate([repelled, attracted]), size)
    terms = (
        (repelled, -options.repel, np.float32(options.antonym_margin)),
        (attracted, options.attract, np.float32(options.synonym_margin)),
        (near, options.preserve, 1 - _cosines(matrix, near)),
    )
    for epoch in range(options.epochs):
        active, weights = [], []
        for pairs, weight, bound in terms:
            excess = (1 - _cosines(matrix, pairs) - bound) * np.sign(weight)
            active.append(pairs[excess > 0])
            weights.append(np.full(len(active[-1]), weight, dtype=np.float32))
        row, column = np.concatenate(active).T
        count = np.maximum(np.bincount(row, minlength=size), 1).astype(np.float32)
        pull = csr_array((np.concatenate(weights) / count[row], (row, column)), shape=(size, size)) @ matrix
        # The gradient of cos(u, v) in u, both of length one, is v less its part along u.
        matrix = normalised(matrix + pull - (pull * matrix).sum(1, keepdims=True) * matrix)
        if observe is not None:
            observe(epoch + 1, options.epochs)
    return WordVectors(vectors.words, matrix)


def whitened(vectors: WordVectors, synonyms: Iterable[Pair]) -> WordVectors:
    """The vectors in a scale where differences between synonyms have the same size in every direction.

    Directions in which synonyms differ as much as any words do (topic, register, frequency) count less afterwards, for
    all words. Known from speaker verification as within-class covariance normalisation (Hatch et al. 2006). Fewer pairs
    than ten for each dimension say too little; then the vectors stay as they are.
    """
    rows, width = _rows(vectors, synonyms), vectors.matrix.shape[1]
    if len(rows) < 10 * width:
        return vectors
    centred = (vectors.matrix - vectors.matrix.mean(axis=0)).astype(np.float64)
    differences = centred[rows[:, 0]] - centred[rows[:, 1]]
    covariance = differences.T @ differences / len(rows)
    covariance += _SHRINKAGE * np.trace(covariance) / width * np.eye(width)
    values, directions = np.linalg.eigh(covariance)
    scale = (directions / np.sqrt(values)) @ directions.T
    return WordVectors(vectors.words, normalised((centred @ scale).astype(np.float32)))


def wordnet_synonyms(wordnet: WordNet, words: Iterable[str]) -> list[Pair]:
    """The first names of each base form's senses, and all pairs of forms of one base ("film", "films")."""
    vocabulary = frozenset(words)
    pairs = set[Pair]()
    for (base, pos), forms in _forms(wordnet, vocabulary).items():
        pairs.update(combinations(sorted(forms), 2))
        if base in vocabulary:
            names = [name.lower() for name in wordnet.synonyms(base, pos)[:_SYNONYMS_OF_A_WORD]]
            pairs.update(_pair(base, name) for name in names if name in vocabulary)
    return sorted(pairs)


def wordnet_antonyms(wordnet: WordNet, words: Iterable[str]) -> list[Pair]:
    """Antonyms, direct and through the head of an adjective's cluster, each in all its forms ("loved", "hating")."""
    forms = _forms(wordnet, frozenset(words))
    pairs = set[Pair]()
    for (base, pos), inflected in forms.items():
        for name in wordnet.antonyms(base, pos, indirect=True):
            pairs.update(_pair(a, b) for a in inflected for b in forms.get((name.lower(), pos), ()) if a != b)
    return sorted(pairs)


def read_pairs(path: str | Path) -> list[Pair]:
    """Pairs of words from a text file, perhaps gzipped: two words a line, blanks or a tab between them."""
    path = Path(path)
    try:
        content = path.read_bytes()
        text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode("utf-8")
    except FileNotFoundError:
        raise DataError(f"There is no constraint file {path} (expected two words a line).") from None
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise DataError(f"The constraint file {path} cannot be read: {error}.") from None
    pairs = []
    for number, line in enumerate(text.splitlines(), 1):
        match line.lower().split():
            case [first, second]:
                pairs.append((first, second))
            case [_, *_] as words:
                raise DataError(f"Line {number} of {path} has {len(words)} words (expected two).")
    if not pairs:
        raise DataError(f"The constraint file {path} is empty (expected two words a line).")
    return pairs


def _forms(wordnet: WordNet, vocabulary: frozenset[str]) -> dict[tuple[str, str], set[str]]:
    """(Base form, part of speech) -> the words of the vocabulary that have it."""
    forms = defaultdict[tuple[str, str], set[str]](set)
    for word in vocabulary:
        for pos in POS_ORDER:
            for base in wordnet.lemmas(word, pos):
                forms[base, pos].add(word)
    return forms


def _pair(a: str, b: str) -> Pair:
    return (a, b) if a < b else (b, a)


def _rows(vectors: WordVectors, pairs: Iterable[Pair]) -> Rows:
    """The row numbers of the pairs whose two different words both have a vector."""
    index = vectors.index
    rows = [(index[a], index[b]) for a, b in pairs if a in index and b in index and a != b]
    return np.array(rows, dtype=np.int64).reshape(-1, 2)


def _both_ways(pairs: Rows) -> Rows:
    """Each pair in both orders, once, sorted."""
    return np.unique(np.concatenate([pairs, pairs[:, ::-1]]), axis=0)


def _without(pairs: Rows, others: Rows, size: int) -> Rows:
    """The pairs that are not among the others."""
    return pairs[~np.isin(pairs[:, 0] * size + pairs[:, 1], others[:, 0] * size + others[:, 1])]


def _near(matrix: Matrix, cosine: float) -> Rows:
    """All ordered pairs of different rows whose cosine is above the bound, a block of rows at a time."""
    blocks = []
    for start in range(0, len(matrix), _BLOCK):
        rows, columns = np.nonzero(matrix[start : start + _BLOCK] @ matrix.T > cosine)
        rows += start
        blocks.append(np.stack([rows, columns], axis=1)[rows != columns])
    return np.concatenate(blocks) if blocks else np.empty((0, 2), dtype=np.int64)


def _cosines(matrix: Matrix, pairs: Rows) -> Matrix:
    """The cosine of each pair of rows of length one, a block of pairs at a time."""
    answer = np.empty(len(pairs), dtype=np.float32)
    for start in range(0, len(pairs), 1 << 16):
        part = pairs[start : start + (1 << 16)]
        answer[start : start + len(part)] = np.einsum("ij,ij->i", matrix[part[:, 0]], matrix[part[:, 1]])
    return answer
