"""Several trainings of one mask rate: their mean and spread, and one entry for each rate.

The paper's Figure 3 is the mean of five trainings with other first weights. What a single training shows may be its
own luck; how far the trainings of one rate lie apart says how much.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from statistics import fmean, stdev

from stockade.certificates.medians import median_bound
from stockade.report.numbers import Interval
from stockade.studies.masking.analysis import CheckNumbers, EnsembleNumbers, RateNumbers
from stockade.studies.masking.texts import RateTexts
from stockade.studies.records import AttackNumbers


@dataclass(frozen=True, slots=True)
class Spread:
    """A number over trainings.

    Parameters
    ----------
    mean
        Over those that have it; None if none has.
    deviation
        The standard deviation of single trainings (with n - 1); None for fewer than two.
    low, high
        The smallest and the largest.
    values
        Of each training.
    """

    mean: float | None
    deviation: float | None
    low: float | None
    high: float | None
    values: tuple[float | None, ...]

    @classmethod
    def of(cls, values: Sequence[float | None]) -> Spread:
        """The spread of these numbers; None among them was not measured, or is not certified."""
        there = [value for value in values if value is not None]
        return cls(
            mean=fmean(there) if there else None,
            deviation=stdev(there) if len(there) > 1 else None,
            low=min(there, default=None),
            high=max(there, default=None),
            values=tuple(values),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RateRuns:
    """The trainings of one mask rate.

    Parameters
    ----------
    rate, models
        Which.
    accuracy, median_radius, median_rate
        Accuracy of the vote, and MCB and MCR as proved.
    robust
        Robust accuracy by ensemble and attack.
    """

    rate: float
    models: tuple[str, ...]
    accuracy: Spread
    median_radius: Spread
    median_rate: Spread
    robust: Mapping[str, Mapping[str, Spread]]


def by_rate(rates: Sequence[RateNumbers]) -> list[list[RateNumbers]]:
    """The models of each rate together, which must stand by rising rate."""
    return [list(group) for _, group in groupby(rates, key=lambda entry: entry.rate)]


def measure_runs(rates: Sequence[RateNumbers]) -> tuple[RateRuns, ...]:
    """Mean and spread over the trainings of each rate; nothing where no rate has several.

    Parameters
    ----------
    rates
        The numbers of every model, by rising rate.
    """
    groups = by_rate(rates)
    return tuple(map(_measured, groups)) if any(len(group) > 1 for group in groups) else ()


def _measured(group: Sequence[RateNumbers]) -> RateRuns:
    sound = [entry.certificates.sound for entry in group]
    return RateRuns(
        rate=group[0].rate,
        models=tuple(entry.model for entry in group),
        accuracy=Spread.of([entry.certificates.accuracy["value"] for entry in group]),
        median_radius=Spread.of([numbers.median_radius for numbers in sound]),
        median_rate=Spread.of([numbers.median_rate for numbers in sound]),
        robust={
            ensemble: {
                attack: Spread.of([_robust(entry, ensemble, attack) for entry in group])
                for attack in group[0].attacks[ensemble]
            }
            for ensemble in group[0].attacks
        },
    )


def _robust(entry: RateNumbers, ensemble: str, attack: str) -> float | None:
    numbers = entry.attacks.get(ensemble, {}).get(attack)
    return None if numbers is None else numbers.robust_accuracy["value"]


def one_per_rate(rates: Sequence[RateNumbers]) -> list[RateNumbers]:
    """One entry for each rate, as plots and claims take them; of several trainings the mean, from the smallest to the
    largest, of MCB and MCR the median training, of the divergence the largest.

    Parameters
    ----------
    rates
        The numbers of every model, by rising rate.
    """
    return [group[0] if len(group) == 1 else _mean(group) for group in by_rate(rates)]


def _mean(group: Sequence[RateNumbers]) -> RateNumbers:
    first = group[0]
    certificates = [entry.certificates for entry in group]
    sound = replace(
        first.certificates.sound,
        accuracy=_interval([numbers.sound.accuracy for numbers in certificates]),
        median_radius=median_bound([numbers.sound.median_radius for numbers in certificates]),
        median_rate=_middle([numbers.sound.median_rate for numbers in certificates]),
    )
    claimed = replace(
        first.certificates.claimed,
        median_radius=median_bound([numbers.claimed.median_radius for numbers in certificates]),
        median_rate=_middle([numbers.claimed.median_rate for numbers in certificates]),
    )
    corrected = replace(
        first.certificates.corrected,
        median_radius=median_bound([numbers.corrected.median_radius for numbers in certificates]),
        median_rate=_middle([numbers.corrected.median_rate for numbers in certificates]),
    )
    accuracy = _interval([numbers.accuracy for numbers in certificates])
    return replace(
        first,
        run="",
        model=", ".join(entry.model for entry in group),
        certificates=replace(first.certificates, accuracy=accuracy, sound=sound, claimed=claimed, corrected=corrected),
        check=max((entry.check for entry in group), key=_divergence),
        attacks=_mean_attacks(group),
    )


def _mean_attacks(group: Sequence[RateNumbers]) -> EnsembleNumbers:
    def mean(ensemble: str, attack: str) -> AttackNumbers:
        cells = [cell for entry in group if (cell := entry.attacks.get(ensemble, {}).get(attack)) is not None]
        return replace(
            cells[0],
            clean_accuracy=_interval([cell.clean_accuracy for cell in cells]),
            robust_accuracy=_interval([cell.robust_accuracy for cell in cells]),
        )

    return {
        ensemble: {attack: mean(ensemble, attack) for attack in attacks}
        for ensemble, attacks in group[0].attacks.items()
    }


def _interval(intervals: Sequence[Interval]) -> Interval:
    spread = Spread.of([interval["value"] for interval in intervals])
    return {"value": spread.mean, "low": spread.low, "high": spread.high}


def _middle(rates: Sequence[float | None]) -> float | None:
    """The median training, as `median_bound` counts: what is not certified is less than anything."""
    ordered = sorted(rates, key=lambda rate: float("-inf") if rate is None else rate, reverse=True)
    return ordered[-(-len(ordered) // 2) - 1]


def _divergence(check: CheckNumbers) -> float:
    value = check.largest_sets["value"]
    return float("-inf") if value is None else value


def mean_texts(runs: Sequence[RateTexts]) -> RateTexts:
    """What became of each text in the mean over the trainings of a rate, for tests text by text.

    The trainings of a text go together, because they are no new texts.

    Parameters
    ----------
    runs
        Of one rate.
    """
    if len(runs) == 1:
        return runs[0]
    return RateTexts(
        right=_mean_values([texts.right for texts in runs]),
        radii=_mean_values([texts.radii for texts in runs]),
        robust={
            ensemble: {
                attack: _mean_values([texts.robust.get(ensemble, {}).get(attack, {}) for texts in runs])
                for attack in attacks
            }
            for ensemble, attacks in runs[0].robust.items()
        },
    )


def _mean_values(values: Sequence[Mapping[str, float]]) -> dict[str, float]:
    shared = [text for text in values[0] if all(text in others for others in values)]
    return {text: fmean(others[text] for others in values) for text in shared}


@dataclass(frozen=True, slots=True)
class ChosenRate:
    """The rate that the paper would choose if these were its validation texts: that of the largest MCB.

    Parameters
    ----------
    rate, models
        The rate, and its models.
    median_radius
        MCB as proved.
    accuracy
        Of the vote, the mean over the models.
    """

    rate: float
    models: tuple[str, ...]
    median_radius: int
    accuracy: float | None


def choose_rate(rates: Sequence[RateNumbers]) -> ChosenRate | None:
    """The rate of the largest MCB; None if no rate has one.

    Of equal MCB the one of the higher accuracy is taken, as the paper takes 90 % and not 95 % for AG-News, and of equal
    accuracy the lower rate.

    Parameters
    ----------
    rates
        The numbers of every model, by rising rate.
    """
    chosen: ChosenRate | None = None
    for group, entry in zip(by_rate(rates), one_per_rate(rates), strict=True):
        radius, accuracy = entry.certificates.sound.median_radius, entry.certificates.accuracy["value"]
        if radius is not None and (
            chosen is None or (radius, accuracy or 0.0) > (chosen.median_radius, chosen.accuracy or 0.0)
        ):
            chosen = ChosenRate(entry.rate, tuple(model.model for model in group), radius, accuracy)
    return chosen
