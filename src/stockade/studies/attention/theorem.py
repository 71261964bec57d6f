"""Theorem 1 of the paper on real attention layers: how much an attention score moves when one word's vector does.

One head has scores s_ij = x_i' W_Q W_K' x_j. If only x_j moves, by Δ of length δ, only the scores of that column move,
each by x_i' W_Q W_K' Δ. With x_i uniform on the unit sphere of R^d and C = ‖W_Q‖ ‖W_K‖ (spectral norms)

    E |s' - s|        <=  C δ / √d
    P(|s' - s| >= ε)  <=  C δ / (ε √d)

The printed proof takes the expectation of a coordinate of x_i for 1/√d, but it is 0; it is the absolute value that
counts, E|x'u| <= √E(x'u)² = 1/√d for a unit vector u, and about √(2 / (π d)). The second line is Markov's inequality.

Here W_Q and W_K are those of each layer and head of a model, and Δ is either the worst there is (the direction that
W_Q W_K' stretches most) or uniform in direction. Biases: that of the key cancels, that of the query is left out, as
in the theorem; so is the division by √width, which would divide both sides. The bound is proportional to δ, so δ = 1.
`real` takes the model's own vectors, brought to length 1, for x_i: outside of what the theorem assumes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float32]
TAILS = (2.0, 4.0)
"""The ε of the second line, in multiples of C δ / √d: its bounds are then 1/2 and 1/4."""


class Layer(Protocol):
    """The weights of one layer of self-attention."""

    @property
    def heads(self) -> int: ...

    def of_head(self, head: int) -> tuple[Matrix, Matrix]: ...


def check_theorem(layers: Sequence[Layer], real: Sequence[Matrix], samples: int, seed: int = 0) -> dict[str, Any]:
    """Every head of every layer against the bound; `real` are vectors for each layer, or nothing."""
    rows = []
    dimension = layers[0].of_head(0)[0].shape[0]
    for number, layer in enumerate(layers):
        dimension = layer.of_head(0)[0].shape[0]
        rng = np.random.default_rng([seed, number])
        uniform, directions = unit_vectors(rng, samples, dimension), unit_vectors(rng, samples, dimension)
        own = _unit(real[number]) if number < len(real) else None
        for head in range(layer.heads):
            found = check_head(*layer.of_head(head), uniform, directions, own)
            rows.append({"layer": number, "head": head, **found})
    return {
        "dimension": dimension,
        "samples": samples,
        "real_vectors": len(real[0]) if real else 0,
        "expected_ratio": round(math.sqrt(dimension) * mean_coordinate(dimension), 6),
        "tails": list(TAILS),
        "heads": rows,
    }


def check_head(query: Matrix, key: Matrix, uniform: Matrix, directions: Matrix, real: Matrix | None) -> dict[str, Any]:
    """One head. Numbers are ratios to the bound C / √d, so that above 1 it does not hold."""
    bound, worst = bound_of(query, key), worst_move(query, key)
    return {
        "bound": round(bound, 6),
        "uniform": _ratios(query, key, worst, uniform, directions, bound),
        "real": None if real is None else _ratios(query, key, worst, real, directions, bound),
    }


def bound_of(query: Matrix, key: Matrix) -> float:
    """C / √d."""
    norms = float(np.linalg.norm(query, 2)) * float(np.linalg.norm(key, 2))
    return norms / math.sqrt(query.shape[0])


def worst_move(query: Matrix, key: Matrix) -> Matrix:
    """W_Q W_K' v for the unit vector v that makes it longest, by way of the small factors of both."""
    basis, small = np.linalg.qr(query)
    _, other = np.linalg.qr(key)
    left, lengths, _ = np.linalg.svd(small @ other.T)
    move: Matrix = basis @ left[:, 0] * lengths[0]
    return move


def mean_coordinate(dimension: int) -> float:
    """E|x_1| for x uniform on the unit sphere: Γ(d/2) / (√π Γ((d+1)/2))."""
    return math.exp(math.lgamma(dimension / 2) - math.lgamma((dimension + 1) / 2)) / math.sqrt(math.pi)


def unit_vectors(rng: np.random.Generator, count: int, dimension: int) -> Matrix:
    """Uniform on the unit sphere."""
    return _unit(rng.standard_normal((count, dimension), dtype=np.float32))


def _ratios(
    query: Matrix, key: Matrix, worst: Matrix, vectors: Matrix, directions: Matrix, bound: float
) -> dict[str, Any]:
    directions = directions[: len(vectors)]
    vectors = vectors[: len(directions)]
    moves = {
        "worst": np.abs(vectors @ worst),
        "random": np.abs(np.einsum("ij,ij->i", vectors @ query, directions @ key)),
    }
    return {name: _against(move.astype(np.float64), bound) for name, move in moves.items()}


def _against(moves: NDArray[np.float64], bound: float) -> dict[str, Any]:
    if not len(moves) or bound == 0:
        return {"ratio": None, "error": None, "tails": [None] * len(TAILS)}
    spread = float(moves.std(ddof=1)) / math.sqrt(len(moves)) if len(moves) > 1 else 0.0
    return {
        "ratio": round(float(moves.mean()) / bound, 6),
        "error": round(spread / bound, 6),
        "tails": [round(float((moves >= times * bound).mean()), 6) for times in TAILS],
    }


def _unit(vectors: Matrix) -> Matrix:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: Matrix = vectors / np.maximum(lengths, np.finfo(np.float32).tiny)
    return unit
