"""What a transfer matrix says about kinds of models: effects of factors, means between classes, asymmetry.

Every number has an interval by resampled texts. Models are what they are: other models could give other numbers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from stockade.report.numbers import Interval
from stockade.studies.transfer.rates import Drawn, Resampled, mean_of, mean_of_rows, number_or_none
from stockade.studies.transferability.matrix import BERT_FAMILY, INPUT_CLASSES, OTHER, factor_effects, traits_of
from stockade.studies.transferability.resampling import SHARE, at_least, centred_interval, differs_from_zero

ARCHITECTURES = ("LSTM", "BiLSTM", "CNN", BERT_FAMILY)
FACTOR_ORDER = ("input form", "architecture", "embedding", "capacity")
"""The order of the factors that the paper finds everywhere, the largest effect first."""
AVERAGE, CHARACTER = "Average", "Character"
_MOST_PAIRS = 10


@dataclass(frozen=True, slots=True)
class FactorEffect:
    """Table 2 for one factor.

    Parameters
    ----------
    pairs
        How many pairs of models differ in it alone.
    effect
        The mean of |r(s, t) - r0(t)|.
    by_chance
        What that mean would be if only the choice of the texts moved rates.
    """

    pairs: int
    effect: Interval
    by_chance: float | None


@dataclass(frozen=True, slots=True)
class FactorOrder:
    """Whether one factor matters more than another.

    Parameters
    ----------
    first, second
        The factors.
    difference, p
        Of their effects.
    targets, larger
        How many targets have neighbours in both, and for how many the first has the larger effect.
    """

    first: str
    second: str
    difference: Interval
    p: float | None
    targets: int
    larger: int


@dataclass(frozen=True, slots=True)
class AsymmetricPair:
    """Two models of which the first fools the second more often than the other way round."""

    source: str
    target: str
    rate: float
    reverse: float
    difference: Interval


@dataclass(frozen=True, slots=True)
class Asymmetry:
    """How far r(s, t) is from r(t, s).

    Parameters
    ----------
    pairs
        How many pairs of models were measured both ways.
    mean_difference
        The mean of |r(s, t) - r(t, s)|.
    by_chance
        What it is when sources and targets change places at random.
    p
        How often it is as large then.
    largest
        The most asymmetric pairs.
    """

    pairs: int
    mean_difference: Interval
    by_chance: float | None
    p: float | None
    largest: tuple[AsymmetricPair, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Effect:
    """A factor's effect, measured and of each resample, that of chance alone, and on how many pairs."""

    value: float
    drawn: Drawn
    by_chance: float
    pairs: int


def measure_effects(resampled: Resampled) -> dict[str, Effect]:
    """The effect of each factor.

    Parameters
    ----------
    resampled
        The rates.
    """
    place = {name: number for number, name in enumerate(resampled.models)}
    rates, effects = resampled.matrix.rates, {}
    for factor, pairs in factor_effects(resampled.matrix).items():
        rows = np.array([place[source] for source, _, _ in pairs], dtype=np.int64)
        columns = np.array([place[target] for _, target, _ in pairs], dtype=np.int64)
        measured = rates[rows, columns] - rates[columns, columns]
        drawn = resampled.resamples[:, rows, columns] - resampled.resamples[:, columns, columns]
        effects[factor] = Effect(
            value=mean_of(np.abs(measured)),
            drawn=mean_of_rows(np.abs(drawn)),
            by_chance=mean_of(mean_of_rows(np.abs(drawn - measured))),
            pairs=len(pairs),
        )
    return effects


def factor_table(effects: Mapping[str, Effect]) -> dict[str, FactorEffect]:
    """Table 2.

    Parameters
    ----------
    effects
        What `measure_effects` measured.
    """
    return {
        factor: FactorEffect(
            effect.pairs, centred_interval(effect.value, effect.drawn, SHARE), number_or_none(effect.by_chance)
        )
        for factor, effect in effects.items()
    }


def factor_order(resampled: Resampled, effects: Mapping[str, Effect]) -> tuple[FactorOrder, ...]:
    """Each factor against the next of the paper's order.

    Parameters
    ----------
    resampled, effects
        The rates, and what `measure_effects` measured of them.
    """
    by_target: dict[str, dict[str, list[float]]] = {factor: defaultdict(list) for factor in FACTOR_ORDER}
    for factor, pairs in factor_effects(resampled.matrix).items():
        for _, target, difference in pairs:
            by_target[factor][target].append(difference)
    orders = []
    for first, second in pairwise(FACTOR_ORDER):
        value = effects[first].value - effects[second].value
        drawn = effects[first].drawn - effects[second].drawn
        targets = by_target[first].keys() & by_target[second].keys()
        larger = [np.mean(by_target[first][target]) > np.mean(by_target[second][target]) for target in targets]
        interval, p = centred_interval(value, drawn), differs_from_zero(value, drawn)
        orders.append(FactorOrder(first, second, interval, p, len(targets), int(sum(larger))))
    return tuple(orders)


