"""The query budget of a search: how many logical queries it has used, and how many different texts they were."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeVar

from stockade.core.errors import BudgetExhausted
from stockade.engine.requests import Query

AnyQuery = TypeVar("AnyQuery", bound=Query[Any])


@dataclass(slots=True)
class Meter:
    """Counts the queries of one search and refuses those beyond its budget.

    `rows` counts different texts within this search, so it does not depend on what other searches asked or on the
    cache.
    """

    budget: int | None = None
    queries: int = 0
    _texts: set[int] = field(default_factory=set)

    @property
    def rows(self) -> int:
        """How many different texts the queries were about."""
        return len(self._texts)

    def admit(self, request: AnyQuery) -> AnyQuery:
        """The request as far as the budget allows it."""
        if not request.counted:
            return request
        if self.budget is not None:
            left = self.budget - self.queries
            if len(request.texts) > left:
                if left <= 0 or not request.partial:
                    raise BudgetExhausted(f"the query budget of {self.budget} is used up")
                request = request.first(left)
        self.queries += len(request.texts)
        self._texts.update(map(hash, request.texts))
        return request
