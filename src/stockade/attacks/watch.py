"""Lets an attack search although not every question gets an answer, and notes what it has tried.

The query budget may end in the middle of a request, and a model may fail on single texts. Attacks need not know: such a
text has `NoScores`, which fool nobody and are worse than any others, and the search goes on with the rest. When nothing
is left of the budget, the next request ends the search, which then returns what it has declared to fall back on. So the
queries of a search within a budget are the first of those it would make within a larger one, and a success within a
budget is one within every larger budget.
"""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from dataclasses import replace
from typing import Any

from stockade.attacks.word_attack import EVERY_WORD_TRIED
from stockade.core.errors import BudgetExhausted, ScoringFailed, SearchStopped
from stockade.core.example import NoScores
from stockade.core.records import Outcome
from stockade.core.text import Text
from stockade.engine.requests import Fallback, Query, Request

_BUDGET_ENDED = NoScores()
_PATIENCE = 64
"""How many queries a model may fail on before a search is given up because it fails on most of them."""


class Watch:
    """Runs the search of one attack on one text.

    Parameters
    ----------
    search
        The attack's coroutine, not yet begun.

    Attributes
    ----------
    queries, tried, failed
        How many queries got an answer or a failure; how many candidates were scored; how many queries failed.
    """

    def __init__(self, search: Coroutine[Any, Any, Outcome]) -> None:
        self._search = search
        self.queries = self.tried = self.failed = 0
        self._first_failure = ""
        self._fallback: Outcome | None = None

    async def outcome(self) -> Outcome:
        """What the search returns, or what it falls back on.

        A search that the model, by failing on most queries, has kept from finding anything ends in an error: to call
        the text robust would be wrong.
        """
        try:
            outcome = await self
        except SearchStopped as stopped:
            outcome = self._fallback or Outcome.failed(str(stopped))
            if not outcome.is_found and not isinstance(stopped, BudgetExhausted):
                raise
            outcome = outcome if outcome.is_found else replace(outcome, reason=str(stopped))
        if not outcome.is_found and self._fallback is not None and self._fallback.is_found:
            return self._fallback
        if not outcome.is_found and 2 * self.failed > self.queries:
            raise self._given_up()
        if outcome.reason == EVERY_WORD_TRIED and not self.tried:
            return replace(outcome, reason="no word has a candidate that may take its place")
        return outcome

    def __await__(self) -> Generator[Request[Any], Any, Outcome]:
        answer: Any = None
        stopped: SearchStopped | None = None
        try:
            while True:
                request = self._search.send(answer) if stopped is None else self._search.throw(stopped)
                answer = stopped = None
                if isinstance(request, Fallback):
                    if self._fallback is None or request.outcome.is_found or not self._fallback.is_found:
                        self._fallback = request.outcome
                    continue
                try:
                    if isinstance(request, Query):
                        answer = self._noted(request, (yield replace(request, partial=True)))
                    else:
                        answer = yield request
                except SearchStopped as reason:
                    stopped = reason
        except StopIteration as end:
            outcome: Outcome = end.value
            return outcome
        finally:
            self._search.close()

    def _noted(self, request: Query[Any], answer: list[Any]) -> list[Any]:
        """The answer, with `NoScores` for the texts beyond the budget."""
        scores = request.scores_in(answer)
        failures = [item for item in scores if isinstance(item, NoScores)]
        self.queries += len(scores)
        if not request.probe:
            self.tried += sum(
                map(_is_edited, request.texts[: len(scores)])
                if not failures
                else (_is_edited(text) and item.answered for text, item in zip(request.texts, scores, strict=False))
            )
        if failures:
            self.failed += len(failures)
            self._first_failure = self._first_failure or failures[0].reason or ""
            if self.failed > _PATIENCE and 2 * self.failed > self.queries:
                raise self._given_up()
        missing = len(request.texts) - len(answer)
        return [*answer, *[request.without_answer(_BUDGET_ENDED)] * missing] if missing else answer

    def _given_up(self) -> ScoringFailed:
        return ScoringFailed(
            f"the model failed on {self.failed} of {self.queries} queries, on the first because {self._first_failure}"
        )


def _is_edited(text: Text) -> bool:
    return text.words != text.original.words
