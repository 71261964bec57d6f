"""Lets an attack search although not every question gets an answer, and notes what it has tried.

The query budget may end in the middle of a request, and a model may fail on single texts. Attacks need not know: such a
text has `NoScores`, which fool nobody and are worse than any others, and the search goes on with the rest. When nothing
is left of the budget, the next request ends the search, which then returns what it has declared to fall back on. So the
queries of a search within a budget are the first of those it would make within a larger one, and a success within a
budget is one within every larger budget.

A randomised model may be fooled by a text once and not again. `dismiss` takes such a text back, and `outcome` then lets
the search go on from there: it is run again with the answers that it had, apart from those in which that text fooled
the model, and asks new questions only where its course differs. A course depends on answers and seed alone, so this is
what the search would have done, had the text not fooled the model. Answers to questions that an earlier course asked
and a later one asks elsewhere are used again, so no query is paid for twice.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from dataclasses import dataclass, replace
from typing import Any

from stockade.attacks.word_attack import EVERY_WORD_TRIED
from stockade.core.errors import BudgetExhausted, ScoringFailed, SearchStopped
from stockade.core.example import NoScores, Scores
from stockade.core.records import Outcome
from stockade.core.text import Text
from stockade.engine.requests import Fallback, Query, Request, Score

_BUDGET_ENDED = NoScores()
_PATIENCE = 64
"""How many queries a model may fail on before a search is given up because it fails on most of them."""


@dataclass(frozen=True, slots=True)
class _Answered:
    """A request of a search with its answer."""

    request: Request[Any]
    answer: Any


class Watch:
    """Runs the search of one attack on one text.

    Parameters
    ----------
    start
        Begins the attack's coroutine; each time alike.
    fooled
        Whether scores mean a success. Given for randomised models: texts can then be dismissed, and all answers are
        kept for that.

    Attributes
    ----------
    queries, tried, failed
        How many queries got an answer or a failure; how many candidates were scored; how many queries failed.
    """

    def __init__(
        self, start: Callable[[], Coroutine[Any, Any, Outcome]], fooled: Callable[[Scores], bool] | None = None
    ) -> None:
        self._start, self._fooled = start, fooled
        self.queries = self.tried = self.failed = 0
        self._first_failure = ""
        self._fallback: Outcome | None = None
        self._answered: list[_Answered] = []
        self._left: dict[tuple[type, Any], list[Any]] = {}
        self._dismissed: dict[Text, Scores] = {}

    def dismiss(self, text: Text, scores: Scores) -> None:
        """Show the search other scores, which do not fool, wherever a text fooled the model; `outcome` goes on then."""
        self._dismissed[text] = scores

    def is_dismissed(self, text: Text) -> bool:
        """Whether the search has been told that a text does not fool the model."""
        return text in self._dismissed

    def flip(self, text: Text) -> int | None:
        """The number of the first query in which a candidate text fooled the model; None if none did.

        The first query of a search has the number 1. Only answers of the model itself count, not those from its inside.
        """
        number = 0
        for item in self._answered:
            if not isinstance(item.request, Query):
                continue
            if isinstance(item.request, Score) and not item.request.probe:
                for offset, (asked, scores) in enumerate(zip(item.request.texts, item.answer, strict=True)):
                    if asked == text and self._fooled is not None and self._fooled(scores):
                        return number + offset + 1
            number += len(item.request.texts)
        return None

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
        search, self._fallback = self._start(), None
        place = 0
        answer: Any = None
        stopped: SearchStopped | None = None
        try:
            while True:
                request = search.send(answer) if stopped is None else search.throw(stopped)
                answer = stopped = None
                if isinstance(request, Fallback):
                    if self._fallback is None or request.outcome.is_found or not self._fallback.is_found:
                        self._fallback = request.outcome
                    continue
                if place == len(self._answered) or self._answered[place].request != request:
                    self._leave_course(place)
                    try:
                        answer = (yield from self._asked(request)) if isinstance(request, Query) else (yield request)
                    except SearchStopped as reason:
                        stopped = reason
                        continue
                    if self._fooled is None:
                        continue
                    self._answered.append(_Answered(request, answer))
                answer = self._shown(request, self._answered[place].answer)
                place += 1
        except StopIteration as end:
            outcome: Outcome = end.value
            return outcome
        finally:
            search.close()

    def _leave_course(self, place: int) -> None:
        """Forget the requests from a place on, but not the answers to their texts."""
        for item in self._answered[place:]:
            if isinstance(item.request, Query):
                for text, answer, scores in zip(
                    item.request.texts, item.answer, item.request.scores_in(item.answer), strict=True
                ):
                    if scores.answered:
                        self._left.setdefault((type(item.request), text), []).append(answer)
        del self._answered[place:]

    def _asked(self, request: Query[Any]) -> Generator[Request[Any], Any, list[Any]]:
        """The answer to a request, from an earlier course as far as that has one; each of its answers is used once."""
        kept = {
            at: self._left[type(request), text].pop(0)
            for at, text in enumerate(request.texts if self._left else ())
            if self._left.get((type(request), text))
        }
        new = [text for at, text in enumerate(request.texts) if at not in kept] if kept else request.texts
        if not new and kept:
            return list(kept.values())
        rest = replace(request, texts=new)
        answers = iter(self._noted(rest, (yield replace(rest, partial=True))))
        return [kept[at] if at in kept else next(answers) for at in range(len(request.texts))]

    def _shown(self, request: Request[Any], answer: Any) -> Any:
        """An answer as the search may see it: without the flips of texts that were dismissed."""
        if not isinstance(request, Query) or self._fooled is None:
            return answer
        if not self._dismissed or request.probe:
            return list(answer)  # the search may sort or shorten what it gets
        return [
            request.rescored(item, self._dismissed[text]) if text in self._dismissed and self._fooled(scores) else item
            for text, item, scores in zip(request.texts, answer, request.scores_in(answer), strict=True)
        ]

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
