"""What the successes of gs-ec do inside a model: attention before and after, hidden vectors layer by layer, sentence
vectors (Figures 1, 2 and 4); and the check of Theorem 1 on the model's weights.

Each text is measured once and kept in the study's store, so that a study is analysed again without its models. Means
over successes have 95 % bootstrap intervals.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from pydantic import TypeAdapter

from stockade.core.errors import ModelError
from stockade.core.protocols import AttentiveClassifier, Classifier, RepresentingClassifier
from stockade.core.records import Record
from stockade.core.text import Text
from stockade.experiment.progress import Observer, Progress
from stockade.experiment.store import Codec, ResultStore
from stockade.report.numbers import Interval
from stockade.studies.attention import theorem
from stockade.studies.attention.inputs import Victim
from stockade.studies.records import bootstrap_mean, mean

FARTHEST = 10
"""Words up to this far from the replaced one are told apart."""
_THEOREM = "theorem"
"""The part of the store with the check of Theorem 1, by model."""
_REAL_VECTORS = 2_000
_DIGITS = 6


@dataclass(frozen=True, slots=True)
class Attention:
    """How much attention each word gets."""

    before: tuple[float, ...]
    after: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TextChange:
    """What one replaced word changes inside a model.

    Parameters
    ----------
    id, label, prediction
        The text, its class, and what the model says after the change.
    words, index, replacement
        Its words, which of them is replaced, and by what.
    attention
        None if the model does not show any.
    layers
        For each layer how far each word's vector moves; None for words that the model does not read.
    relative_change
        R_e = ‖z − z'‖₂ / ‖z‖₂ of the sentence vector z.
    """

    id: str
    label: str
    prediction: str | None
    words: tuple[str, ...]
    index: int
    replacement: str
    attention: Attention | None = None
    layers: tuple[tuple[float | None, ...], ...] | None = None
    relative_change: float | None = None


CODEC: Codec[TextChange] = Codec(dataclasses.asdict, TypeAdapter(TextChange).validate_python)


def changed_texts(records: Sequence[Record]) -> Iterator[tuple[TextChange, Text, Text]]:
    """Each success in which exactly one word is replaced, not measured yet, with both texts."""
    for record in records:
        before = Text.parse(record.original, record.premise)
        if len(record.edits) == 1 and record.edits[0].op == "replace":
            index = record.edits[0].index
            after = before.replace(index, record.edits[0].after)
            if str(after) == record.adversarial:
                change = TextChange(
                    id=record.id,
                    label=record.label,
                    prediction=record.adversarial_prediction,
                    words=before.words,
                    index=index,
                    replacement=after.words[index],
                )
                yield change, before, after


def read_changes(store: ResultStore, model: str) -> dict[str, TextChange]:
    """What was measured of a model, by text."""
    return {change.id: change for change in map(CODEC.read, store.documents(_part(model)))}


def read_theorem(store: ResultStore, model: str) -> theorem.TheoremCheck | None:
    """The check of Theorem 1 on a model; None if there is none yet."""
    document = store.get(_THEOREM, model)
    return None if document is None else theorem.CODEC.read(document)


def measure_inside(
    store: ResultStore,
    victim: Victim,
    load: Callable[[], Classifier],
    *,
    successes: Sequence[Record],
    texts: Sequence[Text],
    samples: int,
    observer: Observer | None = None,
) -> None:
    """Measure what the store does not hold yet, and keep it text by text.

    Parameters
    ----------
    store
        Where it is kept.
    victim
        What is known of the model.
    load
        Loads the model, if there is something to measure.
    successes
        The successes of gs-ec.
    texts
        The texts whose vectors Theorem 1 is checked on.
    samples
        How often that check draws.
    observer
        Called after each text.
    """
    pairs, stored = list(changed_texts(successes)), store.ids(_part(victim.name))
    done = len(stored)
    for position, (change, before, after) in enumerate(pairs):
        if change.id in stored:
            continue
        document = CODEC.encode(_measure(load(), victim, change, before, after))
        store.add(_part(victim.name), change.id, document, position=position)
        done += 1
        if observer is not None:
            observer(Progress(part=_part(victim.name), done=done, total=len(pairs)))
    if victim.without_self_attention is None and store.get(_THEOREM, victim.name) is None:
        check = _check_theorem(load(), texts, samples)
        store.add(_THEOREM, victim.name, theorem.CODEC.encode(check))


def relative_changes(before: ArrayLike, after: ArrayLike) -> list[float | None]:
    """‖z − z'‖₂ / ‖z‖₂ row by row; None where z is zero."""
    old, new = np.asarray(before, dtype=np.float64), np.asarray(after, dtype=np.float64)
    lengths, moves = np.linalg.norm(old, axis=1), np.linalg.norm(new - old, axis=1)
    return [
        round(float(move / length), _DIGITS) if length else None for move, length in zip(moves, lengths, strict=True)
    ]


