"""The service that answers `Gradient` and `Vocabulary` for white-box attacks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from stockade.core.errors import ModelError
from stockade.core.protocols import Classifier, WhiteBoxClassifier, WordVocabulary
from stockade.engine.requests import Gradient, Vocabulary


class GradientService:
    """Asks a white-box classifier for gradients, all texts of a round together; says so when the model is a black
    box.
    """

    def __init__(self, classifier: Classifier) -> None:
        self._classifier = classifier

    def answer(self, requests: Sequence[Gradient]) -> list[list[NDArray[np.float32]]]:
        model = self._white_box()
        answers: list[list[NDArray[np.float32]]] = [[] for _ in requests]
        for label in dict.fromkeys(request.label for request in requests):
            same = [number for number, request in enumerate(requests) if request.label == label]
            texts = [text for number in same for text in requests[number].texts]
            rows = iter(model.word_gradients(texts, label))
            for number in same:
                answers[number] = [next(rows) for _ in requests[number].texts]
        return answers

    def answer_vocabulary(self, requests: Sequence[Vocabulary]) -> list[WordVocabulary]:
        return [self._white_box().word_vocabulary()] * len(requests)

    def _white_box(self) -> WhiteBoxClassifier:
        if not isinstance(self._classifier, WhiteBoxClassifier):
            raise ModelError(
                "This attack needs the model's gradients, and this model does not show them: give a Hugging Face "
                "model or a built-in one, or choose an attack that needs scores only."
            )
        return self._classifier
