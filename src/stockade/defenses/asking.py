"""What a classifier that asks another one says of texts outside of any search."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stockade.core.errors import ModelError, ScoringFailed
from stockade.core.protocols import CompositeClassifier, Probabilities
from stockade.core.seeds import derive_seed
from stockade.core.text import Text, TextInput
from stockade.engine.composite import make_scoring
from stockade.engine.language import EmbeddingService, FillingService
from stockade.engine.requests import Draw, Score
from stockade.models.language import LanguageModels


def probabilities_of(
    classifier: CompositeClassifier, inputs: Sequence[TextInput], language: LanguageModels, purpose: str = "predict"
) -> Probabilities:
    """Class probabilities of each text; the same text has the same answer whatever else is asked with it.

    The random choices of an answer depend on the text and on `purpose` alone.
    """
    service = make_scoring(
        classifier,
        filling=FillingService(language.make_masked_lm),
        embedding=EmbeddingService(language.make_encoder),
    )
    asked = [Score([Text.of(one)], draw=Draw(derive_seed(purpose, repr(one)), 0)) for one in inputs]
    rows: list[tuple[float, ...]] = []
    for scores in service.answer_scores(asked):
        if isinstance(scores, ScoringFailed):
            raise ModelError(f"The defended model has no answer: {scores}.")
        rows.append(scores[0].probabilities)  # type: ignore[index]  # only a failure is no list
    return np.array(rows, dtype=np.float64).reshape(len(inputs), len(classifier.labels))
