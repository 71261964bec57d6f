"""What models that were not attacked say of texts: each text once, in full batches, stored so that a job can go on.

One forward pass per model and different text: texts that several sources have found are computed once as long as the
model is in memory, and what is stored is not asked again.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from stockade.core.errors import ModelError, SearchStopped
from stockade.core.example import Scores
from stockade.core.protocols import Classifier
from stockade.core.seeds import derive_seed
from stockade.core.text import Text
from stockade.engine.batching import TokenBudget
from stockade.engine.composite import make_scoring
from stockade.engine.language import EmbeddingService, FillingService
from stockade.engine.requests import Draw, Score
from stockade.engine.services import innermost
from stockade.experiment.inputs import tuning_memory
from stockade.experiment.progress import Runtime
from stockade.experiment.store import Codec, Document, Effort, ResultStore
from stockade.models.language import LanguageModels

Verdict = Scores | SearchStopped
"""What a model says of one text: its scores, or the reason why it has none."""
CLEAN = "clean"
"""What the originals are called beside the adversarial texts of each source."""
_SECOND = " (second training)"
_DIGITS = 6


class TextScorer:
    """Scores texts with one model and counts what that costs.

    Parameters
    ----------
    classifier
        The model in its defenses.
    runtime
        The size of batches.
    language
        The language models that a defense may ask.
    seed
        Names the random choices of a randomised model, together with the name of each text.
    """

    def __init__(
        self, classifier: Classifier, runtime: Runtime, language: LanguageModels | None = None, seed: int = 0
    ) -> None:
        language = language or LanguageModels()
        self._seed, self._started = seed, time.perf_counter()
        self._scoring = make_scoring(
            classifier,
            TokenBudget(runtime.batch_tokens, tuning_memory(innermost(classifier))),
            filling=FillingService(language.make_masked_lm),
            embedding=EmbeddingService(language.make_encoder),
        )

    @property
    def effort(self) -> Effort:
        """What has been computed so far."""
        seconds = time.perf_counter() - self._started
        return Effort(seconds, self._scoring.model_seconds, self._scoring.rows)

    def score(self, texts: Sequence[Text], names: Sequence[str]) -> list[Verdict]:
        """What the model says of each text; a text that it fails on costs no other.

        Parameters
        ----------
        texts
            What to score.
        names
            A name for each, which decides the random choices of a randomised model.
        """
        draws = [Draw(derive_seed(self._seed, name), 0) for name in names]
        requests = [Score([text], draw=draw) for text, draw in zip(texts, draws, strict=True)]
        answers = self._scoring.answer_scores(requests)
        return [answer if isinstance(answer, SearchStopped) else answer[0] for answer in answers]


@dataclass(frozen=True, slots=True)
class LabelledText:
    """A text to score: its name, the text, and its true class in the order of the model's classes."""

    id: str
    text: Text
    label: int


@dataclass(frozen=True, slots=True)
class Predictions:
    """What a model says of labelled texts.

    Parameters
    ----------
    ids
        The texts, by name.
    labels
        Their true classes, in the order of the model's classes.
    predicted
        The predicted classes; None for a text that the model has no answer for.
    gold
        The probabilities of the true classes.
    reason
        Why the first of those without an answer has none.
    """

    ids: tuple[str, ...]
    labels: tuple[int, ...]
    predicted: tuple[int | None, ...]
    gold: tuple[float | None, ...]
    reason: str | None = None

    @property
    def wrong(self) -> dict[str, bool]:
        """Whether the model is wrong, for each text that it has an answer for."""
        rows = zip(self.ids, self.labels, self.predicted, strict=True)
        return {id: predicted != label for id, label, predicted in rows if predicted is not None}

    @property
    def is_complete(self) -> bool:
        """Whether there is an answer for every text."""
        return self.reason is None


def predict(scorer: TextScorer, texts: Iterable[LabelledText], kind: str) -> Predictions:
    """Score labelled texts; a model that has no answer for any of them is a `ModelError`.

    Parameters
    ----------
    scorer
        The model.
    texts
        What to score.
    kind
        What the texts are, which names the random choices of a randomised model together with their ids.
    """
    items = list(texts)
    verdicts = scorer.score([item.text for item in items], [f"{kind}/{item.id}" for item in items])
    failures = [verdict for verdict in verdicts if isinstance(verdict, SearchStopped)]
    if items and len(failures) == len(items):
        raise ModelError(str(failures[0]))
    scores = [None if isinstance(verdict, SearchStopped) else verdict for verdict in verdicts]
    return Predictions(
        ids=tuple(item.id for item in items),
        labels=tuple(item.label for item in items),
        predicted=tuple(None if score is None else score.label for score in scores),
        gold=tuple(
            None if score is None else round(score.probability(item.label), _DIGITS)
            for item, score in zip(items, scores, strict=True)
        ),
        reason=str(failures[0]) if failures else None,
    )


def _encode(predictions: Predictions) -> Document:
    return {
        "ids": predictions.ids,
        "labels": predictions.labels,
        "predicted": predictions.predicted,
        "gold": predictions.gold,
        "reason": predictions.reason,
    }


def _decode(document: Document) -> Predictions:
    columns: dict[str, Any] = {name: tuple(document[name]) for name in ("ids", "labels", "predicted", "gold")}
    return Predictions(**columns, reason=document["reason"])


PREDICTIONS: Codec[Predictions] = Codec(_encode, _decode)
"""How predictions are stored."""


def second(name: str) -> str:
    """What the second training of a model is called."""
    return f"{name}{_SECOND}"


def is_second(name: str) -> bool:
    """Whether this is what a second training is called."""
    return name.endswith(_SECOND)


def cell(attack: str, source: str) -> str:
    """What the adversarial texts of a source are called."""
    return f"{attack}/{source}"


def store_predictions(store: ResultStore, name: str, texts: str, predictions: Predictions, effort: Effort) -> None:
    """Commit what a model said of the originals, or of a source's texts.

    Parameters
    ----------
    store
        Where it is kept.
    name
        The model.
    texts
        `CLEAN`, or a `cell`.
    predictions
        What it said.
    effort
        What the model has computed so far in this session.
    """
    store.add(scores_part(name), texts, PREDICTIONS.encode(predictions), effort=effort)


def read_predictions(store: ResultStore, name: str) -> dict[str, Predictions]:
    """What a model said of the originals and of each source's texts, as far as it was asked."""
    part = scores_part(name)
    return {texts: PREDICTIONS.read(store.get(part, texts) or {}) for texts in sorted(store.ids(part))}


def scores_part(name: str) -> str:
    """The part of the store with what a model said of texts."""
    return f"scores/{name}"
