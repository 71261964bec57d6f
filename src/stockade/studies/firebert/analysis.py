"""The numbers of the study of FireBERT's neighbourhoods (section 3.4), and what the paper says of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from stockade.core.statistics import wilson
from stockade.report.numbers import Interval, plain_percent
from stockade.studies.claims import Claim, by_interval
from stockade.studies.firebert.neighbourhoods import Neighbourhood, TextPair
from stockade.studies.records import bootstrap_mean

HALF = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class SideNumbers:
    """What one model says around the originals, or around the adversarial texts.

    Parameters
    ----------
    texts
        How many.
    right
        The share of the texts themselves that have the true class.
    near, near_majority
        The mean share of neighbours with which a text has its true class, and the share of texts for which most of
        them, the text among them, have it.
    noised, noised_majority
        The same for copies with noise.
    """

    texts: int
    right: Interval
    near: Interval
    near_majority: Interval
    noised: Interval
    noised_majority: Interval


@dataclass(frozen=True, slots=True)
class ModelNumbers:
    """What one model says around originals and adversarial texts."""

    model: str
    original: SideNumbers
    adversarial: SideNumbers


@dataclass(frozen=True, slots=True, kw_only=True)
class FirebertNumbers:
    """Every number of the study.

    Parameters
    ----------
    successes
        Texts that the attack has fooled the first model on; all models are asked around them.
    without_word
        Those in which no important word has neighbours, left out.
    deviation
        Of the noise.
    models
        By model, the attacked one first.
    """

    successes: int
    without_word: int
    deviation: float
    models: tuple[ModelNumbers, ...]


def analyse(pairs: Sequence[TextPair], models: Sequence[str], deviation: float) -> FirebertNumbers:
    """Every number, from what the models say.

    Parameters
    ----------
    pairs
        Every text under every model.
    models
        Their names, the attacked one first.
    deviation
        Of the noise.
    """
    partial = {pair.id for pair in pairs if not (pair.original.near and pair.adversarial.near)}
    whole = [pair for pair in pairs if pair.id not in partial]
    return FirebertNumbers(
        successes=len({pair.id for pair in pairs}),
        without_word=len(partial),
        deviation=deviation,
        models=tuple(
            ModelNumbers(
                model,
                _side([pair for pair in whole if pair.model == model], lambda pair: pair.original),
                _side([pair for pair in whole if pair.model == model], lambda pair: pair.adversarial),
            )
            for model in models
        ),
    )


def _side(pairs: Sequence[TextPair], of: Callable[[TextPair], Neighbourhood]) -> SideNumbers:
    sides = [(of(pair), pair.label) for pair in pairs]
    near = [share for side, label in sides if (share := side.share(label)) is not None]
    noised = [share for side, label in sides if (share := side.noised_share(label)) is not None]
    with_noise = [(side, label) for side, label in sides if side.noised]
    return SideNumbers(
        texts=len(sides),
        right=wilson(sum(side.predicted == label for side, label in sides), len(sides)),
        near=bootstrap_mean(near),
        near_majority=wilson(
            sum(_most([near.predicted for near in side.near], side, label) for side, label in sides), len(sides)
        ),
        noised=bootstrap_mean(noised),
        noised_majority=wilson(sum(_most(side.noised, side, label) for side, label in with_noise), len(with_noise)),
    )


def _most(classes: Sequence[str], side: Neighbourhood, label: str) -> bool:
    """Whether more than half of these and the text itself have the class."""
    together = [side.predicted, *classes]
    return 2 * together.count(label) > len(together)


def check_claims(numbers: FirebertNumbers) -> tuple[Claim, ...]:
    """What section 3.4 says of its example, for all texts: held if a 95 % interval lies above one half.

    Parameters
    ----------
    numbers
        Of the study.
    """
    first, *others = numbers.models
    claims = [
        _claim(
            "around most originals most neighbours of the important word keep the class", first.original.near_majority
        ),
        _claim(
            "around most adversarial texts most neighbours of the important word give the true class back",
            first.adversarial.near_majority,
        ),
        _claim(
            f"around most adversarial texts noise of deviation {numbers.deviation:g} gives the true class back (in the "
            "paper with a tuned deviation; 0.25 is for the picture)",
            first.adversarial.noised_majority,
        ),
    ]
    claims += [
        _claim(f"{entry.model} is right on most of the texts that fool {first.model}", entry.adversarial.right)
        for entry in others
    ]
    return tuple(claims)


def _claim(claim: str, share: Interval) -> Claim:
    low, high = share["low"], share["high"]
    interval = "" if low is None or high is None else f" ({100 * low:.1f}–{100 * high:.1f})"
    return Claim(claim, by_interval(share, HALF), f"{plain_percent(share['value'])}{interval} of the texts")