def _part(model: str) -> str:
    return f"{model}: inside"


def _measure(model: Classifier, victim: Victim, change: TextChange, before: Text, after: Text) -> TextChange:
    attention, relative = None, None
    if victim.without_attention is None and isinstance(model, AttentiveClassifier):
        old, new = model.word_attention([before, after], 0, "mean")
        attention = Attention(*(tuple(round(float(score), _DIGITS) for score in scores) for scores in (old, new)))
    if isinstance(model, RepresentingClassifier):
        _, vectors = model.represent([before.input, after.input])
        (relative,) = relative_changes(vectors[:1], vectors[1:])
    layers = _layers(model, before, after) if victim.without_layers is None else None
    return dataclasses.replace(change, attention=attention, layers=layers, relative_change=relative)


def _layers(model: Classifier, before: Text, after: Text) -> tuple[tuple[float | None, ...], ...] | None:
    """How far each word's vector moves in each layer."""
    from stockade.models.huggingface import HuggingFaceClassifier
    from stockade.models.internals import hidden_by_word

    assert isinstance(model, HuggingFaceClassifier)
    try:
        old, new = hidden_by_word(model, [before, after])
    except ModelError:
        return None
    return tuple(
        _rounded(np.linalg.norm(layer_after.astype(np.float64) - layer_before, axis=1))
        for layer_before, layer_after in zip(old, new, strict=True)
    )


def _check_theorem(model: Classifier, texts: Sequence[Text], samples: int) -> theorem.TheoremCheck:
    from stockade.models.huggingface import HuggingFaceClassifier
    from stockade.models.internals import attention_inputs, self_attention

    assert isinstance(model, HuggingFaceClassifier)
    real = attention_inputs(model, [text for text in texts if len(text)], _REAL_VECTORS)
    return theorem.check_theorem(self_attention(model), real, samples)


def _rounded(values: ArrayLike) -> tuple[float | None, ...]:
    """For JSON, which has no NaN."""
    return tuple(None if np.isnan(value) else round(float(value), _DIGITS) for value in np.asarray(values))


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
        The same, divided by the mean attention of those words, which makes models comparable.
    replaced
        The change at the replaced word.
    moved
        Half the sum of all changes.
    """

    texts: int
    others: Interval
    relative: Interval
    replaced: Interval
    moved: Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingChange:
    """The mean change of a word's vector by layer and by distance from the replaced word.

    Parameters
    ----------
    texts
        How many successes there are.
    distances
        Of the columns.
    counts
        How many texts have a word there.
    layers
        A row for each layer, from the input; None where no text has a word.
    """

    texts: int
    distances: tuple[int, ...]
    counts: tuple[int, ...]
    layers: tuple[tuple[float | None, ...], ...]


@dataclass(frozen=True, slots=True)
class RelativeChange:
    """R_e: how many successes have it, and its mean."""

    texts: int
    mean: Interval


def attention_shift(changes: Sequence[TextChange]) -> AttentionShift:
    """Means over the successes that have attention."""
    parts: dict[str, list[float]] = {"others": [], "relative": [], "replaced": [], "moved": []}
    for change in changes:
        if change.attention is None:
            continue
        before, after = change.attention.before, change.attention.after
        moves = [abs(new - old) for old, new in zip(before, after, strict=True)]
        others = [move for index, move in enumerate(moves) if index != change.index]
        parts["replaced"].append(moves[change.index])
        parts["moved"].append(sum(moves) / 2)
        if others:
            parts["others"].append(sum(others) / len(others))
            attended = sum(old for index, old in enumerate(before) if index != change.index)
            if attended > 0:
                parts["relative"].append(sum(others) / attended)
    means: Mapping[str, Interval] = {name: bootstrap_mean(values) for name, values in parts.items()}
    return AttentionShift(texts=len(parts["moved"]), **means)


def embedding_change(changes: Sequence[TextChange]) -> EmbeddingChange | None:
    """Means over the successes whose hidden vectors were read; None if there is none."""
    layered = [(change, change.layers) for change in changes if change.layers]
    if not layered:
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
        for layer in range(len(layered[0][1]))
    ]
    return EmbeddingChange(
        texts=len(layered),
        distances=distances,
        counts=tuple(map(len, moves[0])),
        layers=tuple(tuple(map(mean, row)) for row in moves),
    )


def relative_embedding_change(changes: Sequence[TextChange]) -> RelativeChange:
    """The mean of R_e over successes."""
    values = [change.relative_change for change in changes if change.relative_change is not None]
    return RelativeChange(len(values), bootstrap_mean(values))
