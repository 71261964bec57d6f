"""Which words attention points at, and how many of them a model reads in several pieces.

An attack by attention must say what the attention of a word of several pieces is. By their sum, long words look
attended: AS-MAX then measures how a model spells a word rather than how it reads it. So the study says, for each rule,
how often the word that it chooses has several pieces, and how many words do at all.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter

from stockade.attacks.one_word import attended_word
from stockade.core.attention import JOINS
from stockade.core.protocols import AttentionPieces, Classifier, PieceAttentiveClassifier
from stockade.core.statistics import wilson
from stockade.core.text import Text
from stockade.experiment.store import Codec, ResultStore
from stockade.report.numbers import Interval
from stockade.studies.attention.inputs import Victim
from stockade.studies.attention.inside import AttentionView

RULES: tuple[AttentionPieces, ...] = get_args(AttentionPieces)
Pieces = Sequence[float] | NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class WordChoice:
    """The words of one text that attention points at.

    Parameters
    ----------
    id
        The text.
    pieces
        Of how many pieces each word is; 0 for one that the model does not read.
    least, most
        By each rule the word with the least and with the most attention.
    """

    id: str
    pieces: tuple[int, ...]
    least: Mapping[str, int]
    most: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class PieceShares:
    """How often words have several pieces.

    Parameters
    ----------
    texts, words
        How many there are.
    all_words
        The share of all words.
    asmin, asmax
        By each rule the share of the words that these attacks choose.
    """

    texts: int
    words: int
    all_words: Interval
    asmin: Mapping[str, Interval]
    asmax: Mapping[str, Interval]


CODEC: Codec[WordChoice] = Codec(dataclasses.asdict, TypeAdapter(WordChoice).validate_python)


def read_choices(store: ResultStore, model: str) -> dict[str, WordChoice]:
    """What was measured of a model, by text."""
    return {choice.id: choice for choice in map(CODEC.read, store.documents(_part(model)))}


def measure_choices(
    store: ResultStore, victim: Victim, load: Callable[[], Classifier], texts: Mapping[str, Text], view: AttentionView
) -> None:
    """Find the words that attention points at in the texts that the store does not hold yet.

    Parameters
    ----------
    store
        Where they are kept.
    victim
        What is known of the model.
    load
        Loads the model, if there is something to measure.
    texts
        The texts by their ids.
    view
        Whose attention counts; every rule for pieces is tried.
    """
    if victim.without_attention is not None:
        return
    stored = store.ids(_part(victim.name))
    for position, (id, text) in enumerate(texts.items()):
        if id in stored or not len(text):
            continue
        model = load()
        if not isinstance(model, PieceAttentiveClassifier):
            return
        (pieces,) = model.piece_attention([text], view.layer, view.query)
        store.add(_part(victim.name), id, CODEC.encode(choose(id, pieces)), position=position)


def choose(id: str, pieces: Sequence[Pieces]) -> WordChoice:
    """The words that attention points at, from the attention of every piece of every word."""
    counts = tuple(map(len, pieces))
    places = [index for index, count in enumerate(counts) if count]
    least: dict[str, int] = {}
    most: dict[str, int] = {}
    for rule in RULES:
        scores = [float(JOINS[rule](word)) if len(word) else 0.0 for word in pieces]
        low, high = (attended_word(scores, places, most=highest) for highest in (False, True))
        if low is not None and high is not None:
            least[rule], most[rule] = low, high
    return WordChoice(id, counts, least, most)


def piece_shares(choices: Sequence[WordChoice]) -> PieceShares | None:
    """How often the words that are chosen have several pieces; None if nothing was measured."""
    measured = [choice for choice in choices if choice.most]
    if not measured:
        return None
    counts = [count for choice in measured for count in choice.pieces if count]
    several = sum(count > 1 for count in counts)
    asmin: dict[str, Interval] = {
        rule: _several([(choice, choice.least[rule]) for choice in measured]) for rule in RULES
    }
    asmax: dict[str, Interval] = {
        rule: _several([(choice, choice.most[rule]) for choice in measured]) for rule in RULES
    }
    return PieceShares(len(measured), len(counts), wilson(several, len(counts)), asmin, asmax)


def _several(chosen: Sequence[tuple[WordChoice, int]]) -> Interval:
    """How many of these words have several pieces."""
    return wilson(sum(choice.pieces[word] > 1 for choice, word in chosen), len(chosen))


def _part(model: str) -> str:
    return f"{model}: choices"
