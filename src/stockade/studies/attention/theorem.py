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

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter

from stockade.experiment.store import Codec

Matrix = NDArray[np.float32]
TAILS = (2.0, 4.0)
"""The ε of the second line, in multiples of C δ / √d: its bounds are then 1/2 and 1/4."""
_DIGITS = 6


class Layer(Protocol):
    """The weights of one layer of self-attention."""

    @property
    def heads(self) -> int: ...

    def of_head(self, head: int) -> tuple[Matrix, Matrix]: ...


@dataclass(frozen=True, slots=True)
class Moves:
    """How far the scores of a head move when a vector moves.

    Parameters
    ----------
    ratio
        The mean of |s' - s| divided by the bound C / √d: above 1 the bound does not hold. None for a head of zeros.
    error
        The standard error of that mean, in the same unit.
    tails
        For each of `TAILS` the share of moves that are at least so many bounds long.
    """

    ratio: float | None
    error: float | None
    tails: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class MovesByDirection:
    """The moves for the worst Δ, and for one of random direction."""

    worst: Moves
    random: Moves


@dataclass(frozen=True, slots=True)
class HeadCheck:
    """One head against its bound, with uniform vectors and with those of the model; None if there are none."""

    layer: int
    head: int
    bound: float
    uniform: MovesByDirection
    real: MovesByDirection | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TheoremCheck:
    """Every head of a model against the bound.

    Parameters
    ----------
    dimension
        d, the length of the vectors.
    samples
        How many uniform vectors were drawn for each layer.
    real_vectors
        How many of the model's own vectors there are.
    expected_ratio
        What `ratio` would be with W_Q = W_K = identity.
    tails
        See `TAILS`.
    heads
        Layer by layer.
    """

    dimension: int
    samples: int
    real_vectors: int
    expected_ratio: float
    tails: tuple[float, ...]
    heads: tuple[HeadCheck, ...]


CODEC: Codec[TheoremCheck] = Codec(dataclasses.asdict, TypeAdapter(TheoremCheck).validate_python)


def check_theorem(layers: Sequence[Layer], real: Sequence[Matrix], samples: int, seed: int = 0) -> TheoremCheck:
    """Hold every head of every layer against the bound.

    Parameters
    ----------
    layers
        The weights, from the first layer.
    real
        What each layer reads, a row per token; empty if nobody knows.
    samples
        How many uniform vectors and directions to draw for each layer.
    seed
        Decides the draws.
    """
    heads = []
    dimension = layers[0].of_head(0)[0].shape[0]
    for number, layer in enumerate(layers):
        dimension = layer.of_head(0)[0].shape[0]
        rng = np.random.default_rng([seed, number])
        uniform, directions = unit_vectors(rng, samples, dimension), unit_vectors(rng, samples, dimension)
        inputs = _unit(real[number]) if number < len(real) else None
        for head in range(layer.heads):
            query, key = layer.of_head(head)
            by_uniform = measure_moves(query, key, uniform, directions)
            by_real = None if inputs is None else measure_moves(query, key, inputs, directions)
            heads.append(HeadCheck(number, head, round(bound_of(query, key), _DIGITS), by_uniform, by_real))
    return TheoremCheck(
        dimension=dimension,
        samples=samples,
        real_vectors=len(real[0]) if real else 0,
        expected_ratio=round(math.sqrt(dimension) * mean_coordinate(dimension), _DIGITS),
        tails=TAILS,
        heads=tuple(heads),
    )


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


def measure_moves(query: Matrix, key: Matrix, vectors: Matrix, directions: Matrix) -> MovesByDirection:
    """The moves of one head's scores.

    Parameters
    ----------
    query, key
        W_Q and W_K.
    vectors
        x_i, a row each, of length 1.
    directions
        Random Δ, a row each, of length 1.
    """
    bound = bound_of(query, key)
    directions = directions[: len(vectors)]
    vectors = vectors[: len(directions)]
    return MovesByDirection(
        worst=_against(np.abs(vectors @ worst_move(query, key)), bound),
        random=_against(np.abs(np.einsum("ij,ij->i", vectors @ query, directions @ key)), bound),
    )


def _against(lengths: Matrix, bound: float) -> Moves:
    moves = lengths.astype(np.float64)
    if not len(moves) or bound == 0:
        return Moves(None, None, (None,) * len(TAILS))
    spread = float(moves.std(ddof=1)) / math.sqrt(len(moves)) if len(moves) > 1 else 0.0
    return Moves(
        round(float(moves.mean()) / bound, _DIGITS),
        round(spread / bound, _DIGITS),
        tuple(round(float((moves >= times * bound).mean()), _DIGITS) for times in TAILS),
    )


def _unit(vectors: Matrix) -> Matrix:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: Matrix = vectors / np.maximum(lengths, np.finfo(np.float32).tiny)
    return unit
