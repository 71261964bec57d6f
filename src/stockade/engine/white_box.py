"""The service that answers what white-box attacks ask: gradients, the vocabulary, scores with a word zeroed, sentence
vectors and attention. All texts of a round go to the model together; a model that does not show what is asked for
ends the run with one sentence about what is missing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from stockade.core.errors import ModelError
from stockade.core.example import Scores
from stockade.core.protocols import (
    AttentiveClassifier,
    Classifier,
    RepresentingClassifier,
    WhiteBoxClassifier,
    WordVocabulary,
    ZeroingClassifier,
)
from stockade.core.text import TextInput
from stockade.engine.requests import Attention, Gradient, Represent, Vocabulary, Zeroed

Charge = Callable[[int, float], None]
Represented = tuple[Scores, NDArray[np.float32]]
_INSTEAD = "give a Hugging Face model or a built-in one, or choose an attack that needs scores only."


class WhiteBoxService:
    """Looks into one classifier for all searches."""

    def __init__(self, classifier: Classifier, charge: Charge = lambda rows, seconds: None) -> None:
        """`charge` is told how many rows the model computed in how many seconds."""
        self._classifier, self._charge = classifier, charge

    def answer_gradients(self, requests: Sequence[Gradient]) -> list[list[NDArray[np.float32]]]:
        model = self._white_box()
        answers: list[list[NDArray[np.float32]]] = [[] for _ in requests]
        for label in dict.fromkeys(request.label for request in requests):
            same = [number for number, request in enumerate(requests) if request.label == label]
            texts = [text for number in same for text in requests[number].texts]
            with self._charged(len(texts)):
                rows = iter(model.word_gradients(texts, label))
            for number in same:
                answers[number] = [next(rows) for _ in requests[number].texts]
        return answers

    def answer_vocabulary(self, requests: Sequence[Vocabulary]) -> list[WordVocabulary | None]:
        shown = isinstance(self._classifier, WhiteBoxClassifier)
        if not shown and not any(request.required for request in requests):
            return [None] * len(requests)
        return [self._white_box().word_vocabulary()] * len(requests)

    def answer_zeroed(self, requests: Sequence[Zeroed]) -> list[list[Scores]]:
        if not isinstance(self._classifier, ZeroingClassifier):
            raise _missing("its input vectors", "them")
        places = [(request.text, index) for request in requests for index in request.indices]
        with self._charged(len(places)):
            rows = iter(_scores(self._classifier.predict_zeroed(places)) if places else ())
        return [[next(rows) for _ in request.indices] for request in requests]

    def answer_represented(self, requests: Sequence[Represent]) -> list[list[Represented]]:
        """Each text's scores and sentence vector; equal texts are computed once."""
        if not isinstance(self._classifier, RepresentingClassifier):
            raise _missing("its sentence vectors", "them")
        inputs = list(dict.fromkeys(text.input for request in requests for text in request.texts))
        table: dict[TextInput, Represented] = {}
        if inputs:
            with self._charged(len(inputs)):
                probabilities, vectors = self._classifier.represent(inputs)
            table = dict(zip(inputs, zip(_scores(probabilities), vectors, strict=True), strict=True))
        return [[table[text.input] for text in request.texts] for request in requests]

    def answer_attention(self, requests: Sequence[Attention]) -> list[NDArray[np.float32]]:
        if not isinstance(self._classifier, AttentiveClassifier):
            raise _missing("its attention", "it")
        answers: list[NDArray[np.float32] | None] = [None] * len(requests)
        for kind in dict.fromkeys((request.layer, request.query) for request in requests):
            same = [n for n, request in enumerate(requests) if (request.layer, request.query) == kind]
            with self._charged(len(same)):
                found = self._classifier.word_attention([requests[n].text for n in same], *kind)
            for number, scores in zip(same, found, strict=True):
                answers[number] = scores
        return [answer for answer in answers if answer is not None]

    @contextmanager
    def _charged(self, rows: int) -> Iterator[None]:
        started = time.perf_counter()
        yield
        self._charge(rows, time.perf_counter() - started)

    def _white_box(self) -> WhiteBoxClassifier:
        if not isinstance(self._classifier, WhiteBoxClassifier):
            raise _missing("the model's gradients and vocabulary", "them", "This attack needs")
        return self._classifier


def _missing(what: str, pronoun: str, needs: str = "This attack needs the model to show") -> ModelError:
    return ModelError(f"{needs} {what}, and this model does not show {pronoun}: {_INSTEAD}")


def _scores(probabilities: NDArray[np.float64]) -> list[Scores]:
    return [Scores(tuple(row)) for row in probabilities.tolist()]
