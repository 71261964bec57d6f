"""Means over successes of what they change inside a model: attention, hidden vectors, the sentence vector."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from stockade.report.numbers import Interval
from stockade.studies.attention.inside import TextChange
from stockade.studies.records import bootstrap_mean, mean

FARTHEST = 10
"""Words up to this far from the replaced one are told apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionShift:
    """How attention changes over all successes.

    Parameters
    ----------
    texts
        How many successes have attention.
    others
        The mean absolute change of a word that was not replaced.
    relative
        The same, divided by the mean attention of those words; not bounded, as they may have had next to none.
    replaced
        The change at the replaced word.
    moved
        Half the sum of all changes, those of special tokens among them. It is between 0 and 1: the share of all
        attention that went elsewhere.
    """

    texts: int
    others: Interval
    relative: Interval
    replaced: Interval
    moved: Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingChange:
    """The mean change of a word's vector by layer and by distance from the replaced word.

    Only successes count whose new word has as many pieces as the old one: behind any other, all positions shift, and
    every vector moves for that reason alone.

    Parameters
    ----------
    texts
        How many successes are averaged.
    left_out
        How many have a new word of another number of pieces.
    distances
        Of the columns.
    counts
        How many texts have a word there.
    layers
        A row for each layer, from the input; None where no text has a word.
    """

    texts: int
    left_out: int
    distances: tuple[int, ...]
    counts: tuple[int, ...]
    layers: tuple[tuple[float | None, ...], ...]


@dataclass(frozen=True, slots=True)
class RelativeChange:
    """R_e: how many successes have it, and its mean."""

    texts: int
    mean: Interval


def attention_moved(change: TextChange) -> float | None:
    """The share of attention that one success moves elsewhere; None for a model that shows none.

    Half the sum of all absolute changes. What words do not get, special tokens have: it counts as one token more.
    """
    if change.attention is None:
        return None
    before, after = change.attention.before, change.attention.after
    moves = [abs(new - old) for old, new in zip(before, after, strict=True)]
    return (sum(moves) + abs(sum(after) - sum(before))) / 2


def attention_shift(changes: Sequence[TextChange]) -> AttentionShift:
    """Means over the successes that have attention."""
    parts: dict[str, list[float]] = {"others": [], "relative": [], "replaced": [], "moved": []}
    for change in changes:
        moved = attention_moved(change)
        if change.attention is None or moved is None:
            continue
        before, after = change.attention.before, change.attention.after
        moves = [abs(new - old) for old, new in zip(before, after, strict=True)]
        others = [move for index, move in enumerate(moves) if index != change.index]
        parts["replaced"].append(moves[change.index])
        parts["moved"].append(moved)
        if others:
            parts["others"].append(sum(others) / len(others))
            attended = sum(old for index, old in enumerate(before) if index != change.index)
            if attended > 0:
                parts["relative"].append(sum(others) / attended)
    means: Mapping[str, Interval] = {name: bootstrap_mean(values) for name, values in parts.items()}
    return AttentionShift(texts=len(parts["moved"]), **means)


def embedding_change(changes: Sequence[TextChange]) -> EmbeddingChange | None:
    """Means over the successes whose hidden vectors were read; None if there is none."""
    read = [(change, change.layers) for change in changes if change.layers]
    layered = [(change, layers) for change, layers in read if change.keeps_length]
    if not read:
        return None
    distances = tuple(range(-FARTHEST, FARTHEST + 1))
    moves = [
        [
            [
                move
                for change, layers in layered
                if 0 <= change.index + distance < len(change.words)
                and (move := layers[layer][change.index + distance]) is not None
            ]
            for distance in distances
        ]
        for layer in range(len(read[0][1]))
    ]
    return EmbeddingChange(
        texts=len(layered),
        left_out=len(read) - len(layered),
        distances=distances,
        counts=tuple(map(len, moves[0])),
        layers=tuple(tuple(map(mean, row)) for row in moves),
    )


def relative_embedding_change(changes: Sequence[TextChange]) -> RelativeChange:
    """The mean of R_e over successes."""
    values = [change.relative_change for change in changes if change.relative_change is not None]
    return RelativeChange(len(values), bootstrap_mean(values))
