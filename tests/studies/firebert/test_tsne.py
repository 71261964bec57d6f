"""t-SNE: neighbours as many as asked for, groups that stay together, and a divergence as small as scikit-learn's."""

from __future__ import annotations

import numpy as np
import pytest

from stockade.studies.firebert.tsne import (
    divergence,
    joint_probabilities,
    principal_components,
    squared_distances,
    tsne,
)


def clouds(each: int = 40, width: int = 20) -> np.ndarray:
    rng = np.random.default_rng(1)
    return np.vstack([rng.normal(middle, 0.3, (each, width)) for middle in (0.0, 2.0, 5.0)])


def test_every_point_has_as_many_neighbours_as_asked_for() -> None:
    """Undoing the symmetry: with distances that are alike for all points, every row has the same entropy."""
    points = np.array([[np.cos(angle), np.sin(angle)] for angle in np.linspace(0, 2 * np.pi, 61)[:-1]])
    joint = joint_probabilities(squared_distances(points), 10.0)
    rows = joint * len(points)
    assert rows.sum(axis=1) == pytest.approx(np.ones(60))
    entropy = -(rows * np.log(np.maximum(rows, 1e-12))).sum(axis=1)
    assert np.exp(entropy) == pytest.approx(np.full(60, 10.0), rel=1e-3)
    assert joint == pytest.approx(joint.T)
    assert np.diag(joint) == pytest.approx(0)


def test_groups_stay_together() -> None:
    points = clouds()
    plane = tsne(points)
    nearest = (squared_distances(plane) + np.diag(np.full(len(plane), np.inf))).argsort(axis=1)[:, :10]
    assert (nearest // 40 == np.arange(120)[:, None] // 40).all()
    assert np.array_equal(plane, tsne(points)), "the same picture every time"


def test_the_divergence_is_as_small_as_scikit_learns() -> None:
    manifold = pytest.importorskip("sklearn.manifold")
    points = clouds()
    other = manifold.TSNE(perplexity=30, method="exact", init="pca", random_state=0).fit(points)
    joint = joint_probabilities(squared_distances(points), 30.0)
    assert divergence(joint, tsne(points)) <= 1.05 * other.kl_divergence_


def test_few_points_and_principal_components() -> None:
    line = np.array([[0.0, 0.0, 0.0], [1.0, 2.0, 2.0], [3.0, 6.0, 6.0]])
    assert np.abs(np.diff(principal_components(line)[:, 0])) == pytest.approx([3.0, 6.0])
    assert tsne(line).shape == (3, 2)
    assert tsne(np.ones((1, 5))).shape == (1, 2)