def measure_asymmetry(resampled: Resampled) -> Asymmetry:
    """How far rates are from those of the opposite direction, against sources and targets that change places.

    Parameters
    ----------
    resampled
        The rates.
    """
    rates, (rows, columns) = resampled.matrix.rates, np.triu_indices(len(resampled.models), 1)
    both = np.isfinite(rates[rows, columns]) & np.isfinite(rates[columns, rows])
    rows, columns = rows[both], columns[both]
    if not len(rows):
        return Asymmetry(0, {"value": None, "low": None, "high": None}, None, None, ())
    differences = rates[rows, columns] - rates[columns, rows]
    drawn = resampled.resamples[:, rows, columns] - resampled.resamples[:, columns, rows]
    exchanged = resampled.exchanged()
    null = mean_of_rows(np.abs(exchanged[:, rows, columns] - exchanged[:, columns, rows]))
    value, largest = mean_of(np.abs(differences)), np.argsort(-np.abs(differences), kind="stable")
    return Asymmetry(
        pairs=len(rows),
        mean_difference=centred_interval(value, mean_of_rows(np.abs(drawn)), SHARE),
        by_chance=number_or_none(mean_of(null)),
        p=at_least(value, null[np.isfinite(null)]),
        largest=tuple(
            _asymmetric_pair(resampled, int(rows[number]), int(columns[number]), drawn[:, number])
            for number in largest[:_MOST_PAIRS].tolist()
        ),
    )


def _asymmetric_pair(resampled: Resampled, row: int, column: int, drawn: Drawn) -> AsymmetricPair:
    """A pair with the direction of the higher rate first."""
    rates, models = resampled.matrix.rates, resampled.models
    if rates[row, column] < rates[column, row]:
        row, column, drawn = column, row, -drawn
    rate, reverse = float(rates[row, column]), float(rates[column, row])
    interval = centred_interval(rate - reverse, drawn)
    return AsymmetricPair(models[row], models[column], round(rate, 6), round(reverse, 6), interval)


def class_table(
    resampled: Resampled, class_of: Callable[[str], str], classes: Sequence[str], *, averages: bool = False
) -> dict[str, dict[str, Interval]]:
    """Means from class to class, base rates among them (Tables 3 and 4), without classes that have no model.

    Parameters
    ----------
    resampled
        The rates.
    class_of
        The class of a model by its name.
    classes
        Which classes, in which order.
    averages
        Whether means over the cells of each row and column stand at their ends.
    """
    names = [class_of(model) for model in resampled.models]
    present = [name for name in classes if name in names]
    members = {name: np.array([other == name for other in names]) for name in present}
    means = {
        (source, target): resampled.mean(resampled.cells(members[source], members[target]))
        for source in present
        for target in present
    }
    table = {
        source: {target: centred_interval(*means[source, target], SHARE) for target in present} for source in present
    }
    if not averages or not present:
        return table
    for source in present:
        table[source][AVERAGE] = _average([means[source, target] for target in present])
    columns = {target: _average([means[source, target] for source in present]) for target in present}
    return {**table, AVERAGE: {**columns, AVERAGE: _average(list(means.values()))}}


def _average(means: Sequence[tuple[float, Drawn]]) -> Interval:
    """The mean of the means that there are."""
    values, drawn = np.array([value for value, _ in means]), np.array([drawn for _, drawn in means])
    return centred_interval(mean_of(values), mean_of_rows(drawn.T), SHARE)


def in_family_order(models: Sequence[str]) -> tuple[str, ...]:
    """Models by architecture, then input and size; those outside the zoo last, in their own order.

    Parameters
    ----------
    models
        Their names.
    """

    def key(name: str) -> tuple[int, int, int]:
        traits = traits_of(name)
        return (
            (*ARCHITECTURES, OTHER).index(traits.architecture),
            (*INPUT_CLASSES, OTHER).index(traits.input_class),
            traits.layers,
        )

    return tuple(sorted(models, key=key))
