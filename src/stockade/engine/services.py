"""Which service answers which request, and how many tokens fill a batch of the model behind it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stockade.core.protocols import Classifier
from stockade.engine.language import EmbeddingService, FillingService
from stockade.engine.representing import RepresentingService
from stockade.engine.requests import (
    Attention,
    ClassNames,
    Confirm,
    Embed,
    Fill,
    Gradient,
    Importance,
    Masked,
    Mixed,
    Noised,
    Perplexity,
    Predict,
    Represent,
    Request,
    Score,
    Surprisal,
    VisibleWords,
    Vocabulary,
    WordFeatures,
    WordProbabilities,
    Zeroed,
)
from stockade.engine.scoring import Scoring
from stockade.engine.white_box import WhiteBoxService

Answer = Callable[[Sequence[Any]], Sequence[Any]]
_FIXED_BATCH = 1024
"""Tokens that fill a batch of the models that cut their batches themselves; on a CPU those have 512 to 2048."""


@dataclass(frozen=True, slots=True)
class Service:
    """Answers all requests of one kind together.

    Parameters
    ----------
    answer
        Gives the answers to a list of requests, in order; a `SearchStopped` among them ends that search.
    batch_tokens
        Tells how many tokens fill a batch of the model. It is asked again for every round, because batches are tuned
        while they are computed.
    """

    answer: Answer
    batch_tokens: Callable[[], int] = lambda: _FIXED_BATCH


Services = Mapping[type[Request[Any]], Service]


def classifier_services(
    scoring: Scoring,
    *,
    view: Scoring | None = None,
    filling: FillingService | None = None,
    embedding: EmbeddingService | None = None,
) -> Services:
    """The services for searches over one classifier. White-box requests see the model inside all defenses.

    Parameters
    ----------
    scoring
        Scores with the classifier that is to be fooled.
    view
        Scores with the classifier that the searches see, if it is another one: it answers all they ask, and only what
        the harness asks (clean texts, confirmations) goes to the one that is to be fooled.
    filling, embedding
        The language models that searches may ask. Without them a search that asks one is an error.
    """
    visible = view or scoring
    inside = WhiteBoxService(innermost(visible.classifier), visible.charge)
    representing = RepresentingService(visible.innermost)

    def batch_tokens() -> int:
        return visible.batch_tokens

    answer_scores = visible.answer_scores if view is None else _split(scoring.answer_scores, view.answer_scores)
    services: dict[type[Request[Any]], Service] = {
        Score: Service(answer_scores, batch_tokens),
        Masked: Service(visible.answer_masked, batch_tokens),
        Confirm: Service(scoring.answer_confirmations),
        VisibleWords: Service(inside.answer_visible_words),
        ClassNames: Service(lambda requests: [scoring.classifier.labels] * len(requests)),
        Gradient: Service(inside.answer_gradients),
        Vocabulary: Service(inside.answer_vocabulary),
        Zeroed: Service(inside.answer_zeroed),
        Represent: Service(representing.answer, lambda: visible.innermost.batch_tokens),
        WordFeatures: Service(representing.answer_features),
        Attention: Service(inside.answer_attention),
        Importance: Service(inside.answer_importance),
        Noised: Service(inside.answer_noised),
        Mixed: Service(inside.answer_mixed),
    }
    if filling is not None:
        services |= {
            Fill: Service(filling.answer, lambda: filling.batch_tokens),
            WordProbabilities: Service(filling.answer_word_probabilities, lambda: filling.batch_tokens),
            Predict: Service(filling.answer_predictions),
            Perplexity: Service(filling.answer_perplexities),
            Surprisal: Service(filling.answer_surprisals),
        }
    if embedding is not None:
        services[Embed] = Service(embedding.answer)
    return services


def innermost(classifier: Classifier) -> Classifier:
    """The model inside all defenses.

    An isinstance check of the protocol would read its classes, which a function may not know yet.
    """
    while hasattr(classifier, "answer") and (inner := getattr(classifier, "inner", None)) is not None:
        classifier = inner
    return classifier


def _split(answer_harness: Answer, answer_searches: Answer) -> Answer:
    """Sends the scores that count as queries to one service, those that the harness asks for to another."""

    def answer(requests: Sequence[Score]) -> list[Any]:
        answers: dict[int, Any] = {}
        for counted, service in ((False, answer_harness), (True, answer_searches)):
            places = [place for place, request in enumerate(requests) if request.counted == counted]
            answers |= zip(places, service([requests[place] for place in places]), strict=True)
        return [answers[place] for place in range(len(requests))]

    return answer
