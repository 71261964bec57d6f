"""How the answers to several copies of a text become one: votes, mean logits, mean probabilities.

A logarithm of a probability is a logit up to a constant of its row, which moves the mean of every class alike: so means
of logits are computed from probabilities alone, of any model. Only the length of a logit row depends on that constant:
`normalised-logit` needs the logits themselves (`combine_normalised`); from probabilities it takes those that sum to
zero.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from stockade.core.example import Scores

Combination = Literal["vote", "logit", "normalised-logit", "probability"]
Draws = Literal["fresh", "fixed"]
"""Whether a defense makes other random choices for every question, or the same ones always."""
Rows = NDArray[np.float64]
_LEAST = 1e-300


def combine(rows: Rows, how: Combination) -> Scores:
    """The class probabilities that the rows of probabilities, one per copy, give together."""
    if how == "vote":
        counts = np.bincount(rows.argmax(1), minlength=rows.shape[1])
        return Scores(tuple((counts / len(rows)).tolist()))
    if how == "probability":
        return Scores(tuple(rows.mean(0).tolist()))
    logits = np.log(np.maximum(rows, _LEAST))
    if how == "normalised-logit":
        return combine_normalised(logits - logits.mean(1, keepdims=True))
    return _softmax(logits.mean(0))


def combine_normalised(logits: Rows) -> Scores:
    """What rows of logits give together when each is brought to length 1 first."""
    lengths = np.linalg.norm(logits, axis=1, keepdims=True)
    return _softmax((logits / np.maximum(lengths, 1e-12)).mean(0))


def _softmax(logits: Rows) -> Scores:
    shares = np.exp(logits - logits.max())
    return Scores(tuple((shares / shares.sum()).tolist()))
