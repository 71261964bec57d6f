"""What successes do inside a model: for gs-ec attention before and after, hidden vectors layer by layer and sentence
vectors (Figures 2 and 4), for asmin-ec and asmax-ec attention (Figure 1); and the check of Theorem 1 on the model's
weights.

Each text is measured once and kept in the study's store, so that a study is analysed again without its models.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from pydantic import TypeAdapter

from stockade.core.attention import attention_of_words
from stockade.core.errors import ModelError
from stockade.core.pairs import Side, Sides
from stockade.core.protocols import (
    AttentionPieces,
    AttentionQuery,
    AttentiveClassifier,
    Classifier,
    RepresentingClassifier,
)
from stockade.core.records import Record
from stockade.core.text import Text
from stockade.experiment.progress import Observer, Progress
from stockade.experiment.store import Codec, ResultStore
from stockade.studies.attention import theorem
from stockade.studies.attention.inputs import GREEDY_EC, Victim

_THEOREM = "theorem"
"""The part of the store with the check of Theorem 1, by model."""
_REAL_VECTORS = 2_000
_DIGITS = 6


@dataclass(frozen=True, slots=True)
class AttentionView:
    """Whose attention counts, and what that of a word of several pieces is; see `OneWord`."""

    layer: int = 0
    query: AttentionQuery = "mean"
    pieces: AttentionPieces = "max"


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
    side
        The side of a pair that the word is in.
    pieces
        How many pieces the model reads of the word and of its replacement; None where that cannot be seen.
    attention
        None if the model does not show any. For gs-ec the shares of words, which are sums over pieces; for the
        attacks by attention the numbers by which they choose.
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
    side: Side | None = None
    pieces: tuple[int, int] | None = None
    attention: Attention | None = None
    layers: tuple[tuple[float | None, ...], ...] | None = None
    relative_change: float | None = None

    @property
    def keeps_length(self) -> bool:
        """Whether the new word has as many pieces as the old one, as far as is known."""
        return self.pieces is None or self.pieces[0] == self.pieces[1]

    @property
    def unmeasured(self) -> TextChange:
        """The same text before anything was measured."""
        return dataclasses.replace(self, pieces=None, attention=None, layers=None, relative_change=None)


CODEC: Codec[TextChange] = Codec(dataclasses.asdict, TypeAdapter(TextChange).validate_python)


def changed_texts(records: Sequence[Record], sides: Sides = "hypothesis") -> Iterator[tuple[TextChange, Text, Text]]:
    """Each success in which exactly one word is replaced, not measured yet, with both texts.

    Parameters
    ----------
    records
        The successes.
    sides
        The sides of pairs that were attacked.
    """
    for record in records:
        before = Text.of(record.original_input, sides)
        if len(record.edits) == 1 and record.edits[0].op == "replace":
            edit = record.edits[0]
            sought = [stretch for stretch in before.stretches if edit.side in (None, stretch.side)]
            if not sought or edit.index >= len(sought[-1].words):
                continue
            index = sought[-1].words[edit.index]
            after = before.replace(index, edit.after)
            if after.input == record.adversarial_input:
                change = TextChange(
                    id=record.id,
                    label=record.label,
                    prediction=record.adversarial_prediction,
                    words=before.words,
                    index=index,
                    replacement=after.words[index],
                    side=edit.side,
                )
                yield change, before, after


def read_changes(store: ResultStore, model: str, attack: str = GREEDY_EC) -> dict[str, TextChange]:
    """What was measured of a model under an attack, by text."""
    return {change.id: change for change in map(CODEC.read, store.documents(_part(model, attack)))}


def read_theorem(store: ResultStore, model: str) -> theorem.TheoremCheck | None:
    """The check of Theorem 1 on a model; None if there is none yet."""
    document = store.get(_THEOREM, model)
    return None if document is None else theorem.CODEC.read(document)


def measure_inside(
    store: ResultStore,
    victim: Victim,
    load: Callable[[], Classifier],
    *,
    successes: Mapping[str, Sequence[Record]],
    texts: Sequence[Text],
    samples: int,
    view: AttentionView | None = None,
    sides: Sides = "hypothesis",
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
        The successes of gs-ec, and of attacks whose attention is shown.
    texts
        The texts whose vectors Theorem 1 is checked on.
    samples
        How often that check draws.
    view
        Whose attention counts.
    sides
        The sides of pairs that were attacked.
    observer
        Called after each text.
    """
    view = view or AttentionView()
    for attack, records in successes.items():
        part, measure = _part(victim.name, attack), _measure if attack == GREEDY_EC else _measure_attention
        pairs, stored = list(changed_texts(records, sides)), store.ids(part)
        done = len(stored)
        for position, (change, before, after) in enumerate(pairs):
            if change.id in stored:
                continue
            document = CODEC.encode(measure(load(), victim, view, change, before, after))
            store.add(part, change.id, document, position=position)
            done += 1
            if observer is not None:
                observer(Progress(part=part, done=done, total=len(pairs)))
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


def _part(model: str, attack: str = GREEDY_EC) -> str:
    return f"{model}: inside" if attack == GREEDY_EC else f"{model}: attention of {attack}"


def _measure(
    model: Classifier, victim: Victim, view: AttentionView, change: TextChange, before: Text, after: Text
) -> TextChange:
    change = _measure_attention(model, victim, dataclasses.replace(view, pieces="sum"), change, before, after)
    relative = None
    if isinstance(model, RepresentingClassifier):
        _, vectors = model.represent([before.input, after.input])
        (relative,) = relative_changes(vectors[:1], vectors[1:])
    pieces = layers = None
    if victim.without_layers is None:
        pieces, layers = _pieces(model, change.index, before, after), _layers(model, before, after)
    return dataclasses.replace(change, pieces=pieces, layers=layers, relative_change=relative)


def _measure_attention(
    model: Classifier, victim: Victim, view: AttentionView, change: TextChange, before: Text, after: Text
) -> TextChange:
    if victim.without_attention is not None or not isinstance(model, AttentiveClassifier):
        return change
    scores = attention_of_words(model, [before, after], view.layer, view.query, view.pieces)
    old, new = (tuple(round(float(score), _DIGITS) for score in words) for words in scores)
    return dataclasses.replace(change, attention=Attention(old, new))


def _pieces(model: Classifier, index: int, before: Text, after: Text) -> tuple[int, int]:
    """Of how many pieces a word and its replacement are."""
    from stockade.models.huggingface import HuggingFaceClassifier
    from stockade.models.internals import pieces_by_word

    assert isinstance(model, HuggingFaceClassifier)
    old, new = pieces_by_word(model, [before, after])
    return old[index], new[index]


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
