"""Lets a classifier compute answers for many texts: tokenised once, equal token ids once, in batches of like lengths.

A fault of the model costs only the text that causes it. Models that gain from it compute several batches at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from stockade.core.errors import ModelError, ModelGone, NoAnswer, ScoringFailed
from stockade.core.protocols import Classifier, EncodingClassifier, ParallelClassifier, ServiceClassifier
from stockade.core.text import TextInput
from stockade.engine.batching import TokenBudget, cut_batches, estimated_tokens

_BATCH_SECONDS = 1 / 32
"""A quick model is asked for as much at once as it computes in this time: nobody waits for a round of a few of them."""
_SERVICE_TOKENS = 8
"""Tokens of a text for a service, which is given eight rounds of its calls at once; texts are longer as a rule."""
_ATTEMPTS = 3
"""How often a model is asked about a text that it raises on by itself: what fails may be a service that is busy."""


@dataclass(frozen=True, slots=True)
class Computation:
    """What is computed for each text.

    Parameters
    ----------
    answers
        Gives the answer to each text of a batch, or the reason why it has none (`ScoringFailed`).
    fatal
        Errors that are no fault of a text: they end the run.
    """

    answers: Callable[[list[Any]], list[Any]]
    fatal: type[Exception] = ModelGone


class Computing:
    """Computes with one classifier for all services that ask it, and counts what that cost.

    Parameters
    ----------
    classifier
        The model.
    budget
        The size of its batches; tuned if None.
    """

    def __init__(self, classifier: Classifier, budget: TokenBudget | None = None) -> None:
        self.classifier = classifier
        self.encoder = classifier if isinstance(classifier, EncodingClassifier) else None
        self._budget = budget or TokenBudget()
        self._workers = classifier.workers if isinstance(classifier, ParallelClassifier) else 1
        self._call_rows = classifier.batch_rows if isinstance(classifier, ServiceClassifier) else None
        self._pool: ThreadPoolExecutor | None = None
        self.rows = 0
        self.seconds = 0.0

    @property
    def batch_tokens(self) -> int:
        """A batch, or more where calls are dear or the model is quick; more for more than four workers."""
        if self._call_rows is not None:
            return self._call_rows * self._workers * _SERVICE_TOKENS
        dear, quick = 4 * self._budget.call_tokens, self._budget.tokens_within(_BATCH_SECONDS)
        return max(self._budget.tokens, round(dear), round(quick)) * max(1, self._workers // 4)

    def charge(self, rows: int, seconds: float) -> None:
        """Count what the model computed elsewhere."""
        self.rows += rows
        self.seconds += seconds

    def of_texts(self, inputs: Sequence[TextInput], wanted: Computation) -> list[Any]:
        """The answers of a computation that reads texts as they are."""
        return self._run(inputs, [estimated_tokens(item) for item in inputs], wanted) if inputs else []

    def of_tokenised(self, inputs: Sequence[TextInput], encoder: EncodingClassifier, wanted: Computation) -> list[Any]:
        """The answers of a computation that reads tokens; texts that are the same to the model are computed once."""
        if not inputs:
            return []
        started = time.perf_counter()
        encoded = _contained(encoder.encode, inputs)
        self.seconds += time.perf_counter() - started
        return self.of_encoded(encoded, wanted)

    def of_encoded(self, encoded: Sequence[Any], wanted: Computation) -> list[Any]:
        """The answers to encoded texts, each different one computed once if the classifier is deterministic."""
        return (self._run_distinct if self.classifier.deterministic else self._run_valid)(encoded, wanted)

    def _run_distinct(self, encoded: Sequence[Any], wanted: Computation) -> list[Any]:
        first: dict[Hashable, int] = {}
        for index, item in enumerate(encoded):
            if not isinstance(item, ScoringFailed):
                first.setdefault(item.key, index)
        answers = dict(zip(first, self._run_valid([encoded[i] for i in first.values()], wanted), strict=True))
        return [item if isinstance(item, ScoringFailed) else answers[item.key] for item in encoded]

    def _run_valid(self, encoded: Sequence[Any], wanted: Computation) -> list[Any]:
        valid = [item for item in encoded if not isinstance(item, ScoringFailed)]
        answers = iter(self._run(valid, [len(item) for item in valid], wanted))
        return [item if isinstance(item, ScoringFailed) else next(answers) for item in encoded]

    def _run(self, items: Sequence[Any], lengths: Sequence[int], wanted: Computation) -> list[Any]:
        answers: dict[int, Any] = {}
        padded = self.encoder is not None
        started = time.perf_counter()
        if self._call_rows is not None or (self._workers > 1 and self._budget.settled and len(items) > 1):
            batches = self._batches(lengths, padded)
            computed = self._workforce().map(lambda indices: self._timed(items, lengths, indices, wanted), batches)
            for indices, rows in zip(batches, computed, strict=True):
                answers.update(zip(indices, rows, strict=True))
        else:
            for indices in cut_batches(lengths, self._budget, padded=padded):
                answers.update(zip(indices, self._timed(items, lengths, indices, wanted), strict=True))
        self.charge(len(items), time.perf_counter() - started)
        return [answers[index] for index in range(len(items))]

    def _batches(self, lengths: Sequence[int], padded: bool) -> list[list[int]]:
        """Batches that are computed at the same time: as many texts as a call of a service has, or of like lengths."""
        if self._call_rows is None:
            return list(cut_batches(lengths, self._budget, self._workers, padded=padded))
        share = -(-len(lengths) // self._workers)
        rows = max(1, min(self._call_rows, share))
        return [list(range(start, min(start + rows, len(lengths)))) for start in range(0, len(lengths), rows)]

    def _timed(
        self, items: Sequence[Any], lengths: Sequence[int], indices: Sequence[int], wanted: Computation
    ) -> list[Any]:
        started = time.perf_counter()
        answers = self._answers([items[i] for i in indices], wanted)
        self._budget.observe(len(indices) * lengths[indices[0]], time.perf_counter() - started)
        return answers

    def _workforce(self) -> ThreadPoolExecutor:
        if self._pool is None:
            assert isinstance(self.classifier, ParallelClassifier)
            self._pool = ThreadPoolExecutor(self._workers, initializer=self.classifier.start_worker)
        return self._pool

    def _answers(self, batch: list[Any], wanted: Computation, attempts: int = _ATTEMPTS) -> list[Any]:
        try:
            return wanted.answers(batch)
        except (ModelGone, wanted.fatal):
            raise
        except (Exception, SystemExit) as error:
            if _is_out_of_memory(error):
                self._budget.halve()
            if len(batch) == 1:
                left = 0 if attempts <= 1 else _attempts_left(error, attempts)
                return self._answers(batch, wanted, left) if left else [ScoringFailed(reason_of(error))]
        half = len(batch) // 2
        return self._answers(batch[:half], wanted) + self._answers(batch[half:], wanted)


def _contained(encode: Callable[[Sequence[TextInput]], Sequence[Any]], inputs: Sequence[TextInput]) -> list[Any]:
    """Encode all at once; if that raises, halve until the texts that cannot be encoded stand alone."""
    try:
        return list(encode(inputs))
    except Exception as error:
        if len(inputs) == 1:
            return [ScoringFailed(reason_of(error))]
    half = len(inputs) // 2
    return _contained(encode, inputs[:half]) + _contained(encode, inputs[half:])


def _attempts_left(error: BaseException, attempts: int) -> int:
    """How often a text may still be asked about: an answer of the wrong shape stays wrong, and waiting is dear."""
    if isinstance(error, NoAnswer):
        return attempts - 2
    return 0 if isinstance(error, ModelError) else attempts - 1


def _is_out_of_memory(error: BaseException) -> bool:
    return isinstance(error, MemoryError) or "out of memory" in str(error).lower()


def reason_of(error: BaseException) -> str:
    """What is recorded of a model that raised."""
    if isinstance(error, ModelError):
        return str(error)
    return f"the model raised {type(error).__name__}: {error}".rstrip(": ")[:500]
