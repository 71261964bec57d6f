"""Which words an attacker may change, and what that does to β (Zeng et al. 2021, section 3.2).

Theorem 1 bounds how far p_c falls when the words of a set D change: by β Δ, with β = P(f = c | a word of D is shown).
The paper takes p_c for β, because the mean of β over random sets D is close to p_c (Algorithm 1, Figure 2). It cannot
be otherwise: every copy shows k words, so the sets of r words that it meets are the same share of all sets, whatever
the classifier says, and the mean of β over all sets is p_c exactly. An attacker takes no mean: he chooses the set.

Differences to the paper: one pool of copies serves all sets (there each set has its own), and where a text has no more
copies than that, all of them are asked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stockade.core.masks import Keep, draw_masks

SIZES = (1, 2, 5, 10)
"""Numbers of changed words."""
SETS = 200
"""Random sets of each size, as in the paper."""
Hits = NDArray[np.bool_]
"""For each copy whether it votes for the class in question."""


@dataclass(frozen=True, slots=True)
class Look:
    """What the copies of one text show about β."""

    share: float
    """p_c."""
    betas: tuple[float | None, ...]
    """The mean of β over random sets, for each of SIZES; sets are no larger than the text."""
    word: int
    """The word that β is largest for."""
    beta: float
    """β of that word alone."""
    beside: float
    """p_c on the copies that β of the word was measured on."""
    touched: float
    """Δ_1: the share of copies that show a given word."""

    def passes(self, beta: float) -> bool:
        """Whether one changed word leaves c a majority if β is this, sampling apart."""
        return self.beside - beta * self.touched > 0.5

    def described(self) -> dict[str, Any]:
        return {
            "share": self.share,
            "betas": list(self.betas),
            "word": self.word,
            "beta": self.beta,
            "beside": self.beside,
            "touched": self.touched,
        }


def look(keep: Keep, hits: Hits, complete: bool, rng: np.random.Generator) -> Look:
    """What the copies show. Unless they are all there are, the word is chosen on one half of them and its β measured on
    the other: the largest of many estimates would be too large.
    """
    words = keep.shape[1]
    middle = len(keep) // 2
    chosen_on, measured_on = (slice(None), slice(None)) if complete else (slice(0, middle), slice(middle, None))
    word = int(np.nanargmax(word_betas(keep[chosen_on], hits[chosen_on])))
    rest, its_hits = keep[measured_on], hits[measured_on]
    shown = rest[:, word]
    beside = float(its_hits.mean())
    return Look(
        float(hits.mean()),
        tuple(mean_beta(keep, hits, draw_masks(rng, words, min(size, words), SETS)) for size in SIZES),
        word,
        float(its_hits[shown].mean()) if shown.any() else beside,
        beside,
        float(keep[0].sum()) / words,
    )


def word_betas(keep: Keep, hits: Hits) -> NDArray[np.float64]:
    """β of each word alone; NaN for a word that no copy shows."""
    shown, together = keep.sum(0), (keep & hits[:, None]).sum(0)
    betas: NDArray[np.float64] = np.where(shown > 0, together / np.maximum(shown, 1), np.nan)
    return betas


def mean_beta(keep: Keep, hits: Hits, sets: Keep) -> float | None:
    """Algorithm 1: the mean over the sets of the share of votes for c among the copies that show a word of the set.

    Sets of which no copy shows a word say nothing; None if that is so of all.
    """
    meets = keep.astype(np.float32) @ sets.T.astype(np.float32) > 0.5
    met = meets.sum(0)
    together = (meets & hits[:, None]).sum(0)
    return float((together[met > 0] / met[met > 0]).mean()) if met.any() else None
