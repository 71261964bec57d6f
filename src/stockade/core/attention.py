"""How much attention a word gets, of which a model reads several pieces."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stockade.core.protocols import AttentionPieces, AttentionQuery, AttentiveClassifier, PieceAttentiveClassifier
from stockade.core.text import Text

JOINS: Mapping[AttentionPieces, Callable[[Any], Any]] = {"sum": np.sum, "mean": np.mean, "max": np.max}
"""What makes the attention of a word of those of its pieces."""


def attention_of_words(
    model: AttentiveClassifier, texts: Sequence[Text], layer: int, query: AttentionQuery, pieces: AttentionPieces
) -> list[NDArray[np.float32]]:
    """How much attention each word of each text gets, by the rule for words of several pieces.

    A model that does not show pieces reads each word as one, to which every rule is the same.

    Parameters
    ----------
    model
        Shows its attention.
    texts
        The texts.
    layer, query
        Whose attention counts.
    pieces
        How that of the pieces makes up that of the word.
    """
    if pieces == "sum" or not isinstance(model, PieceAttentiveClassifier):
        return model.word_attention(texts, layer, query)
    join = JOINS[pieces]
    return [
        np.array([join(word) if len(word) else 0.0 for word in words], dtype=np.float32)
        for words in model.piece_attention(texts, layer, query)
    ]
