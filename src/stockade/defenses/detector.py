"""A detector of attacked texts: a logistic regression over a few numbers, kept as a small json file."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stockade.core.errors import DataError, OptionError
from stockade.core.files import write_json

SCHEMA = 1
_STEPS = 50
_CLOSE = 1e-9


@dataclass(frozen=True, slots=True)
class Logistic:
    """Weights over standardised numbers: the probability is the logistic function of their sum."""

    means: tuple[float, ...]
    scales: tuple[float, ...]
    weights: tuple[float, ...]
    bias: float

    def probability(self, numbers: Sequence[float]) -> float:
        parts = zip(numbers, self.means, self.scales, self.weights, strict=True)
        odds = self.bias + sum((number - mean) / scale * weight for number, mean, scale, weight in parts)
        return 1 / (1 + math.exp(-max(-500.0, min(500.0, odds))))

    @classmethod
    def fit(cls, rows: NDArray[np.float64], attacked: NDArray[np.bool_], ridge: float = 1.0) -> Logistic:
        """The weights of the least loss, both kinds of texts counting alike, with a penalty of ridge / 2 · weights²;
        by Newton's method.
        """
        means, scales = rows.mean(0), rows.std(0)
        scales = np.where(scales < 1e-12, 1.0, scales)
        inputs = np.hstack([(rows - means) / scales, np.ones((len(rows), 1))])
        share = attacked.mean()
        counts = np.where(attacked, 0.5 / share, 0.5 / (1 - share))
        penalty = np.diag([ridge] * rows.shape[1] + [0.0])
        weights = np.zeros(inputs.shape[1])
        for _ in range(_STEPS):
            chances = 1 / (1 + np.exp(-np.clip(inputs @ weights, -500, 500)))
            slope = inputs.T @ (counts * (chances - attacked)) + penalty @ weights
            bend = inputs.T @ (inputs * (counts * chances * (1 - chances))[:, None]) + penalty
            step = np.linalg.lstsq(bend, slope, rcond=None)[0]
            weights = weights - step
            if np.abs(step).max() < _CLOSE:
                break
        found: list[float] = weights.tolist()
        return cls(tuple(means.tolist()), tuple(scales.tolist()), tuple(found[:-1]), found[-1])


@dataclass(frozen=True, slots=True)
class Fitted:
    """How many texts of each kind a detector was fitted on, and how many of those it takes to be attacked; `model` is
    the fingerprint of the model that it was fitted on, if that has one.
    """

    clean: int
    attacked: int
    false_alarms: int
    caught: int
    model: str | None = None


@dataclass(frozen=True, slots=True)
class Detector:
    """Says how likely a text was attacked; from `threshold` on it is taken to be.

    `rate`, `kept` and `copies` are how words were hidden for the numbers it was fitted on; `counts` are the words of
    the clean texts, `rare` the count up to which a word is rare.
    """

    features: tuple[str, ...]
    logistic: Logistic
    threshold: float
    rate: float
    kept: int
    copies: int
    rare: int
    counts: Mapping[str, int]
    fitted: Fitted | None = None

    def save(self, path: str | Path) -> None:
        write_json(Path(path), {"schema": SCHEMA, **dataclasses.asdict(self)})


def check_false_positives(share: float) -> None:
    if not 0 <= share < 1:
        raise OptionError(f"The false-positive rate is {share}, expected a share such as 0.05.")


def threshold_at(clean: Sequence[float], false_positives: float) -> float:
    """The lowest threshold that no more than this share of the clean texts reaches."""
    check_false_positives(false_positives)
    if not clean:
        raise DataError("There is no clean text to choose the detector's threshold on.")
    allowed = int(false_positives * len(clean) + 1e-9)
    return math.nextafter(sorted(clean, reverse=True)[allowed], math.inf)


def load_detector(path: str) -> Detector:
    """A detector that was saved; a file that is read again is not parsed again."""
    return _parsed(path, _content(path))


def detector_hash(path: str) -> str:
    """What exactly is in the file of a detector."""
    return hashlib.sha256(_content(path)).hexdigest()


def _content(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise OptionError(
            f"The detector {path} cannot be read ({error.strerror or error}). Fit one: stockade detector MODEL RUN "
            "--out detector.json"
        ) from None


@lru_cache(maxsize=4)
def _parsed(path: str, content: bytes) -> Detector:
    try:
        found: dict[str, Any] = json.loads(content)
        if found.pop("schema") != SCHEMA:
            raise ValueError("another format")
        parts = found.pop("logistic")
        means, scales, weights = (tuple(map(float, parts[name])) for name in ("means", "scales", "weights"))
        logistic = Logistic(means, scales, weights, float(parts["bias"]))
        fitted = found.pop("fitted", None)
        return Detector(
            logistic=logistic,
            features=tuple(found.pop("features")),
            fitted=None if fitted is None else Fitted(**fitted),
            **found,
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise OptionError(f"{path} is no detector of Stockade ({error}). Fit and save one anew.") from None
