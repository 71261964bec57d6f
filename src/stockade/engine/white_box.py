"""Answers what white-box attacks and defenses ask of a classifier.

That is gradients, the vocabulary, scores with a word zeroed, with noise or mixed, attention, importance, and which
words are read at all; sentence vectors are in `representing`.

All texts of a round go to the model together. Where that raises, the requests are halved until the one that causes it
stands alone; its search ends with the reason. A model that does not show what is asked for ends the run with one
sentence about what is missing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from stockade.core.attention import attention_of_words
from stockade.core.errors import ModelError, ScoringFailed, SearchStopped
from stockade.core.example import NoScores, Scores
from stockade.core.protocols import (
    AttentiveClassifier,
    Classifier,
    ImportanceClassifier,
    MixingClassifier,
    NoisedClassifier,
    Probabilities,
    SignVocabularyClassifier,
    TokenScores,
    VocabularyKind,
    WhiteBoxClassifier,
    WindowedClassifier,
    WordVocabulary,
    ZeroingClassifier,
)
from stockade.engine.computing import reason_of
from stockade.engine.requests import (
    Attention,
    Gradient,
    Importance,
    Mixed,
    Noised,
    Query,
    Request,
    VisibleWords,
    Vocabulary,
    Zeroed,
)
from stockade.engine.scoring import Verdict, collected, to_verdicts

Charge = Callable[[int, float], None]
Answer = TypeVar("Answer")
AnyRequest = TypeVar("AnyRequest", bound=Request[Any])
Vector = NDArray[np.float32]
_NO_WORDS = WordVocabulary((), np.zeros((0, 0), dtype=np.float32))


class WhiteBoxService:
    """Looks into a classifier for all searches.

    Parameters
    ----------
    classifier
        The model inside all defenses.
    charge
        Called with how many rows the model computed in how many seconds.
    """

    def __init__(self, classifier: Classifier, charge: Charge = lambda rows, seconds: None) -> None:
        self._classifier, self._charge = classifier, charge

    def answer_visible_words(self, requests: Sequence[VisibleWords]) -> Sequence[Sequence[int]]:
        """The words that the classifier reads; one that does not cut long texts is taken to read all of them."""
        texts = [request.text for request in requests]
        if isinstance(self._classifier, WindowedClassifier):
            return self._classifier.visible_words(texts)
        return [text.indices for text in texts]

    def answer_gradients(self, requests: Sequence[Gradient]) -> list[list[Vector] | SearchStopped]:
        return _contained(requests, self._gradients)

    def answer_vocabulary(self, requests: Sequence[Vocabulary]) -> list[WordVocabulary]:
        if not isinstance(self._classifier, WhiteBoxClassifier) and not any(request.required for request in requests):
            return [_NO_WORDS] * len(requests)
        return [self._vocabulary(request.kind) for request in requests]

    def _vocabulary(self, kind: VocabularyKind) -> WordVocabulary:
        model = self._white_box()
        if kind == "all" and isinstance(model, SignVocabularyClassifier):
            return model.whole_vocabulary()
        return model.word_vocabulary()

    def answer_zeroed(self, requests: Sequence[Zeroed]) -> list[list[Scores] | SearchStopped]:
        return _contained(requests, self._zeroed)

    def answer_attention(self, requests: Sequence[Attention]) -> list[Vector | SearchStopped]:
        return _contained(requests, self._attention)

    def answer_importance(self, requests: Sequence[Importance]) -> list[TokenScores | SearchStopped]:
        return _contained(requests, self._importance)

    def answer_noised(self, requests: Sequence[Noised]) -> list[NDArray[np.float64] | SearchStopped]:
        return _contained(requests, self._noised)

    def answer_mixed(self, requests: Sequence[Mixed]) -> list[NDArray[np.float64] | SearchStopped]:
        return _contained(requests, self._mixed)

    def _gradients(self, requests: Sequence[Gradient]) -> list[list[Vector] | SearchStopped]:
        model = self._white_box()
        answers: list[list[Vector] | SearchStopped] = [[] for _ in requests]
        for label in dict.fromkeys(request.label for request in requests):
            same = [number for number, request in enumerate(requests) if request.label == label]
            texts = [text for number in same for text in requests[number].texts]
            with self._charged(len(texts)):
                rows = iter(model.word_gradients(texts, label))
            for number in same:
                answers[number] = [next(rows) for _ in requests[number].texts]
        return answers

    def _zeroed(self, requests: Sequence[Zeroed]) -> list[list[Scores] | SearchStopped]:
        if not isinstance(self._classifier, ZeroingClassifier):
            raise not_shown("its input vectors", "them")
        places = [place for request in requests for place in request.texts]
        with self._charged(len(places)):
            verdicts = iter(self._verdicts(self._classifier.predict_zeroed(places)) if places else ())
        return [collected([next(verdicts) for _ in request.texts], request.partial) for request in requests]

    def _attention(self, requests: Sequence[Attention]) -> list[Vector | SearchStopped]:
        if not isinstance(self._classifier, AttentiveClassifier):
            raise not_shown("its attention", "it")
        answers: dict[int, Vector | SearchStopped] = {}
        kinds = [(request.layer, request.query, request.pieces) for request in requests]
        for kind in dict.fromkeys(kinds):
            same = [n for n in range(len(requests)) if kinds[n] == kind]
            with self._charged(len(same)):
                words = attention_of_words(self._classifier, [requests[n].text for n in same], *kind)
            answers.update(zip(same, words, strict=True))
        return [answers[number] for number in range(len(requests))]

    def _importance(self, requests: Sequence[Importance]) -> list[TokenScores | SearchStopped]:
        if not isinstance(self._classifier, ImportanceClassifier):
            raise not_shown("the gradients of its tokens", "them")
        answers: dict[int, TokenScores | SearchStopped] = {}
        for objective in dict.fromkeys(request.objective for request in requests):
            same = [n for n, request in enumerate(requests) if request.objective == objective]
            texts = {requests[n].text.input: requests[n].text for n in same}
            with self._charged(len(texts)):
                importance = self._classifier.token_importance(list(texts.values()), objective)
            table = dict(zip(texts, importance, strict=True))
            answers.update({n: table[requests[n].text.input] for n in same})
        return [answers[number] for number in range(len(requests))]

    def _noised(self, requests: Sequence[Noised]) -> list[NDArray[np.float64] | SearchStopped]:
        if not isinstance(self._classifier, NoisedClassifier):
            raise not_shown("its input vectors", "them")
        groups = [request.copies for request in requests]
        counts = [group.copies for group in groups]
        with self._charged(sum(counts)):
            rows = self._classifier.predict_noised(groups)
        return self._by_request(rows, counts)

    def _mixed(self, requests: Sequence[Mixed]) -> list[NDArray[np.float64] | SearchStopped]:
        if not isinstance(self._classifier, MixingClassifier):
            raise not_shown("its input vectors", "them")
        groups = [request.copies for request in requests]
        counts = [len(group.weights) for group in groups]
        with self._charged(sum(counts)):
            rows = self._classifier.predict_mixed(groups)
        return self._by_request(rows, counts)

    def _by_request(self, rows: Probabilities, counts: Sequence[int]) -> list[NDArray[np.float64] | SearchStopped]:
        """The rows of all copies, so many to each request."""
        verdicts = iter(self._verdicts(rows))
        answers: list[NDArray[np.float64] | SearchStopped] = []
        for count in counts:
            scores = collected([next(verdicts) for _ in range(count)])
            if isinstance(scores, SearchStopped):
                answers.append(scores)
            else:
                answers.append(np.array([score.probabilities for score in scores]))
        return answers

    def _verdicts(self, probabilities: NDArray[np.float64]) -> list[Verdict]:
        return to_verdicts(probabilities, len(probabilities), len(self._classifier.labels))

    @contextmanager
    def _charged(self, rows: int) -> Iterator[None]:
        started = time.perf_counter()
        yield
        self._charge(rows, time.perf_counter() - started)

    def _white_box(self) -> WhiteBoxClassifier:
        if not isinstance(self._classifier, WhiteBoxClassifier):
            raise not_shown("the model's gradients and vocabulary", "them", "This attack needs")
        return self._classifier


def _contained(
    requests: Sequence[AnyRequest], answer: Callable[[Sequence[AnyRequest]], list[Answer | SearchStopped]]
) -> list[Answer | SearchStopped]:
    """All requests together, or, where that raises, in halves: only the search that causes it pays for it.

    A query that may stay without some answers is halved itself: only the text that causes it has none.
    """
    try:
        return answer(requests)
    except ModelError:
        raise
    except Exception as error:
        if len(requests) == 1:
            failed = ScoringFailed(reason_of(error))
            request: Any = requests[0]
            return [_in_halves(request, answer, failed) if isinstance(request, Query) and request.partial else failed]
    half = len(requests) // 2
    return _contained(requests[:half], answer) + _contained(requests[half:], answer)


def _in_halves(request: Any, answer: Callable[[Sequence[Any]], list[Any]], failed: ScoringFailed) -> Any:
    """The answer to a query that failed as a whole, with `NoScores` for the texts that fail by themselves."""
    if len(request.texts) <= 1:
        return [request.without_answer(NoScores(reason=str(failed))) for _ in request.texts]
    half = len(request.texts) // 2
    halves = [replace(request, texts=texts) for texts in (request.texts[:half], request.texts[half:])]
    answers: list[Any] = [_contained([part], answer)[0] for part in halves]
    return [item for part in answers for item in part]


def not_shown(what: str, pronoun: str, needs: str = "This attack needs the model to show") -> ModelError:
    return ModelError(
        f"{needs} {what}, and this model does not show {pronoun}: give a Hugging Face model or a built-in one, or "
        "choose an attack that needs scores only."
    )
