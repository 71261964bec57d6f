"""The numbers of the transfer study (Generating universal language adversarial examples …, under review at ICLR 2021).

    rates             r(s, t): the share of the adversarial texts of s that t gets wrong, raw and on the texts that t
                      gets right before (Figure 3)
    factors, order    Table 2: how far the rate moves from the base rate when one factor of the model changes
    architectures     Table 3: means from class to class
    inputs            Table 4: the same for input forms and embeddings, with averages
    asymmetry         r(s, t) - r(t, s)
    universal         Table 1: adversarial texts that fool every model that is right on the original
    spread, maps      appendix C: which words models look at, and whether at few or at many

The base rate of a model is the rate of its adversarial texts on a second training of it; it stands on the diagonal.
Intervals and tests draw texts with replacement. The paper has none, and does not say whether texts that the target gets
wrong anyway count; both are here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from stockade.core.statistics import wilson
from stockade.report.numbers import Interval
from stockade.studies.records import Records, mean, successes, was_attacked
from stockade.studies.transfer.importance_maps import Spread, WordMap
from stockade.studies.transfer.rates import Outcomes, Resampled, Samples, number_or_none
from stockade.studies.transfer.statistics import (
    ARCHITECTURES,
    Asymmetry,
    FactorEffect,
    FactorOrder,
    class_table,
    factor_order,
    factor_table,
    measure_asymmetry,
    measure_effects,
)
from stockade.studies.transfer.universal import Universal, find_universal
from stockade.studies.transferability.matrix import INPUT_CLASSES, OTHER, TransferMatrix, traits_of

Rates = tuple[tuple[float | None, ...], ...]
"""A row for each source; None where nothing was measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelNumbers:
    """A model of the study.

    Parameters
    ----------
    reference
        Where it came from.
    architecture, input_class
        Its traits, by its name.
    clean_accuracy, second_accuracy
        On the studied texts, of it and of its second training.
    model_rows, model_seconds
        How many different texts it computed as a target, and how long that took it.
    failure, second_failure
        Why it, or its second training, could not be used to the end.
    """

    reference: str
    architecture: str
    input_class: str
    clean_accuracy: Interval
    second_accuracy: Interval
    model_rows: int
    model_seconds: float
    failure: str | None
    second_failure: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceNumbers:
    """What an attack did to a source.

    Parameters
    ----------
    attacked, succeeded
        How many texts it tried to change, and how many of them fool the source.
    sampled
        How many of those were given to the targets.
    mean_perturbed_percent
        The share of words that is changed in them.
    mean_rate
        The mean rate to the other models.
    """

    attacked: int
    succeeded: int
    sampled: int
    mean_perturbed_percent: float | None
    mean_rate: Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class AttackTransfer:
    """Every number of one attack; rates are in the order of `models`.

    Parameters
    ----------
    models
        Sources and targets.
    sources
        What the attack did to each source.
    rates, low, high
        r(s, t) with its 95 % Wilson interval; base rates stand on the diagonal.
    counts
        On how many texts each of them was measured.
    clean_rates
        The same on the texts that the target gets right before.
    own, others
        The mean base rate, and the mean rate to other models.
    factors, order
        Table 2, and each factor against the next of the paper's order.
    architectures, inputs
        Tables 3 and 4.
    asymmetry, universal
        What their classes say.
    """

    models: tuple[str, ...]
    sources: Mapping[str, SourceNumbers]
    rates: Rates
    low: Rates
    high: Rates
    counts: tuple[tuple[int, ...], ...]
    clean_rates: Rates
    own: Interval
    others: Interval
    factors: Mapping[str, FactorEffect]
    order: tuple[FactorOrder, ...]
    architectures: Mapping[str, Mapping[str, Interval]]
    inputs: Mapping[str, Mapping[str, Interval]]
    asymmetry: Asymmetry
    universal: Universal

    def matrix(self, *, clean: bool = False) -> TransferMatrix:
        """The rates as the file has them.

        Parameters
        ----------
        clean
            Those on the texts that the target gets right before.
        """
        rates = np.array(self.clean_rates if clean else self.rates, dtype=np.float64)
        return TransferMatrix(self.models, self.models, rates.reshape(len(self.models), len(self.models)))


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferNumbers:
    """Every number of the study.

    Parameters
    ----------
    texts
        How many were studied.
    models, attacks
        What there is to say of each.
    spread, maps
        The importance of words; None and empty if it was not measured.
    """

    texts: int
    models: Mapping[str, ModelNumbers]
    attacks: Mapping[str, AttackTransfer]
    spread: Spread | None
    maps: tuple[WordMap, ...]


def analyse_attack(
    outcomes: Outcomes, raw: Resampled, clean: Resampled, records: Mapping[str, Records], samples: Samples
) -> AttackTransfer:
    """Every number of one attack.

    Parameters
    ----------
    outcomes
        What every target said.
    raw, clean
        The rates that follow, on all texts and on those that the target gets right before.
    records
        What the attack did to each source.
    samples
        The adversarial texts of each source that the targets were given.
    """
    effects, off_diagonal = measure_effects(raw), raw.off_diagonal
    wilsons = [
        [wilson(hits, count) for hits, count in zip(*rows, strict=True)]
        for rows in zip(raw.hits.tolist(), raw.counts.tolist(), strict=True)
    ]

    def end(name: str) -> Rates:
        return tuple(tuple(number_or_none(_float(cell[name])) for cell in row) for row in wilsons)

    return AttackTransfer(
        models=raw.models,
        sources={
            source: _source_numbers(raw, source, records[source], samples) for source in raw.models if source in records
        },
        rates=end("value"),
        low=end("low"),
        high=end("high"),
        counts=tuple(map(tuple, raw.counts.tolist())),
        clean_rates=tuple(tuple(map(number_or_none, row)) for row in clean.matrix.rates.tolist()),
        own=raw.mean_interval(~off_diagonal),
        others=raw.mean_interval(off_diagonal),
        factors=factor_table(effects),
        order=factor_order(raw, effects),
        architectures=class_table(raw, lambda name: traits_of(name).architecture, (*ARCHITECTURES, OTHER)),
        inputs=class_table(raw, lambda name: traits_of(name).input_class, (*INPUT_CLASSES, OTHER), averages=True),
        asymmetry=measure_asymmetry(raw),
        universal=find_universal(outcomes, samples),
    )


def _source_numbers(raw: Resampled, source: str, records: Records, samples: Samples) -> SourceNumbers:
    sample = samples.get(source, ())
    row = raw.among(lambda name: name == source)
    return SourceNumbers(
        attacked=sum(map(was_attacked, records.values())),
        succeeded=len(successes(records)),
        sampled=len(sample),
        mean_perturbed_percent=mean([record.perturbed_percent or 0.0 for record in sample]),
        mean_rate=raw.mean_interval(raw.cells(row, np.ones_like(row), own=False)),
    )


def _float(value: float | None) -> float:
    return float("nan") if value is None else value
