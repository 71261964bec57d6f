"""The service that answers `Reach`: which words of a text the victim reads at all."""

from __future__ import annotations

from collections.abc import Sequence

from stockade.core.protocols import Classifier, WindowedClassifier
from stockade.engine.requests import Reach


class ReachService:
    """Asks a classifier that cuts long texts what is left of them; any other is taken to read everything."""

    def __init__(self, classifier: Classifier) -> None:
        self._classifier = classifier

    def answer(self, requests: Sequence[Reach]) -> list[range]:
        texts = [request.text for request in requests]
        if isinstance(self._classifier, WindowedClassifier):
            return self._classifier.words_read(texts)
        return [text.indices for text in texts]
