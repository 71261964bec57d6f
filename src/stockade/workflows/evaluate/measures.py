"""Numbers over seeds: each seed's share with its own interval, their mean, and how far the seeds lie apart."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev
from typing import NotRequired, TypedDict

from stockade.core.statistics import sign_flips, wilson
from stockade.workflows.attack.summary import mostly_untried
from stockade.workflows.evaluate.outcomes import Counts, Outcome

_SURVIVED: tuple[Outcome, ...] = ("robust", "untried")


@dataclass(frozen=True, slots=True)
class Interval:
    """A number with its 95 % interval; None where nothing was measured."""

    value: float | None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """A share over seeds.

    Parameters
    ----------
    value
        The mean over seeds.
    low, high
        Enclose the 95 % Wilson intervals of all seeds, which speak of the choice of texts.
    over_seeds
        The 95 % t-interval of the mean, which speaks of the random choices; None for a single seed.
    by_seed
        Each seed's own.
    """

    value: float | None
    low: float | None
    high: float | None
    over_seeds: Interval | None
    by_seed: Mapping[str, Interval]


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedTest:
    """Two rows, or two views, on the same texts.

    Parameters
    ----------
    texts
        How many could be compared.
    gained, lost
        Texts that are robust with more seeds in the first, and in the second.
    p
        The exact two-sided p that the signs of the differences are by chance.
    """

    texts: int
    gained: int
    lost: int
    p: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstFlipShares:
    """Robust accuracy and success rate where one wrong answer of a randomised model is enough."""

    robust_accuracy: Measure
    success_rate: Measure


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """Accuracy before and under attack. On a randomised model a success fools at least half of its answers.

    Parameters
    ----------
    clean_accuracy, robust_accuracy
        Of all texts: right on the clean text, and right under attack.
    success_rate
        Fooled, of those that the model gets right; its value is over the texts of all seeds.
    n
        How many texts count, by seed.
    unknown
        The most texts of a seed that ended in an error and are left out.
    untried
        The most texts of a seed on which no attack had anything to try. They count as robust, unless they are most of
        them: then there is no robust accuracy.
    complete
        Whether nothing is missing; if something is, the accuracy may be lower than it looks.
    first_flip
        The same shares where one wrong answer of a randomised model is enough, as papers count; None for other models.
    """

    clean_accuracy: Measure
    robust_accuracy: Measure
    success_rate: Measure
    n: Mapping[str, int]
    unknown: int
    complete: bool
    untried: int = 0
    first_flip: FirstFlipShares | None = None


class ShareFields(TypedDict):
    """The fields of `Shares`, for those that have more."""

    clean_accuracy: Measure
    robust_accuracy: Measure
    success_rate: Measure
    n: Mapping[str, int]
    unknown: int
    untried: int
    complete: bool
    first_flip: NotRequired[FirstFlipShares | None]


def share_over_seeds(counts: Mapping[int, tuple[int, int]]) -> Measure:
    """A share of hits among trials by seed."""
    return measure({seed: share(hits, trials) for seed, (hits, trials) in counts.items()})


def share(hits: int, trials: int) -> Interval:
    """A share with its 95 % Wilson interval."""
    return Interval(**wilson(hits, trials))


def measure(by_seed: Mapping[int, Interval]) -> Measure:
    """The mean of numbers by seed, with the intervals of all."""
    values = [interval.value for interval in by_seed.values() if interval.value is not None]
    lows = [interval.low for interval in by_seed.values() if interval.low is not None]
    highs = [interval.high for interval in by_seed.values() if interval.high is not None]
    return Measure(
        value=fmean(values) if values else None,
        low=min(lows) if lows else None,
        high=max(highs) if highs else None,
        over_seeds=t_interval(values),
        by_seed={str(seed): interval for seed, interval in by_seed.items()},
    )


def attack_shares(counts: Mapping[int, Counts], seeds: int) -> ShareFields:
    """Accuracies and success rate from the counts of each seed; complete if there are as many as `seeds`.

    The success rate of all seeds is over their texts, not the mean of the seeds' rates: a reader must find
    1 - robust / clean.
    """
    attacked = sum(count.attacked for count in counts.values())
    fooled = sum(count.fooled for count in counts.values())
    success = share_over_seeds({seed: (count.fooled, count.attacked) for seed, count in counts.items()})
    return {
        "clean_accuracy": share_over_seeds({seed: (count.attacked, count.n) for seed, count in counts.items()}),
        "robust_accuracy": share_over_seeds({seed: _robust(count) for seed, count in counts.items()}),
        "success_rate": replace(success, value=fooled / attacked if attacked else None),
        "n": {str(seed): count.n for seed, count in counts.items()},
        "unknown": max((count.unknown for count in counts.values()), default=0),
        "untried": max((count.untried for count in counts.values()), default=0),
        "complete": len(counts) == seeds,
    }


def first_flip_shares(counts: Mapping[int, Counts], seeds: int) -> FirstFlipShares:
    """The shares by the rule that one wrong answer is enough, from the counts by that rule."""
    shares = attack_shares(counts, seeds)
    return FirstFlipShares(robust_accuracy=shares["robust_accuracy"], success_rate=shares["success_rate"])


def _robust(count: Counts) -> tuple[int, int]:
    """The robust texts and all texts; nothing where attacks had nothing to try on most that they attacked."""
    return (0, 0) if mostly_untried(count.untried, count.attacked) else (count.robust, count.n)


def t_interval(values: Sequence[float]) -> Interval | None:
    """The mean of shares with its 95 % t-interval, kept inside [0, 1]; None for less than two."""
    if len(values) < 2:
        return None
    from scipy.stats import t

    middle = fmean(values)
    half = float(t.ppf(0.975, len(values) - 1)) * stdev(values) / math.sqrt(len(values))
    return Interval(middle, max(0.0, middle - half), min(1.0, middle + half))


def paired(by_seed: Sequence[tuple[Mapping[str, Outcome], Mapping[str, Outcome]]]) -> PairedTest:
    """The test of two rows on the same texts, with what became of them for each seed.

    Where a text is unknown in either row, that seed of it is left out.
    """
    more: Counter[str] = Counter()
    for first, second in by_seed:
        for text, outcome in first.items():
            if outcome != "unknown" and second.get(text, "unknown") != "unknown":
                more[text] += (outcome in _SURVIVED) - (second[text] in _SURVIVED)
    return compared(more)


def compared(more: Mapping[str, int]) -> PairedTest:
    """The test of two rows, from how many more seeds each text is robust with in the first."""
    return PairedTest(
        texts=len(more),
        gained=sum(difference > 0 for difference in more.values()),
        lost=sum(difference < 0 for difference in more.values()),
        p=sign_flips(list(more.values())),
    )
