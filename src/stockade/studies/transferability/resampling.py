"""Intervals and tests of statistics of many shares at once, by resampling the texts that they were measured on.

A text occurs in many shares (every source and target of a transfer matrix), so shares are not independent, and a
statistic over them cannot be tested share by share. Texts are drawn with replacement instead; all shares are computed
anew from the same draw, and the statistic from those. The models stay what they are: intervals say what other texts
would have given, not other models.

Of many absolute differences the mean grows with noise, in a resample more than in the sample. Intervals are therefore
centred: the spread of the resampled values around their mean, laid around the measured value.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from stockade.report.numbers import Interval

RESAMPLES = 1_000
SHARE = (0.0, 1.0)
"""The bounds of a share, and of a mean of absolute differences of shares."""
_DIGITS = 6

Flags = NDArray[np.bool_]
Shares = NDArray[np.float32]


def shares(hits: Flags, counted: Flags) -> NDArray[np.float64]:
    """The share of hits among the counted texts; NaN where none is counted.

    Parameters
    ----------
    hits
        Whether a text is a hit; texts are the last axis.
    counted
        Whether a text counts, in the same shape.
    """
    with np.errstate(invalid="ignore"):
        rates: NDArray[np.float64] = (hits & counted).sum(-1) / counted.sum(-1)
    return rates


def resampled_shares(hits: Flags, counted: Flags, *, seed: int = 0, resamples: int = RESAMPLES) -> Shares:
    """The shares in resamples of the texts; resamples are the first axis.

    The draws depend on the seed and the number of texts alone, so that statistics of several arrays over the same texts
    can be compared resample by resample.

    Parameters
    ----------
    hits, counted
        As for `shares`.
    seed
        Which draws.
    resamples
        How many.
    """
    texts, rng = hits.shape[-1], np.random.default_rng(seed)
    if not texts:
        return np.full((resamples, *hits.shape[:-1]), np.nan, dtype=np.float32)
    draws = rng.multinomial(texts, np.full(texts, 1 / texts), size=resamples).T.astype(np.float32)
    return _divided(_weighted(hits & counted, draws), _weighted(counted, draws))


def exchanged_shares(hits: Flags, counted: Flags, *, seed: int = 0, resamples: int = RESAMPLES) -> Shares:
    """The shares of a square of models after sources and targets change places on a random half of the texts.

    If it did not matter which model of a pair is the source, these would be like the measured shares. Each text's
    square is transposed as a whole, so that whatever is alike within a text stays alike.

    Parameters
    ----------
    hits, counted
        Sources, targets and texts; as many targets as sources, in the same order.
    seed, resamples
        As for `resampled_shares`.
    """
    rng = np.random.default_rng(seed)
    stay = rng.integers(0, 2, size=(hits.shape[-1], resamples)).astype(np.float32)
    swapped_hits, swapped_counted = hits.swapaxes(0, 1), counted.swapaxes(0, 1)
    numerators = _weighted(hits & counted, stay) + _weighted(swapped_hits & swapped_counted, 1 - stay)
    return _divided(numerators, _weighted(counted, stay) + _weighted(swapped_counted, 1 - stay))


def centred_interval(
    value: float, resampled: NDArray[np.floating], bounds: tuple[float, float] | None = None
) -> Interval:
    """A value with its 95 % bootstrap interval.

    Parameters
    ----------
    value
        What was measured.
    resampled
        The same of each resample; NaN where one had nothing to measure.
    bounds
        What the value can be at all: (0, 1) for a share.
    """
    values = resampled[np.isfinite(resampled)]
    if not np.isfinite(value):
        return {"value": None, "low": None, "high": None}
    if len(values) < 2:
        return {"value": round(value, _DIGITS), "low": None, "high": None}
    ends = np.percentile(values - values.mean() + value, [2.5, 97.5])
    low, high = (ends if bounds is None else np.clip(ends, *bounds)).tolist()
    return {"value": round(value, _DIGITS), "low": round(low, _DIGITS), "high": round(high, _DIGITS)}


def differs_from_zero(value: float, resampled: NDArray[np.floating]) -> float | None:
    """The two-sided p of a difference: how often the resampled ones deviate from their mean by as much.

    Parameters
    ----------
    value
        The measured difference.
    resampled
        That of each resample.
    """
    values = resampled[np.isfinite(resampled)]
    if not np.isfinite(value) or len(values) < 2:
        return None
    return at_least(abs(value), np.abs(values - values.mean()))


def at_least(value: float, null: NDArray[np.floating]) -> float:
    """The p of a statistic: how often it is as large where there is nothing to find; never 0.

    Parameters
    ----------
    value
        The measured statistic.
    null
        Its values where there is nothing to find.
    """
    return round((1 + int((null >= value - 1e-9).sum())) / (1 + len(null)), _DIGITS)


def _weighted(flags: Flags, weights: NDArray[np.float32]) -> Shares:
    """The weights of the flagged texts added up, for each column of weights; columns become the first axis."""
    rows = flags.reshape(-1, flags.shape[-1])
    summed = np.empty((len(rows), weights.shape[1]), dtype=np.float32)
    for chunk in _chunks(len(rows)):
        summed[chunk] = rows[chunk].astype(np.float32) @ weights
    return np.moveaxis(summed.reshape(*flags.shape[:-1], -1), -1, 0)


def _chunks(rows: int, size: int = 1_024) -> Iterator[slice]:
    """So that no array of all rows has to be held as numbers."""
    return (slice(start, start + size) for start in range(0, rows, size))


def _divided(numerators: Shares, denominators: Shares) -> Shares:
    with np.errstate(invalid="ignore"):
        return numerators / denominators
