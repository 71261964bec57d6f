"""Scores texts for all searches: deduplicated, cached, in batches of like lengths.

Answers `Score`, `Confirm` and `Masked`. A fault of the model costs only the text that causes it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

import numpy as np

from stockade.core.errors import ModelError, ModelGone, NoAnswer, ScoringFailed, SearchStopped
from stockade.core.example import NoScores, Scores
from stockade.core.protocols import (
    Classifier,
    EncodingClassifier,
    LogitClassifier,
    MaskingClassifier,
    ParallelClassifier,
    Probabilities,
    ServiceClassifier,
)
from stockade.core.text import TextInput
from stockade.engine.batching import TokenBudget, cut_batches, estimated_tokens
from stockade.engine.cache import BoundedCache
from stockade.engine.requests import Confirm, Masked, Score

_BATCH_SECONDS = 1 / 32
"""A quick model is asked for as much at once as it computes in this time: nobody waits for a round of a few of them."""
_SERVICE_TOKENS = 8
"""Tokens of a text for a service, which is given eight rounds of its calls at once; texts are longer as a rule."""
_ATTEMPTS = 3
"""How often a model is asked about a text that it raises on by itself: what fails may be a service that is busy."""
Prediction = Callable[[Sequence[Any]], Probabilities]
Verdict = Scores | ScoringFailed
"""What a model says of one text: its scores, or the reason why it has none."""


class Scoring(Protocol):
    """Scores texts for searches and counts what the model had to compute."""

    classifier: Classifier

    @property
    def rows(self) -> int: ...

    @property
    def model_seconds(self) -> float: ...

    @property
    def batch_tokens(self) -> int:
        """How many tokens of texts fill a batch, as far as that is known by now."""
        ...

    def charge(self, rows: int, seconds: float) -> None: ...

    def answer_scores(self, requests: Sequence[Score]) -> list[list[Scores] | SearchStopped]: ...

    def answer_confirmations(self, requests: Sequence[Confirm]) -> list[list[Scores] | SearchStopped]: ...

    def answer_masked(self, requests: Sequence[Masked]) -> list[Probabilities | SearchStopped]: ...


class ScoringService:
    """Scores texts for all searches with a classifier and counts what it had to compute.

    Parameters
    ----------
    classifier
        What scores the texts.
    budget
        The size of its batches; tuned if None.
    cache
        Where the scores of a deterministic classifier are kept; a new one if None.
    """

    def __init__(
        self,
        classifier: Classifier,
        budget: TokenBudget | None = None,
        cache: BoundedCache[Verdict] | None = None,
    ) -> None:
        self.classifier = classifier
        self._encoder = classifier if isinstance(classifier, EncodingClassifier) else None
        self._budget = budget or TokenBudget()
        self._cache = BoundedCache() if cache is None else cache
        self._workers = classifier.workers if isinstance(classifier, ParallelClassifier) else 1
        self._call_rows = classifier.batch_rows if isinstance(classifier, ServiceClassifier) else None
        self._pool: ThreadPoolExecutor | None = None
        self.rows = 0
        self.model_seconds = 0.0

    @property
    def batch_tokens(self) -> int:
        """A batch, or more where calls are dear or the model is quick; more for more than four workers."""
        if self._call_rows is not None:
            return self._call_rows * self._workers * _SERVICE_TOKENS
        dear, quick = 4 * self._budget.call_tokens, self._budget.tokens_within(_BATCH_SECONDS)
        return max(self._budget.tokens, round(dear), round(quick)) * max(1, self._workers // 4)

    def charge(self, rows: int, seconds: float) -> None:
        """Count what the model computed for another service."""
        self.rows += rows
        self.model_seconds += seconds

    def answer_scores(self, requests: Sequence[Score]) -> list[list[Scores] | SearchStopped]:
        """Each request's scores in order; where it may not stay without one, the first failure among its texts."""
        inputs = [[text.input for text in request.texts] for request in requests]
        flat = [item for group in inputs for item in group]
        if self.classifier.deterministic:
            table = self._cache.fetch(flat, self._compute)
            return [
                collected([table[item] for item in group], request.partial)
                for request, group in zip(requests, inputs, strict=True)
            ]
        verdicts = iter(self._compute(flat))
        return [collected([next(verdicts) for _ in request.texts], request.partial) for request in requests]

    def answer_confirmations(self, requests: Sequence[Confirm]) -> list[list[Scores] | SearchStopped]:
        """Each text by itself, as a user would send it: no batch, no cache."""
        return [
            collected([self._compute([request.text.input])[0] for _ in range(request.draws)]) for request in requests
        ]

    def answer_masked(self, requests: Sequence[Masked]) -> list[Probabilities | SearchStopped]:
        """Each request's copies; a copy that looks like another to the model is computed once."""
        shows_logits = isinstance(self.classifier, LogitClassifier)
        answers: dict[int, Probabilities | SearchStopped] = {}
        for logits in (False, True):
            same = [place for place, request in enumerate(requests) if request.logits == logits]
            verdicts = iter(self._masked_verdicts([requests[place] for place in same], logits) if same else ())
            for place in same:
                rows = _array(collected([next(verdicts) for _ in requests[place].keep]))
                answers[place] = centred_logs(rows) if logits and not shows_logits else rows
        return [answers[place] for place in range(len(requests))]

    def _masked_verdicts(self, requests: Sequence[Masked], logits: bool) -> list[Verdict]:
        model = self.classifier
        if isinstance(model, MaskingClassifier):
            encoded = [item for request in requests for item in _masked(model, request)]
            predict: Prediction = model.predict_encoded
            if logits and isinstance(model, LogitClassifier):
                predict = model.logits_encoded
            return (self._compute_distinct if model.deterministic else self._run_valid)(encoded, predict)
        inputs = [item for request in requests for item in _masked_strings(request)]
        if not model.deterministic:
            return self._compute(inputs)
        table = self._cache.fetch(inputs, self._compute)
        return [table[item] for item in inputs]

    def _compute(self, inputs: Sequence[TextInput]) -> list[Verdict]:
        if not inputs:
            return []
        if self._encoder is None:
            lengths = [estimated_tokens(item) for item in inputs]
            return self._run(inputs, lengths, self.classifier.predict_proba)
        return self._compute_encoded(inputs, self._encoder)

    def _compute_encoded(self, inputs: Sequence[TextInput], encoder: EncodingClassifier) -> list[Verdict]:
        started = time.perf_counter()
        encoded = _contained(encoder.encode, inputs)
        self.model_seconds += time.perf_counter() - started
        if not self.classifier.deterministic:
            return self._run_valid(encoded, encoder.predict_encoded)
        return self._compute_distinct(encoded, encoder.predict_encoded)

    def _compute_distinct(self, encoded: Sequence[Any], predict: Prediction) -> list[Verdict]:
        first: dict[Hashable, int] = {}
        for index, item in enumerate(encoded):
            if not isinstance(item, ScoringFailed):
                first.setdefault(item.key, index)
        verdicts = dict(zip(first, self._run_valid([encoded[i] for i in first.values()], predict), strict=True))
        return [item if isinstance(item, ScoringFailed) else verdicts[item.key] for item in encoded]

    def _run_valid(self, encoded: Sequence[Any], predict: Prediction) -> list[Verdict]:
        valid = [item for item in encoded if not isinstance(item, ScoringFailed)]
        scored = iter(self._run(valid, [len(item) for item in valid], predict))
        return [item if isinstance(item, ScoringFailed) else next(scored) for item in encoded]

    def _run(self, items: Sequence[Any], lengths: Sequence[int], predict: Prediction) -> list[Verdict]:
        verdicts: dict[int, Verdict] = {}
        padded = self._encoder is not None
        started = time.perf_counter()
        if self._call_rows is not None or (self._workers > 1 and self._budget.settled and len(items) > 1):
            batches = self._batches(lengths, padded)
            answers = self._workforce().map(lambda indices: self._timed(items, lengths, indices, predict), batches)
            for indices, rows in zip(batches, answers, strict=True):
                verdicts.update(zip(indices, rows, strict=True))
        else:
            for indices in cut_batches(lengths, self._budget, padded=padded):
                rows = self._timed(items, lengths, indices, predict)
                verdicts.update(zip(indices, rows, strict=True))
        self.model_seconds += time.perf_counter() - started
        self.rows += len(items)
        return [verdicts[index] for index in range(len(items))]

    def _batches(self, lengths: Sequence[int], padded: bool) -> list[list[int]]:
        """Batches that are computed at the same time: as many texts as a call of a service has, or of like lengths."""
        if self._call_rows is None:
            return list(cut_batches(lengths, self._budget, self._workers, padded=padded))
        share = -(-len(lengths) // self._workers)
        rows = max(1, min(self._call_rows, share))
        return [list(range(start, min(start + rows, len(lengths)))) for start in range(0, len(lengths), rows)]

    def _timed(
        self, items: Sequence[Any], lengths: Sequence[int], indices: Sequence[int], predict: Prediction
    ) -> list[Verdict]:
        started = time.perf_counter()
        rows = self._predict([items[i] for i in indices], predict)
        self._budget.observe(len(indices) * lengths[indices[0]], time.perf_counter() - started)
        return rows

    def _workforce(self) -> ThreadPoolExecutor:
        if self._pool is None:
            assert isinstance(self.classifier, ParallelClassifier)
            self._pool = ThreadPoolExecutor(self._workers, initializer=self.classifier.start_worker)
        return self._pool

    def _predict(self, batch: list[Any], predict: Prediction, attempts: int = _ATTEMPTS) -> list[Verdict]:
        try:
            return to_verdicts(predict(batch), len(batch), len(self.classifier.labels))
        except ModelGone:
            raise
        except (Exception, SystemExit) as error:
            if _is_out_of_memory(error):
                self._budget.halve()
            if len(batch) == 1:
                left = 0 if attempts <= 1 else _attempts_left(error, attempts)
                return self._predict(batch, predict, left) if left else [ScoringFailed(reason_of(error))]
        half = len(batch) // 2
        return self._predict(batch[:half], predict) + self._predict(batch[half:], predict)


def _contained(encode: Callable[[Sequence[TextInput]], Sequence[Any]], inputs: Sequence[TextInput]) -> list[Any]:
    """Encode all at once; if that raises, halve until the texts that cannot be encoded stand alone."""
    try:
        return list(encode(inputs))
    except Exception as error:
        if len(inputs) == 1:
            return [ScoringFailed(reason_of(error))]
    half = len(inputs) // 2
    return _contained(encode, inputs[:half]) + _contained(encode, inputs[half:])


def _masked(model: MaskingClassifier, request: Masked) -> Sequence[Any]:
    try:
        return model.encode_masked(request.words, request.premise, request.keep)
    except ModelError:
        raise
    except Exception as error:
        return [ScoringFailed(reason_of(error))] * len(request.keep)


def _masked_strings(request: Masked) -> list[TextInput]:
    strings = [
        " ".join([word if stays else request.mask for word, stays in zip(request.words, row, strict=True)])
        for row in request.keep.tolist()
    ]
    return strings if request.premise is None else [(request.premise, string) for string in strings]  # type: ignore[return-value]


def _array(scores: list[Scores] | SearchStopped) -> Probabilities | SearchStopped:
    return scores if isinstance(scores, SearchStopped) else np.array([row.probabilities for row in scores])


def centred_logs(rows: Probabilities | SearchStopped) -> Probabilities | SearchStopped:
    """Stand-ins for the logits behind probabilities: their logarithms, which differ by a constant in each row."""
    if isinstance(rows, SearchStopped):
        return rows
    logits = np.log(np.maximum(rows, 1e-300))
    centred: Probabilities = logits - logits.mean(1, keepdims=True)
    return centred


def _attempts_left(error: BaseException, attempts: int) -> int:
    """How often a text may still be asked about: an answer of the wrong shape stays wrong, and waiting is dear."""
    if isinstance(error, NoAnswer):
        return attempts - 2
    return 0 if isinstance(error, ModelError) else attempts - 1


def _is_out_of_memory(error: BaseException) -> bool:
    return isinstance(error, MemoryError) or "out of memory" in str(error).lower()


def to_verdicts(answer: Probabilities, rows: int, classes: int) -> list[Verdict]:
    """The scores in a model's answer; an answer of another shape raises, a row with NaN is a failure."""
    values = np.asarray(answer, dtype=np.float64)
    if values.shape != (rows, classes):
        raise ModelError(f"the model answered with shape {values.shape} for {rows} texts and {classes} classes")
    finite: list[bool] = np.logical_and.reduce(np.isfinite(values), axis=1).tolist()
    return [
        Scores(tuple(row)) if good else ScoringFailed("the model answered with NaN or infinite probabilities")
        for row, good in zip(values.tolist(), finite, strict=True)
    ]


def collected(verdicts: Sequence[Verdict], partial: bool = False) -> list[Scores] | SearchStopped:
    """The scores of all texts of a request; its first failure, unless the request is `partial`."""
    scores: list[Scores] = []
    for verdict in verdicts:
        if isinstance(verdict, ScoringFailed):
            if not partial:
                return verdict
            scores.append(NoScores(reason=str(verdict)))
        else:
            scores.append(verdict)
    return scores


def reason_of(error: BaseException) -> str:
    """What is recorded of a model that raised."""
    if isinstance(error, ModelError):
        return str(error)
    return f"the model raised {type(error).__name__}: {error}".rstrip(": ")[:500]
