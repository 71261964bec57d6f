"""Classifiers that average the logits of others: what `ensemble.py` makes of its members.

A member that shows no logits takes part with the logarithms of its probabilities. They differ from its logits by a
constant in each row, which the softmax of the mean does not see. Probabilities below 1e-12 count as 1e-12: a member
that is certain of its class outweighs others, but not without limit.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from stockade.core.masks import Keep
from stockade.core.protocols import (
    Classifier,
    EncodingClassifier,
    Fingerprinted,
    LogitClassifier,
    MaskingClassifier,
    ParallelClassifier,
    Probabilities,
    WindowedClassifier,
)
from stockade.core.text import Text, TextInput
from stockade.engine.batching import TokenBudget, cut_batches, estimated_tokens
from stockade.models.answers import softmax

LEAST_PROBABILITY = 1e-12
_BATCH_TOKENS = 4096


@dataclass(frozen=True, slots=True, eq=False)
class Ensemble:
    """The softmax of the mean of the members' logits; made by `combine`.

    Parameters
    ----------
    members
        The classifiers.
    temperatures
        What the logits of each are divided by.
    columns
        For each member its column of each class, in the order of the first member's classes.
    """

    members: tuple[Classifier, ...]
    temperatures: tuple[float, ...]
    columns: tuple[tuple[int, ...], ...]

    @property
    def labels(self) -> tuple[str, ...]:
        """The classes, in the order of the first member's."""
        return self.members[0].labels

    @property
    def deterministic(self) -> bool:
        """Whether all members are."""
        return all(member.deterministic for member in self.members)

    def predict_proba(self, inputs: Sequence[TextInput]) -> Probabilities:
        """Class probabilities of each text."""
        return softmax(self.mean_logits([predict_logits(member, inputs) for member in self.members]))

    def mean_logits(self, logits: Sequence[Probabilities]) -> Probabilities:
        """The mean of the logits of all members, each divided by its temperature.

        Parameters
        ----------
        logits
            For each member a row per text, in the order of the member's own classes.
        """
        scaled = [
            rows[:, columns] / temperature
            for rows, columns, temperature in zip(logits, self.columns, self.temperatures, strict=True)
        ]
        mean: Probabilities = np.mean(scaled, axis=0)
        return mean

    def visible_words(self, texts: Sequence[Text]) -> list[Sequence[int]]:
        """The words of each text that at least one member reads."""
        ranges = [
            member.visible_words(texts) if isinstance(member, WindowedClassifier) else [text.indices for text in texts]
            for member in self.members
        ]
        return [sorted(set(chain.from_iterable(of_text))) for of_text in zip(*ranges, strict=True)]

    def fingerprint(self) -> str:
        """A hash of the members' fingerprints, the temperatures and how classes were matched."""
        inside = [
            member.fingerprint() if isinstance(member, Fingerprinted) else type(member).__qualname__
            for member in self.members
        ]
        return hashlib.sha256(json.dumps([inside, self.temperatures, self.columns]).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class EncodedParts:
    """A text as each member reads it: tokenised, or as it is where a member tokenises while it predicts.

    Parameters
    ----------
    parts
        One for each member.
    key
        Texts of equal keys are the same to every member.
    length
        The number of tokens for the member to whom the text is longest.
    """

    parts: tuple[Any, ...]
    key: Hashable
    length: int

    def __len__(self) -> int:
        return self.length

    @classmethod
    def joined(cls, read: Sequence[Sequence[Any]]) -> list[EncodedParts]:
        """What each member reads of all texts, text by text."""
        return [
            cls(parts, tuple(_key(part) for part in parts), max(_length(part) for part in parts))
            for parts in zip(*read, strict=True)
        ]


class EncodingEnsemble(Ensemble):
    """An ensemble that tokenises apart from predicting: each member reads a text once, and equal ones are one row."""

    __slots__ = ()

    def encode(self, inputs: Sequence[TextInput]) -> list[EncodedParts]:
        """Each text tokenised by every member that does so apart from predicting."""
        return EncodedParts.joined(
            [member.encode(inputs) if isinstance(member, EncodingClassifier) else inputs for member in self.members]
        )

    def predict_encoded(self, batch: Sequence[EncodedParts]) -> Probabilities:
        """Class probabilities of encoded texts."""
        return softmax(self.logits_encoded(batch))

    def logits_encoded(self, batch: Sequence[EncodedParts]) -> Probabilities:
        """Mean logits of encoded texts; up to a constant in each row where a member shows probabilities only."""
        if not batch:
            return np.zeros((0, len(self.labels)))
        return self.mean_logits(
            [_distinct_logits(member, [text.parts[at] for text in batch]) for at, member in enumerate(self.members)]
        )

    def predict_proba(self, inputs: Sequence[TextInput]) -> Probabilities:
        """Class probabilities of each text, computed in batches of like lengths."""
        return softmax(predict_logits(self, inputs))

    @property
    def workers(self) -> int:
        """As many batches at once as the member that computes most, if all can compute several."""
        workers = [member.workers if isinstance(member, ParallelClassifier) else None for member in self.members]
        return 1 if None in workers else max(number for number in workers if number is not None)

    def start_worker(self) -> None:
        """Prepare a worker thread for the members that compute several batches at once."""
        for member in self.members:
            if isinstance(member, ParallelClassifier) and member.workers > 1:
                member.start_worker()


class MaskingEnsemble(EncodingEnsemble):
    """An ensemble whose members all hide words behind a mask of their own."""

    __slots__ = ()

    def encode_masked(self, words: Sequence[str], premise: str | None, keep: Keep) -> list[EncodedParts]:
        """Copies of a text with words hidden, as each member reads them."""
        masking = [member for member in self.members if isinstance(member, MaskingClassifier)]
        return EncodedParts.joined([member.encode_masked(words, premise, keep) for member in masking])


def predict_logits(classifier: Classifier, inputs: Sequence[TextInput]) -> Probabilities:
    """The logits of texts; of a classifier that shows none, the logarithms of its probabilities.

    Parameters
    ----------
    classifier
        Any classifier.
    inputs
        The texts; those of a classifier that tokenises apart are computed in batches of like lengths.
    """
    if not isinstance(classifier, LogitClassifier):
        return log_probabilities(classifier.predict_proba(inputs))
    encoded = classifier.encode(inputs)
    rows = np.zeros((len(encoded), len(classifier.labels)))
    for indices in cut_batches([len(item) for item in encoded], TokenBudget(_BATCH_TOKENS)):
        rows[indices] = classifier.logits_encoded([encoded[index] for index in indices])
    return rows


def log_probabilities(probabilities: Probabilities) -> Probabilities:
    """Logarithms of probabilities, none of which counts as less than `LEAST_PROBABILITY`; NaN stays NaN."""
    logarithms: Probabilities = np.log(np.maximum(probabilities, LEAST_PROBABILITY))
    return logarithms


def _key(part: Any) -> Hashable:
    return part if isinstance(part, str | tuple) else part.key


def _length(part: Any) -> int:
    return estimated_tokens(part) if isinstance(part, str | tuple) else len(part)


def _distinct_logits(member: Classifier, parts: Sequence[Any]) -> Probabilities:
    """The logits of what a member reads; texts that look alike to it, though not to others, are computed once."""
    distinct = {_key(part) if member.deterministic else at: part for at, part in enumerate(parts)}
    row_of = {key: row for row, key in enumerate(distinct)}
    batch = list(distinct.values())
    if isinstance(member, LogitClassifier):
        logits = member.logits_encoded(batch)
    elif isinstance(member, EncodingClassifier):
        logits = log_probabilities(member.predict_encoded(batch))
    else:
        logits = log_probabilities(member.predict_proba(batch))
    rows: Probabilities = logits[[row_of[_key(part) if member.deterministic else at] for at, part in enumerate(parts)]]
    return rows
