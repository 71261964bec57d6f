"""The learning rate as a function of the step: nothing to save, nothing to restore."""

from __future__ import annotations

import math

from stockade.training.options import Schedule


def rate_factor(schedule: Schedule, step: int, steps: int, warm_up: float = 0.0) -> float:
    """What the learning rate is multiplied by at `step` (from 0) of `steps`.

    It rises in equal parts through the first `warm_up` share of the steps, then falls linearly to zero, along half a
    cosine to zero, or stays.
    """
    warm = int(warm_up * steps)
    if step < warm:
        return (step + 1) / warm
    done = (step - warm) / max(1, steps - warm)
    if schedule == "linear":
        return max(0.0, 1.0 - done)
    if schedule == "cosine":
        return 0.5 * (1.0 + math.cos(math.pi * min(1.0, done)))
    return 1.0
