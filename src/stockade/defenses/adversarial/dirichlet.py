"""Random weights of mixtures. Needs no torch."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def dirichlet_scores(rng: np.random.Generator, concentration: float, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Scores whose softmax over any choice of columns is a draw of the symmetric Dirichlet law.

    They are logarithms of gamma draws. A draw of a small concentration is too small for a number: it is one of
    concentration + 1 times a power of a uniform draw, and so is computed in logarithms.
    """
    larger = np.log(rng.standard_gamma(concentration + 1, shape))
    return larger + np.log(1 - rng.random(shape)) / concentration
