"""What rules do to the logits of models: the sums that a rule's salience is the mean of.

    h(x, i -> v) = [f_y(x) - f_y(x')] + sum over z != y of [f_z(x') - f_z(x)],    x' = x with word i replaced by v

Occurrences come in chunks. In each, the original texts and all changed ones are scored together by one member of the
ensemble after the other, every different text once, in the engine's batches. The mean over members of their h is the h
of the mean of their logits, so the sums are kept by member: the rules of a part of an ensemble follow without asking
any model again. That does not hold for the log-softmax of the mean, which has one sum for the whole ensemble.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from stockade.core.errors import SearchStopped
from stockade.core.protocols import Classifier, LogitClassifier, ParallelClassifier, Probabilities
from stockade.core.seeds import derive_seed
from stockade.core.text import Text, TextInput
from stockade.engine.batching import TokenBudget
from stockade.engine.cache import BoundedCache
from stockade.engine.composite import make_scoring
from stockade.engine.language import EmbeddingService, FillingService
from stockade.engine.requests import Draw, Score
from stockade.engine.scoring import Scoring, ScoringService, Verdict
from stockade.engine.services import innermost
from stockade.experiment.inputs import tuning_memory, unique_names
from stockade.experiment.store import Codec, Document, Effort
from stockade.models.ensemble import aligned_columns, name_of
from stockade.models.language import LanguageModels
from stockade.models.mean_logits import Ensemble, log_probabilities
from stockade.workflows.mine.occurrences import Occurrence

ScoreKind = Literal["logits", "log-likelihood"]
CHUNK_OCCURRENCES, CHUNK_CHARACTERS = 2_048, 2_000_000
"""A chunk ends with whichever is reached first: a kill loses at most one, and only one is in memory."""

Sums = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Member:
    """A model of the ensemble that rules are mined with.

    Parameters
    ----------
    name
        What results call it.
    classifier
        The model.
    columns
        Its column of each class, in the order of the first model's classes.
    share
        Its share of the mean.
    temperature
        What its logits are divided by.
    """

    name: str
    classifier: Classifier
    columns: tuple[int, ...]
    share: float
    temperature: float = 1.0

    @property
    def has_logits(self) -> bool:
        """Whether the model shows logits; otherwise the logarithms of its probabilities take their place."""
        return isinstance(self.classifier, LogitClassifier)


def ensemble_members(models: Mapping[str, Classifier]) -> tuple[Member, ...]:
    """The models whose logits are averaged; an ensemble among them takes part by its members.

    Parameters
    ----------
    models
        The models by name; all must have the same classes.
    """
    columns = aligned_columns(list(models.values()), list(models))
    members = []
    for (name, model), of_model in zip(models.items(), columns, strict=True):
        share = 1 / len(models)
        if not isinstance(model, Ensemble):
            members.append(Member(name, model, of_model, share))
            continue
        inside = zip(model.members, model.temperatures, model.columns, strict=True)
        for number, (member, temperature, of_member) in enumerate(inside, 1):
            own_columns = tuple(of_member[column] for column in of_model)
            member_name = f"{name}-{number}-{name_of(member)}"
            members.append(Member(member_name, member, own_columns, share / len(model.members), temperature))
    names = unique_names(member.name for member in members)
    return tuple(
        Member(name, member.classifier, member.columns, member.share, member.temperature)
        for name, member in zip(names, members, strict=True)
    )


@dataclass(frozen=True, slots=True, eq=False)
class ChunkSums:
    """What a chunk adds to the rules that occur in it.

    Parameters
    ----------
    rules
        The numbers of the rules.
    counts
        At how many places of the chunk each was scored.
    sums
        A row per rule, a column per member (or one for the ensemble): the sum of h over those places.
    failed
        How many places could not be scored.
    reason
        Why the first of those could not.
    """

    rules: NDArray[np.int64]
    counts: NDArray[np.int64]
    sums: Sums
    failed: int = 0
    reason: str | None = None


def _encode(chunk: ChunkSums) -> Document:
    return {
        "rules": chunk.rules.tolist(),
        "counts": chunk.counts.tolist(),
        "sums": chunk.sums.tolist(),
        "failed": chunk.failed,
        "reason": chunk.reason,
    }


def _decode(document: Document) -> ChunkSums:
    rules = np.array(document["rules"], dtype=np.int64)
    sums = np.array(document["sums"], dtype=np.float64).reshape(len(rules), -1 if len(rules) else 1)
    counts = np.array(document["counts"], dtype=np.int64)
    return ChunkSums(rules, counts, sums, document["failed"], document["reason"])


CHUNK_CODEC: Codec[ChunkSums] = Codec(_encode, _decode)
"""How a chunk is stored; JSON keeps every digit of the sums."""


def chunked(occurrences: Iterable[Occurrence]) -> Iterator[list[Occurrence]]:
    """Occurrences in chunks whose texts fit into memory together; the same chunks however they are scored.

    Parameters
    ----------
    occurrences
        The occurrences in the order of the texts.
    """
    chunk: list[Occurrence] = []
    characters = 0
    for occurrence in occurrences:
        chunk.append(occurrence)
        characters += len(str(occurrence.text))
        if len(chunk) >= CHUNK_OCCURRENCES or characters >= CHUNK_CHARACTERS:
            yield chunk
            chunk, characters = [], 0
    if chunk:
        yield chunk


class ChunkScorer:
    """Scores chunks with all members of an ensemble and counts what that costs.

    Parameters
    ----------
    members
        The models.
    score
        What h is a difference of: the mean of the logits, or the log-softmax of that mean.
    batch_tokens
        Tokens per batch; tuned for each model if None.
    language
        The language models that a defense around a model may ask.
    seed
        Names the random choices of a randomised model, together with each text.
    """

    def __init__(
        self,
        members: Sequence[Member],
        score: ScoreKind,
        *,
        batch_tokens: int | None = None,
        language: LanguageModels | None = None,
        seed: int = 0,
    ) -> None:
        self._members, self._score, self._seed = members, score, seed
        language = language or LanguageModels()
        self._services = [_scoring(member.classifier, batch_tokens, language) for member in members]
        self._started = time.perf_counter()

    @property
    def effort(self) -> Effort:
        """What was computed so far."""
        return Effort(
            time.perf_counter() - self._started,
            sum(service.model_seconds for service in self._services),
            sum(service.rows for service in self._services),
        )

    def score(self, chunk: Sequence[Occurrence]) -> ChunkSums:
        """The sums of a chunk."""
        originals, changed = [item.text for item in chunk], [item.changed for item in chunk]
        texts = list(dict.fromkeys((*originals, *changed)))
        row_of = {text: row for row, text in enumerate(texts)}
        before, after = [row_of[text] for text in originals], [row_of[text] for text in changed]
        labels = np.array([item.label for item in chunk])
        reason: str | None = None
        logits = []
        for member, service in zip(self._members, self._services, strict=True):
            rows, problem = self._logits(member, service, texts)
            reason = reason or problem
            logits.append(rows / member.temperature)
        changes = np.stack([salience_of(rows[before], rows[after], labels) for rows in self._scored(logits)], axis=1)
        usable = np.logical_and.reduce(np.isfinite(changes), axis=1)
        numbers = np.array([item.rule for item in chunk], dtype=np.int64)[usable]
        rules, place, counts = np.unique(numbers, return_inverse=True, return_counts=True)
        sums = np.zeros((len(rules), changes.shape[1]))
        np.add.at(sums, place, changes[usable])
        return ChunkSums(rules, counts, sums, int((~usable).sum()), None if usable.all() else reason)

    def _scored(self, logits: Sequence[Probabilities]) -> Sequence[Probabilities]:
        """What h is computed from: the logits of each member, or the log-softmax of their mean."""
        if self._score == "logits":
            return logits
        mean = sum(member.share * rows for member, rows in zip(self._members, logits, strict=True))
        return [log_softmax(np.asarray(mean))]

    def _logits(self, member: Member, service: Scoring, texts: Sequence[Text]) -> tuple[Probabilities, str | None]:
        """A row per text, NaN where the model has no answer, and why the first of those has none."""
        requests = [Score([text], draw=Draw(derive_seed(self._seed, repr(text.input)), 0)) for text in texts]
        rows = np.full((len(texts), len(member.columns)), np.nan)
        reason: str | None = None
        for row, answer in zip(rows, service.answer_scores(requests), strict=True):
            if isinstance(answer, SearchStopped):
                reason = reason or f"{member.name}: {answer}"
            else:
                row[:] = answer[0].probabilities
        return (rows if member.has_logits else log_probabilities(rows))[:, member.columns], reason


def salience_of(before: Probabilities, after: Probabilities, labels: NDArray[np.int64]) -> Sums:
    """h of single replacements.

    Parameters
    ----------
    before, after
        A row of f per replacement: of the original text, and of the changed one.
    labels
        The true classes.
    """
    signs = np.full(before.shape, -1.0)
    signs[np.arange(len(labels)), labels] = 1.0
    total: Sums = (signs * (before - after)).sum(axis=1)
    return total


def log_softmax(logits: Probabilities) -> Probabilities:
    """The logarithms of the class probabilities that logits stand for."""
    shifted = logits - logits.max(axis=1, keepdims=True)
    logarithms: Probabilities = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return logarithms


class _LogitsInPlaceOfScores:
    """A classifier whose scores are its logits, so that the engine computes them like probabilities."""

    def __init__(self, classifier: LogitClassifier) -> None:
        self._classifier = classifier
        self.labels, self.deterministic = classifier.labels, classifier.deterministic
        self.workers = _batches_at_once(classifier)

    def encode(self, inputs: Sequence[TextInput]) -> Sequence[Any]:
        return self._classifier.encode(inputs)

    def predict_encoded(self, batch: Sequence[Any]) -> Probabilities:
        return self._classifier.logits_encoded(batch)

    def predict_proba(self, inputs: Sequence[TextInput]) -> Probabilities:
        return self.predict_encoded(self.encode(inputs))

    def start_worker(self) -> None:
        if isinstance(self._classifier, ParallelClassifier):
            self._classifier.start_worker()


def _batches_at_once(classifier: Classifier) -> int:
    """As many batches as there are cores, also of a small model: a chunk has enough batches for all of them."""
    if not isinstance(classifier, ParallelClassifier):
        return 1
    device = getattr(getattr(classifier, "model", None), "device", None)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return cores if getattr(device, "type", None) == "cpu" else classifier.workers


def _scoring(classifier: Classifier, batch_tokens: int | None, language: LanguageModels) -> Scoring:
    budget = TokenBudget(batch_tokens, tuning_memory(innermost(classifier)))
    if isinstance(classifier, LogitClassifier):
        nothing_kept: BoundedCache[Verdict] = BoundedCache(max_bytes=0)  # no text comes again in another chunk
        return ScoringService(_LogitsInPlaceOfScores(classifier), budget, nothing_kept)
    return make_scoring(
        classifier,
        budget,
        filling=FillingService(language.make_masked_lm),
        embedding=EmbeddingService(language.make_encoder),
    )
