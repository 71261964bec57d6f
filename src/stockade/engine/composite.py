"""Scores with a classifier that queries another one, such as a defense around a model.

The answers to all texts of a round are coroutines that a scheduler runs over the inner classifier, so that what they
ask is served together. The random choices of a randomised classifier depend on the search and on the index of the query
within it, never on the order of calls: resume and concurrency do not change them.
"""

from __future__ import annotations

from collections.abc import Sequence

from stockade.core.errors import ModelError, ScoringFailed, SearchStopped, StockadeError
from stockade.core.example import Scores
from stockade.core.protocols import Classifier, CompositeClassifier, Probabilities
from stockade.core.text import Text, TextInput
from stockade.engine.batching import TokenBudget
from stockade.engine.cache import BoundedCache
from stockade.engine.computing import reason_of
from stockade.engine.language import EmbeddingService, FillingService
from stockade.engine.requests import Confirm, Draw, Masked, Score
from stockade.engine.scheduler import Scheduler, Search
from stockade.engine.scoring import Scoring, ScoringService, Verdict, collected

_CONCURRENCY = 256
"""The most answers in flight; usually fewer fill the batches of the model inside."""
_UNNAMED = Draw(0, 0)


def make_scoring(
    classifier: Classifier,
    budget: TokenBudget | None = None,
    *,
    filling: FillingService | None = None,
    embedding: EmbeddingService | None = None,
) -> Scoring:
    """The service that scores with a classifier, whether it queries another one or not.

    Parameters
    ----------
    classifier
        What scores the texts.
    budget
        The size of the batches of the innermost classifier.
    filling, embedding
        The language models that the classifier, or one inside it, may ask.
    """
    if not isinstance(classifier, CompositeClassifier):
        return ScoringService(classifier, budget)
    inner = make_scoring(classifier.inner, budget, filling=filling, embedding=embedding)
    return CompositeService(classifier, inner, filling, embedding)


class CompositeService:
    """Scores texts for all searches with a classifier that queries another one.

    Parameters
    ----------
    classifier
        What scores the texts.
    inner
        The service that scores with the classifier inside.
    filling, embedding
        The language models that the classifier may ask.
    """

    def __init__(
        self,
        classifier: CompositeClassifier,
        inner: Scoring,
        filling: FillingService | None = None,
        embedding: EmbeddingService | None = None,
    ) -> None:
        self.classifier: Classifier = classifier
        self._composite, self._inner = classifier, inner
        self._scheduler = Scheduler.for_classifier(inner, _CONCURRENCY, filling=filling, embedding=embedding)
        self._cache: BoundedCache[Verdict] = BoundedCache()
        self._texts_scored = self._rows_for_them = 0

    @property
    def batch_tokens(self) -> int:
        """How many tokens of texts fill a batch of the model inside with what is asked of it about them.

        How many rows that is for a text is learned from the texts so far. The first is scored alone.
        """
        if not self._texts_scored:
            return 1
        rows = max(1, self._rows_for_them) / self._texts_scored
        return max(1, round(self._inner.batch_tokens / rows))

    @property
    def rows(self) -> int:
        return self._inner.rows

    @property
    def model_seconds(self) -> float:
        return self._inner.model_seconds

    @property
    def innermost(self) -> ScoringService:
        return self._inner.innermost

    def charge(self, rows: int, seconds: float) -> None:
        self._inner.charge(rows, seconds)

    def answer_scores(self, requests: Sequence[Score]) -> list[list[Scores] | SearchStopped]:
        before = self._inner.rows
        if self._composite.deterministic:
            table = self._score_unique({text.input: text for request in requests for text in request.texts})
            verdicts = iter([table[text.input] for request in requests for text in request.texts])
        else:
            drawn = [
                (text, (request.draw or _UNNAMED).seed(offset))
                for request in requests
                for offset, text in enumerate(request.texts)
            ]
            verdicts = iter(self._answers(drawn))
        self._rows_for_them += self._inner.rows - before
        self._texts_scored += sum(len(request.texts) for request in requests)
        return [collected([next(verdicts) for _ in request.texts], request.partial) for request in requests]

    def answer_confirmations(self, requests: Sequence[Confirm]) -> list[list[Scores] | SearchStopped]:
        """Each text by itself, past all caches; a randomised classifier with other choices each time."""
        answers = []
        for request in requests:
            draw = request.draw or _UNNAMED
            seeds = [0 if self._composite.deterministic else draw.seed(offset) for offset in range(request.draws)]
            answers.append(collected(self._answers([(request.text, seed) for seed in seeds])))
        return answers

    def answer_masked(self, requests: Sequence[Masked]) -> list[Probabilities | SearchStopped]:
        raise ModelError(
            "A defense that hides words must stand directly around the model: name it last, after the other defenses."
        )

    def _score_unique(self, texts: dict[TextInput, Text]) -> dict[TextInput, Verdict]:
        return self._cache.fetch(texts, lambda missing: self._answers([(texts[item], 0) for item in missing]))

    def _answers(self, drawn: Sequence[tuple[Text, int]]) -> list[Verdict]:
        searches = [self._search(text, seed) for text, seed in drawn]
        places = {id(search): place for place, search in enumerate(searches)}
        verdicts: list[Verdict] = [ScoringFailed("the model gave no answer")] * len(drawn)
        for finished in self._scheduler.run(searches):
            result = finished.result
            if isinstance(result, SearchStopped):
                result = ScoringFailed(str(result))
            verdicts[places[id(finished.search)]] = result
        return verdicts

    def _search(self, text: Text, seed: int) -> Search[Verdict]:
        async def answer() -> Verdict:
            try:
                return await self._composite.answer(text.with_sides("hypothesis"), seed)
            except (SearchStopped, StockadeError):
                raise
            except Exception as error:  # a fault in one answer must not cost the others
                return ScoringFailed(reason_of(error))

        return Search(answer, weight=len(str(text)), draw_seed=seed)
