"""F1 over the classes of some texts, with intervals by resampling the texts.

F1 counts over all texts at once. The released code of FireBERT takes the mean of the F1 of its batches instead, which
for batches of one text is the accuracy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from stockade.workflows.evaluate.measures import Interval

RESAMPLES = 2_000
"""How many times the texts are drawn again for an interval."""
_SEED = 0
_PERCENTILES = (2.5, 97.5)
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class F1:
    """F1 of some texts, each with its 95 % bootstrap interval.

    Parameters
    ----------
    macro
        The mean over all classes that are true or predicted somewhere.
    positive
        Of the positive class; without a value if no text is of that class or said to be.
    """

    macro: Interval
    positive: Interval


def f1_scores(labels: Sequence[str], predicted: Sequence[str | None], positive: str | None = None) -> F1:
    """F1 over the texts with an answer.

    The interval is that of the percentile bootstrap by text: true and predicted class of a text are drawn together. It
    is empty where every text is right, or every text is wrong; the Wilson interval of the accuracy is not.

    Parameters
    ----------
    labels, predicted
        True and predicted class of each text; None where there is no answer.
    positive
        The class whose own F1 is wanted.
    """
    pairs = Counter((label, answer) for label, answer in zip(labels, predicted, strict=True) if answer is not None)
    if not pairs:
        return F1(Interval(None), Interval(None))
    cells = sorted(pairs)
    counts = np.array([pairs[cell] for cell in cells], dtype=np.float64)
    classes = sorted({name for cell in cells for name in cell})
    texts = int(counts.sum())
    # Texts with the same true and predicted class are alike, so a resample is a draw of how many there are of each.
    resamples = np.random.default_rng(_SEED).multinomial(texts, counts / texts, size=RESAMPLES)
    scores = _by_class(np.vstack([counts, resamples]), cells, classes)
    of_positive = scores[:, classes.index(positive)] if positive in classes else None
    return F1(_interval(np.nanmean(scores, axis=1)), Interval(None) if of_positive is None else _interval(of_positive))


def macro_f1(labels: Sequence[str], predicted: Sequence[str | None]) -> float | None:
    """The mean of the F1 of all classes that occur among true or predicted labels, over the texts with an answer."""
    return f1_scores(labels, predicted).macro.value


def _by_class(counts: Floats, cells: Sequence[tuple[str, str]], classes: Sequence[str]) -> Floats:
    """F1 of every class in every row of counts; not a number where the class does not occur."""
    hits = np.array([[label == answer == name for name in classes] for label, answer in cells], dtype=np.float64)
    named = np.array([[(label == name) + (answer == name) for name in classes] for label, answer in cells])
    with np.errstate(invalid="ignore"):
        scores: Floats = 2 * (counts @ hits) / (counts @ named)
    return scores


def _interval(scores: Floats) -> Interval:
    """The first is the score of the texts themselves, the others those of the resamples."""
    low, high = np.nanpercentile(scores[1:], _PERCENTILES)
    return Interval(float(scores[0]), float(low), float(high))
