"""Sentence vectors for all searches: computed in the batches of the scores, kept, and never without the scores.

Answers `Represent`, and `WordFeatures`: what the model makes of each word of its vocabulary alone.

Whatever a model says of a text here is an answer to `Score` too, so a search by scores alone finds what a search by
sentence vectors has asked before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stockade.core.errors import ModelError, ScoringFailed, SearchStopped
from stockade.core.example import NoScores, Scores
from stockade.core.protocols import EncodedRepresentingClassifier, RepresentingClassifier, WordVocabulary
from stockade.core.text import TextInput
from stockade.engine.cache import BoundedCache
from stockade.engine.computing import Computation
from stockade.engine.requests import Represent, WordFeatures
from stockade.engine.scoring import ScoringService, to_verdicts
from stockade.engine.white_box import not_shown

Vector = NDArray[np.float32]
Represented = tuple[Scores, Vector]

_CACHE_BYTES = 192 * 2**20
"""The most memory for the vectors that are kept: a scan of 22,000 words with vectors of 768 numbers takes 75 MB."""
_ENTRY_BYTES = 500
"""What an entry costs besides its key and the numbers of its vector."""


class RepresentingService:
    """Answers `Represent` with the model inside all defenses.

    Parameters
    ----------
    scoring
        The service that scores with that model; it is given the scores of every text.
    """

    def __init__(self, scoring: ScoringService) -> None:
        self._scoring = scoring
        self._kept: BoundedCache[Represented] | None = None
        self._features: dict[tuple[str, ...], Vector] = {}

    def answer(self, requests: Sequence[Represent]) -> list[list[Represented] | SearchStopped]:
        """Each text's scores and sentence vector; equal texts are computed once."""
        classifier = self._scoring.classifier
        if not isinstance(classifier, RepresentingClassifier):
            raise not_shown("its sentence vectors", "them")
        inputs = [text.input for request in requests for text in request.texts]
        if classifier.deterministic:
            table = self._from_memory(dict.fromkeys(inputs), classifier)
            answers = iter([table[item] for item in inputs])
        else:
            answers = iter(self._compute(inputs, classifier))
        return [_collected([next(answers) for _ in request.texts], request) for request in requests]

    def answer_features(self, requests: Sequence[WordFeatures]) -> list[Vector]:
        """The features of the words of each vocabulary; computed for the first who asks."""
        return [self._features_of(request.vocabulary) for request in requests]

    def _features_of(self, vocabulary: WordVocabulary) -> Vector:
        """Where the model fails on a word alone, the input vectors are all there is."""
        if vocabulary.words not in self._features:
            classifier = self._scoring.classifier
            if not isinstance(classifier, RepresentingClassifier):
                raise not_shown("its sentence vectors", "them")
            answers = self._compute(vocabulary.words, classifier)
            vectors = [answer[1] for answer in answers if not isinstance(answer, ScoringFailed)]
            parts = [vocabulary.vectors, *([np.stack(vectors)] if len(vectors) == len(answers) else [])]
            self._features[vocabulary.words] = np.concatenate([_even(part) for part in parts], axis=1)
        return self._features[vocabulary.words]

    def _from_memory(
        self, inputs: dict[TextInput, None], classifier: RepresentingClassifier
    ) -> dict[TextInput, Represented | ScoringFailed]:
        """The answers that are kept and those that are computed now; a failure is not kept."""
        table: dict[TextInput, Represented | ScoringFailed] = {}
        if self._kept is not None:
            table = {item: kept for item in inputs if (kept := self._kept.get(item)) is not None}
        missing = [item for item in inputs if item not in table]
        for item, answer in zip(missing, self._compute(missing, classifier), strict=True):
            table[item] = answer
            if not isinstance(answer, ScoringFailed):
                self._keep(item, answer)
        return table

    def _keep(self, item: TextInput, answer: Represented) -> None:
        if self._kept is None:
            self._kept = BoundedCache(_CACHE_BYTES, _ENTRY_BYTES + answer[1].nbytes)
        scores, vector = answer
        self._kept.put(item, (scores, vector.copy()))  # a row of its own: a view would keep its whole batch in memory
        self._scoring.remember(item, scores)

    def _compute(
        self, inputs: Sequence[TextInput], classifier: RepresentingClassifier
    ) -> list[Represented | ScoringFailed]:
        classes = len(self._scoring.classifier.labels)

        def read(rows: int, answer: tuple[NDArray[np.float64], Vector]) -> list[Any]:
            probabilities, vectors = answer
            return [
                verdict if isinstance(verdict, ScoringFailed) else (verdict, vector)
                for verdict, vector in zip(to_verdicts(probabilities, rows, classes), vectors, strict=True)
            ]

        computing = self._scoring.computing
        if isinstance(classifier, EncodedRepresentingClassifier):
            of_batch = Computation(lambda batch: read(len(batch), classifier.represent_encoded(batch)), ModelError)
            return computing.of_tokenised(inputs, classifier, of_batch)
        return computing.of_texts(
            inputs, Computation(lambda batch: read(len(batch), classifier.represent(batch)), ModelError)
        )


def _collected(answers: Sequence[Represented | ScoringFailed], request: Represent) -> list[Represented] | SearchStopped:
    """The answers to a request; its first failure, unless the request is `partial`."""
    collected: list[Represented] = []
    for answer in answers:
        if not isinstance(answer, ScoringFailed):
            collected.append(answer)
        elif request.partial:
            collected.append(request.without_answer(NoScores(reason=str(answer))))
        else:
            return answer
    return collected


def _even(vectors: Vector) -> Vector:
    """The vectors around their mean, of length one on average."""
    centred = vectors - vectors.mean(0)
    length = float(np.sqrt(np.square(centred).sum(1).mean()))
    even: Vector = (centred / (length or 1.0)).astype(np.float32)
    return even
