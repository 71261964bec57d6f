"""Theorem 1 on random matrices: what holds holds, what is exact is met, and what is outside of it may exceed it."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass

import numpy as np
import pytest

from stockade.studies.attention.theorem import (
    CODEC,
    Matrix,
    bound_of,
    check_theorem,
    mean_coordinate,
    measure_moves,
    unit_vectors,
    worst_move,
)


@dataclass(frozen=True)
class Random:
    """A layer of random heads."""

    dimension: int
    width: int
    heads: int = 2

    def of_head(self, head: int) -> tuple[Matrix, Matrix]:
        rng = np.random.default_rng([head, self.dimension])
        query, key = rng.standard_normal((2, self.dimension, self.width)).astype(np.float32)
        return query, key


@pytest.mark.parametrize(("dimension", "width"), [(4, 4), (16, 4), (64, 8), (200, 1)])
def test_the_bound_holds_for_uniform_vectors_and_any_move(dimension: int, width: int) -> None:
    check = check_theorem([Random(dimension, width)], [], 4_000)
    assert CODEC.read(json.loads(json.dumps(CODEC.encode(check), allow_nan=False))) == check
    for head in check.heads:
        assert head.real is None
        worst, random = head.uniform.worst, head.uniform.random
        assert worst.ratio is not None
        assert random.ratio is not None
        assert worst.error is not None
        assert worst.ratio <= 1 + 3 * worst.error
        assert random.ratio < worst.ratio
        assert all(
            share is not None and share <= 1 / times for share, times in zip(worst.tails, check.tails, strict=True)
        )


def test_the_worst_move_is_the_longest_there_is() -> None:
    query, key = Random(20, 5).of_head(0)
    product = query.astype(np.float64) @ key.T
    worst = worst_move(query, key)
    assert np.linalg.norm(worst) == pytest.approx(np.linalg.norm(product, 2), rel=1e-4)
    directions = unit_vectors(np.random.default_rng(0), 500, 20)
    assert np.linalg.norm(product @ directions.T, axis=0).max() <= np.linalg.norm(worst)
    assert np.linalg.norm(worst) / math.sqrt(20) <= bound_of(query, key)


def test_with_the_identity_the_mean_is_that_of_a_coordinate() -> None:
    dimension = 128
    identity = np.eye(dimension, dtype=np.float32)
    uniform = unit_vectors(np.random.default_rng(1), 20_000, dimension)
    moves = measure_moves(identity, identity, uniform, uniform[::-1]).worst
    exact = math.sqrt(dimension) * mean_coordinate(dimension)
    assert moves.ratio == pytest.approx(exact, abs=4 * (moves.error or 0))
    assert exact == pytest.approx(math.sqrt(2 / math.pi), rel=0.01)
    assert mean_coordinate(768) == pytest.approx(0.0288, abs=1e-4)
    assert mean_coordinate(1) == pytest.approx(1.0)


def test_vectors_that_all_point_one_way_may_exceed_the_bound() -> None:
    query, key = Random(64, 8).of_head(0)
    worst = worst_move(query, key)
    real = np.tile(worst / np.linalg.norm(worst), (50, 1)).astype(np.float32)
    uniform = unit_vectors(np.random.default_rng(0), 1_000, 64)
    assert (measure_moves(query, key, real, uniform[::-1]).worst.ratio or 0) > 1
    assert (measure_moves(query, key, uniform, uniform[::-1]).worst.ratio or 2) < 1


def test_the_vectors_of_the_model_are_brought_to_length_one() -> None:
    layer = Random(16, 4, heads=1)
    vectors = unit_vectors(np.random.default_rng(3), 30, 16)
    short, long = (check_theorem([layer], [scale * vectors], 30).heads[0].real for scale in (1.0, 100.0))
    assert short is not None
    assert long is not None
    assert short.worst.ratio == pytest.approx(long.worst.ratio, rel=1e-5)


def test_a_head_of_zeros_has_no_ratio() -> None:
    nothing = np.zeros((8, 2), dtype=np.float32)
    uniform = unit_vectors(np.random.default_rng(0), 10, 8)
    moves = measure_moves(nothing, nothing, uniform, uniform)
    assert moves.worst.ratio is None
    assert moves.random.tails == (None, None)
