"""The main findings of the transfer paper (section 3.4), each tested on the numbers of a study.

A finding is held if the difference it speaks of has the right sign and a p below 0.05 by resampled texts; it is not
held if the opposite difference has; otherwise it is undecided. The test is about the texts: other models of the same
kinds could differ. A finding about models or attacks that the study does not have is undecided, with that reason, and
so is everything on a few texts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from stockade.report.numbers import count, number, p_value, plain_percent
from stockade.studies.claims import Claim, all_of, by_test
from stockade.studies.records import FEW_TEXTS
from stockade.studies.transfer.analysis import AttackTransfer, TransferNumbers
from stockade.studies.transfer.rates import Comparison, Mask, Resampled
from stockade.studies.transfer.statistics import CHARACTER, FACTOR_ORDER, Effect, measure_effects
from stockade.studies.transferability.matrix import BERT_FAMILY, traits_of
from stockade.studies.transferability.resampling import centred_interval, differs_from_zero

PRETRAINED = ("GloVe", "word2vec", "fastText", "ELMo", BERT_FAMILY)
RANDOM = "Random"
PWWS, GENETIC = "pwws", "genetic"

Models = NDArray[np.bool_]


def check_claims(
    raw: Mapping[str, Resampled], clean: Mapping[str, Resampled], numbers: TransferNumbers
) -> tuple[Claim, ...]:
    """Every main finding, for each attack.

    Parameters
    ----------
    raw, clean
        The rates of each attack, on all texts and on those that the target gets right before.
    numbers
        What else was measured.
    """
    claims: list[Claim] = []
    for attack in raw:
        before = f"{attack}: " if len(raw) > 1 else ""
        for claim in _of_attack(raw[attack], clean[attack], numbers.attacks[attack]):
            claims.append(Claim(before + claim.claim, claim.holds, claim.numbers))
    claims += (_spreads_more(numbers), _overfits(raw))
    if numbers.texts >= FEW_TEXTS:
        return tuple(claims)
    few = f"too few texts to decide ({numbers.texts})"
    return tuple(
        claim if claim.holds is None else Claim(claim.claim, None, f"{few}; {claim.numbers}") for claim in claims
    )


def _of_attack(raw: Resampled, clean: Resampled, transfer: AttackTransfer) -> Iterator[Claim]:
    bert, character = _of_class(raw, BERT_FAMILY), _of_class(raw, CHARACTER)
    yield _factor_order(transfer)
    for name, members in (("transformers", bert), ("character models", character)):
        yield _lower(
            f"adversarial texts of {name} transfer less than those of other models, to the other models",
            (raw, clean),
            raw.cells(members, ~members),
            raw.cells(~members, ~members, own=False),
            name,
        )
        yield _lower(
            f"{name} are more robust than other models to the adversarial texts of other models",
            (raw, clean),
            raw.cells(~members, members),
            raw.cells(~members, ~members, own=False),
            name,
        )
    yield _asymmetric(transfer)
    yield _own_is_higher(raw, clean)
    yield _pretrained(raw)


def _of_class(raw: Resampled, name: str) -> Models:
    return raw.among(lambda model: traits_of(model).input_class == name)


def _factor_order(transfer: AttackTransfer) -> Claim:
    claim = "the input form has the greatest effect on transfer, then architecture, embedding, capacity"
    missing = [factor for factor in FACTOR_ORDER if not transfer.factors[factor].pairs]
    if len(missing) == len(FACTOR_ORDER):
        return Claim(claim, None, "no two models of the zoo differ in one factor and have a second training")
    effects = ", ".join(f"{factor} {number(transfer.factors[factor].effect['value'], 3)}" for factor in FACTOR_ORDER)
    if missing:
        return Claim(claim, None, f"no pair of models differs in {' or '.join(missing)} alone; {effects}")
    tests = ", ".join(
        f"{order.first} over {order.second} {p_value(order.p)} ({order.larger} of {count(order.targets, 'target')})"
        for order in transfer.order
        if order.p is not None
    )
    holds = all_of(by_test(order.difference["value"], order.p) for order in transfer.order)
    return Claim(claim, holds, f"{effects}; {tests}")


def _lower(claim: str, rates: tuple[Resampled, Resampled], first: Mask, second: Mask, kind: str) -> Claim:
    """Whether the mean over the first cells is below that over the second."""
    raw, clean = rates[0].compare(first, second), rates[1].compare(first, second)
    if not all(raw.cells):
        return Claim(claim, None, f"there are no {kind} in this study" if not raw.cells[0] else "there are no others")
    difference = raw.difference["value"]
    return Claim(claim, by_test(None if difference is None else -difference, raw.p), _said(raw, clean))


def _own_is_higher(raw: Resampled, clean: Resampled) -> Claim:
    claim = "adversarial texts transfer better to a second training of the same model than to other models"
    comparison = raw.compare(~raw.off_diagonal, raw.off_diagonal)
    if not all(comparison.cells):
        return Claim(claim, None, "no model has a second training: name them with --second")
    rates = raw.matrix.rates
    own, others = np.diag(rates), np.where(raw.off_diagonal, rates, np.nan)
    rows = [(mine, row[np.isfinite(row)]) for mine, row in zip(own, others, strict=True) if np.isfinite(mine)]
    above = sum(bool(row.size) and bool(mine > row.mean()) for mine, row in rows)
    said = _said(comparison, clean.compare(~raw.off_diagonal, raw.off_diagonal))
    numbers = f"{said}; above the mean of its row for {above} of {count(len(rows), 'model')}"
    return Claim(claim, by_test(comparison.difference["value"], comparison.p), numbers)


def _asymmetric(transfer: AttackTransfer) -> Claim:
    claim, asymmetry = "transfer is not symmetric: r(s, t) differs from r(t, s)", transfer.asymmetry
    if asymmetry.p is None:
        return Claim(claim, None, "no pair of models was measured both ways")
    numbers = (
        f"mean difference {_points(asymmetry.mean_difference['value'])} over {count(asymmetry.pairs, 'pair')}, "
        f"{_points(asymmetry.by_chance)} if sources and targets change places at random; {p_value(asymmetry.p)}"
    )
    return Claim(claim, by_test(asymmetry.mean_difference["value"], asymmetry.p), numbers)


def _pretrained(raw: Resampled) -> Claim:
    claim = "models with pre-trained embeddings or weights are more robust than word models that begin at random"
    everything, random = np.ones(len(raw.models), dtype=np.bool_), _of_class(raw, RANDOM)
    comparisons: dict[str, Comparison] = {}
    for name in PRETRAINED:
        targets = _of_class(raw, name)
        if targets.any() and random.any():
            first, second = (raw.cells(everything, kind, own=False) for kind in (targets, random))
            comparisons[name] = raw.compare(first, second)
    comparisons = {name: comparison for name, comparison in comparisons.items() if all(comparison.cells)}
    if not comparisons:
        missing = "pre-trained models" if random.any() else "word models that begin at random"
        return Claim(claim, None, f"there are no {missing} in this study")
    verdicts = [by_test(-(entry.difference["value"] or 0.0), entry.p) for entry in comparisons.values()]
    random_rate = plain_percent(next(iter(comparisons.values())).second)
    parts = [f"{name} {plain_percent(entry.first)} ({_p(entry.p)})" for name, entry in comparisons.items()]
    return Claim(claim, all_of(verdicts), f"as targets: {RANDOM} {random_rate}; {', '.join(parts)}")


def _spreads_more(numbers: TransferNumbers) -> Claim:
    claim = "transformers spread their attention over more words than other models"
    family = None if numbers.spread is None else numbers.spread.families.get(BERT_FAMILY)
    if family is None or family.spread is None or family.others_spread is None:
        what = (
            "word importance was not measured" if numbers.spread is None else "there are no transformers, or no others"
        )
        return Claim(claim, None, what)
    said = (
        f"spread {family.spread:.3f} against {family.others_spread:.3f} on {count(family.texts, 'text')} "
        f"(0: one word, 1: all alike); {_p(family.p)}"
    )
    return Claim(claim, by_test(family.difference["value"], family.p), said)


def _overfits(raw: Mapping[str, Resampled]) -> Claim:
    claim = "pwws overfits to its source more than the genetic attack: its rates move further from the base rate"
    found = {
        name: next((key for key in raw if key.partition(":")[0].partition("@")[0] == name), None)
        for name in (PWWS, GENETIC)
    }
    missing = [name for name, key in found.items() if key is None]
    if missing:
        return Claim(claim, None, f"the study has no attack {' and no attack '.join(missing)}")
    effects = [_mean_effect(measure_effects(raw[key])) for key in found.values() if key is not None]
    (first, first_drawn), (second, second_drawn) = effects
    difference = centred_interval(first - second, first_drawn - second_drawn)
    if difference["value"] is None:
        return Claim(claim, None, "no two models of the zoo differ in one factor and have a second training")
    p = differs_from_zero(first - second, first_drawn - second_drawn)
    numbers = f"mean effect of the factors {first:.3f} against {second:.3f}; {_p(p)}"
    return Claim(claim, by_test(difference["value"], p), numbers)


def _mean_effect(effects: Mapping[str, Effect]) -> tuple[float, NDArray[np.floating]]:
    """The mean over the factors that there are."""
    measured = [effect for effect in effects.values() if effect.pairs]
    if not measured:
        return float("nan"), np.array([np.nan])
    return float(np.mean([effect.value for effect in measured])), np.mean([e.drawn for e in measured], axis=0)


def _said(raw: Comparison, clean: Comparison) -> str:
    """Two means with the test of their difference, and what it is on texts that the target gets right before."""
    return (
        f"{plain_percent(raw.first)} against {plain_percent(raw.second)} ({_p(raw.p)}); on texts that the target gets "
        f"right before {plain_percent(clean.first)} against {plain_percent(clean.second)} ({_p(clean.p)})"
    )


def _p(p: float | None) -> str:
    return "no test" if p is None else p_value(p)


def _points(value: float | None) -> str:
    return f"{number(None if value is None else 100 * value)} points"
