"""Word-importance maps across models (the transfer paper, Figures 5 and 6), and how far models spread their attention.

The paper shows one text and says that transformers look at more words than other models. Here the spread of each
model's importances (`word_importance.Importances.spread`) is measured on many texts, and families of models are
compared text by text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from stockade.report.numbers import Interval
from stockade.studies.records import bootstrap_mean
from stockade.studies.transfer.word_importance import Importances, SubstituteDrops
from stockade.studies.transferability.resampling import RESAMPLES, at_least

_SEVERAL = 3
"""A word with fewer substitutes makes no map to look at, if another has more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilySpread:
    """A family of models against all others, on the texts that models of both get right.

    Parameters
    ----------
    models, others
        How many there are of each.
    texts
        How many texts could be compared.
    spread, others_spread
        The means over those texts, each of which counts once.
    difference, p
        Of the two, text by text; p by random signs of the differences.
    """

    models: int
    others: int
    texts: int
    spread: float | None
    others_spread: float | None
    difference: Interval
    p: float | None


@dataclass(frozen=True, slots=True)
class Spread:
    """How evenly models spread their attention over words.

    Parameters
    ----------
    texts
        How many texts were measured.
    models
        The mean spread of each model over the texts that it gets right.
    families
        Families against all others.
    """

    texts: int
    models: Mapping[str, Interval]
    families: Mapping[str, FamilySpread]


@dataclass(frozen=True, slots=True, kw_only=True)
class WordMap:
    """What the words of a text, and substitutes for one of them, are worth to each model.

    Parameters
    ----------
    id, label
        The text, by name, and its true class.
    words
        Its words.
    models
        The rows of what follows.
    importances
        For each model the importance of each word.
    replaced
        The index of the word that matters most to the mean of the models, of those with several substitutes; None if
        no word has any.
    substitutes
        What may replace it.
    drops
        For each model what each substitute does.
    """

    id: str
    label: str
    words: tuple[str, ...]
    models: tuple[str, ...]
    importances: tuple[tuple[float | None, ...], ...]
    replaced: int | None
    substitutes: tuple[str, ...]
    drops: tuple[tuple[float | None, ...], ...]


def analyse_spread(
    measured: Mapping[str, Sequence[Importances]], family_of: Callable[[str], str], families: Sequence[str]
) -> Spread | None:
    """The spread of every model, and of families against the others; None if nothing was measured.

    Parameters
    ----------
    measured
        The importances of each model.
    family_of
        The family of a model by its name.
    families
        The families to compare; those without a model, or without any other model, are left out.
    """
    spreads = {
        model: {text.id: text.spread for text in texts if text.right and text.spread is not None}
        for model, texts in measured.items()
    }
    if not any(spreads.values()):
        return None
    compared = {family: _compare(spreads, lambda name, family=family: family_of(name) == family) for family in families}  # type: ignore[misc]
    return Spread(
        texts=len({text.id for texts in measured.values() for text in texts}),
        models={model: bootstrap_mean(list(values.values())) for model, values in spreads.items()},
        families={family: spread for family, spread in compared.items() if spread is not None},
    )


def _compare(spreads: Mapping[str, Mapping[str, float]], belongs: Callable[[str], bool]) -> FamilySpread | None:
    members = [values for model, values in spreads.items() if belongs(model)]
    others = [values for model, values in spreads.items() if not belongs(model)]
    if not members or not others:
        return None
    pairs = []
    for text in dict.fromkeys(text for values in members for text in values):
        inside = [values[text] for values in members if text in values]
        outside = [values[text] for values in others if text in values]
        if outside:
            pairs.append((fmean(inside), fmean(outside)))
    differences = [first - second for first, second in pairs]
    return FamilySpread(
        models=len(members),
        others=len(others),
        texts=len(pairs),
        spread=round(fmean(first for first, _ in pairs), 6) if pairs else None,
        others_spread=round(fmean(second for _, second in pairs), 6) if pairs else None,
        difference=bootstrap_mean(differences),
        p=_sign_flip_p(differences),
    )


def _sign_flip_p(differences: Sequence[float], seed: int = 0) -> float | None:
    """How often the mean is as far from 0 if each difference could as well have had the other sign."""
    if len(differences) < 2:
        return None
    values = np.asarray(differences)
    signs = np.random.default_rng(seed).choice((-1.0, 1.0), size=(RESAMPLES, len(values)))
    return at_least(abs(float(values.mean())), np.abs((signs * values).mean(axis=1)))


def make_map(
    id: str,
    label: str,
    words: Sequence[str],
    importances: Mapping[str, Importances],
    substitutes: Mapping[str, SubstituteDrops],
) -> WordMap:
    """The map of one text.

    Parameters
    ----------
    id, label, words
        The text.
    importances
        Those of each model, in the order of the rows.
    substitutes
        What substitutes do to each model; models without them have no numbers there.
    """
    models = tuple(importances)
    columns = [[importances[model].drops[index] for model in models] for index in range(len(words))]
    means = [fmean([drop for drop in column if drop is not None] or [0.0]) for column in columns]
    replaceable = {index: list(drops) for known in substitutes.values() for index, drops in known.words.items()}
    several = [index for index, candidates in replaceable.items() if len(candidates) >= _SEVERAL] or list(replaceable)
    replaced = max(several, key=lambda index: means[index], default=None)
    candidates = () if replaced is None else tuple(replaceable[replaced])
    return WordMap(
        id=id,
        label=label,
        words=tuple(words),
        models=models,
        importances=tuple(importances[model].drops for model in models),
        replaced=replaced,
        substitutes=candidates,
        drops=tuple(tuple(_drop(substitutes.get(model), replaced, word) for word in candidates) for model in models),
    )


def _drop(known: SubstituteDrops | None, index: int | None, word: str) -> float | None:
    return None if known is None or index is None else known.words.get(index, {}).get(word)
