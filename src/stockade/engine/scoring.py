"""Scores texts for all searches: deduplicated, cached, in batches of like lengths.

Answers `Score`, `Confirm` and `Masked`. A fault of the model costs only the text that causes it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from stockade.core.errors import ModelError, ScoringFailed, SearchStopped
from stockade.core.example import NoScores, Scores
from stockade.core.protocols import Classifier, LogitClassifier, MaskingClassifier, Probabilities
from stockade.core.text import TextInput
from stockade.engine.batching import TokenBudget
from stockade.engine.cache import BoundedCache
from stockade.engine.computing import Computation, Computing, reason_of
from stockade.engine.requests import Confirm, Masked, Score

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

    @property
    def innermost(self) -> ScoringService:
        """The service of the model inside all defenses."""
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
        self.computing = Computing(classifier, budget)
        self._cache = BoundedCache() if cache is None else cache

    @property
    def rows(self) -> int:
        return self.computing.rows

    @property
    def model_seconds(self) -> float:
        return self.computing.seconds

    @property
    def batch_tokens(self) -> int:
        return self.computing.batch_tokens

    @property
    def innermost(self) -> ScoringService:
        return self

    def charge(self, rows: int, seconds: float) -> None:
        """Count what the model computed for another service."""
        self.computing.charge(rows, seconds)

    def remember(self, item: TextInput, scores: Scores) -> None:
        """Keep scores that a deterministic model gave together with something else: nobody need ask for them again."""
        if self._cache.get(item) is None:
            self._cache.put(item, scores)

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
            predict: Callable[[Sequence[Any]], Probabilities] = model.predict_encoded
            if logits and isinstance(model, LogitClassifier):
                predict = model.logits_encoded
            return self.computing.of_encoded(encoded, self._scores(predict))
        inputs = [item for request in requests for item in _masked_strings(request)]
        if not model.deterministic:
            return self._compute(inputs)
        table = self._cache.fetch(inputs, self._compute)
        return [table[item] for item in inputs]

    def _compute(self, inputs: Sequence[TextInput]) -> list[Verdict]:
        encoder = self.computing.encoder
        if encoder is None:
            return self.computing.of_texts(inputs, self._scores(self.classifier.predict_proba))
        return self.computing.of_tokenised(inputs, encoder, self._scores(encoder.predict_encoded))

    def _scores(self, predict: Callable[[Sequence[Any]], Probabilities]) -> Computation:
        """The scores in what `predict` answers; a model may know its classes only after its first answer."""
        return Computation(lambda batch: to_verdicts(predict(batch), len(batch), len(self.classifier.labels)))


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
