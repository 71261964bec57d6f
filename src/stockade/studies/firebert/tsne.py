"""t-SNE (van der Maaten & Hinton 2008) of a few hundred points: exact, and the same picture every time.

Every pair of points is looked at, so it costs n² in each step; a figure has a few hundred points. It begins at the two
principal components, as is usual now, so that nothing is random.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
PERPLEXITY = 30.0
_STEPS, _EXAGGERATED, _EXAGGERATION = 500, 125, 12.0
_BISECTIONS = 50
_START = 1e-4
"""The spread of the points before the first step: small, so that they can pass each other."""
_TINY = 1e-12


def tsne(points: Floats, perplexity: float = PERPLEXITY) -> Floats:
    """Points in a plane that have the same near neighbours as in many dimensions; how far groups lie apart in it, and
    how large they are, says nothing.

    Parameters
    ----------
    points
        A row per point.
    perplexity
        About how many neighbours a point has; at most a third of the points.
    """
    count = len(points)
    if count < 4:
        return principal_components(points)
    joint = joint_probabilities(squared_distances(points), min(perplexity, (count - 1) / 3))
    plane = principal_components(points)
    plane *= _START / max(float(plane[:, 0].std()), _TINY)
    rate = max(count / _EXAGGERATION / 4, 50.0)
    velocity, gains = np.zeros_like(plane), np.ones_like(plane)
    for step in range(_STEPS):
        early = step < _EXAGGERATED
        gradient = _gradient(plane, joint * (_EXAGGERATION if early else 1.0))
        same = np.sign(gradient) == np.sign(velocity)
        gains = np.maximum(np.where(same, gains * 0.8, gains + 0.2), 0.01)
        velocity = (0.5 if early else 0.8) * velocity - rate * gains * gradient
        plane = plane + velocity
        plane -= plane.mean(axis=0)
    return plane


def divergence(joint: Floats, plane: Floats) -> float:
    """The Kullback–Leibler divergence that t-SNE makes small.

    Parameters
    ----------
    joint
        The probabilities of pairs in many dimensions.
    plane
        The points in the plane.
    """
    kernel = _kernel(plane)
    low = np.maximum(kernel / kernel.sum(), _TINY)
    return float((joint * np.log(np.maximum(joint, _TINY) / low)).sum())


def joint_probabilities(distances: Floats, perplexity: float) -> Floats:
    """How likely each pair of points is picked: near ones with Gaussians whose widths give every point so many
    neighbours (2 to the entropy of its row).

    Parameters
    ----------
    distances
        Squared, between all points.
    perplexity
        How many neighbours.
    """
    count = len(distances)
    low, high = np.zeros(count), np.full(count, np.inf)
    beta = np.ones(count) / np.maximum(distances.mean(axis=1), _TINY)
    for _ in range(_BISECTIONS):
        rows = _conditional(distances, beta)
        entropy = -(rows * np.log(np.maximum(rows, _TINY))).sum(axis=1)
        too_wide = entropy > np.log(perplexity)
        low, high = np.where(too_wide, beta, low), np.where(too_wide, high, beta)
        beta = np.where(np.isinf(high), beta * 2, (low + np.where(np.isinf(high), 0, high)) / 2)
    rows = _conditional(distances, beta)
    joint: Floats = (rows + rows.T) / (2 * count)
    return joint


def _conditional(distances: Floats, beta: Floats) -> Floats:
    scaled = -distances * beta[:, None]
    np.fill_diagonal(scaled, -np.inf)
    weights: Floats = np.exp(scaled - scaled.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    return weights


def _gradient(plane: Floats, joint: Floats) -> Floats:
    kernel = _kernel(plane)
    weights = (joint - kernel / kernel.sum()) * kernel
    gradient: Floats = 4 * (weights.sum(axis=1)[:, None] * plane - weights @ plane)
    return gradient


def _kernel(plane: Floats) -> Floats:
    """Student's t with one degree of freedom between all points, nothing with themselves."""
    kernel: Floats = 1 / (1 + squared_distances(plane))
    np.fill_diagonal(kernel, 0.0)
    return kernel


def squared_distances(points: Floats) -> Floats:
    """Between all points.

    Parameters
    ----------
    points
        A row per point.
    """
    lengths = np.square(points).sum(axis=1)
    distances: Floats = np.maximum(lengths[:, None] + lengths[None, :] - 2 * points @ points.T, 0.0)
    return distances


def principal_components(points: Floats) -> Floats:
    """The points along the two directions in which they differ most; the sign is that of the largest coordinate.

    Parameters
    ----------
    points
        A row per point.
    """
    centred = points - points.mean(axis=0)
    _, _, directions = np.linalg.svd(centred, full_matrices=False)
    plane = centred @ directions[:2].T
    if plane.shape[1] < 2:
        plane = np.column_stack([plane, np.zeros(len(points))])
    signs = np.sign(plane[np.abs(plane).argmax(axis=0), [0, 1]])
    turned: Floats = plane * np.where(signs == 0, 1.0, signs)
    return turned
