"""The numbers of attacks on a randomised model by the rule that one wrong answer is enough, as papers count.

The rule that the summary leads with demands at least half of the model's answers (`attacks/repeatability.py`). Runs of
models that always answer alike, and those of versions that knew one rule only, have none of these fields.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from stockade.core.records import Record
from stockade.core.statistics import RunningMean, wilson


def first_flip_shares(
    counted: Mapping[str, int], n: int, attacked: int, mostly_untried: bool
) -> dict[str, dict[str, float | None]]:
    """Robust accuracy and success rate where one wrong answer of a randomised model is enough; nothing for others.

    Parameters
    ----------
    counted
        How many texts have both rules recorded, and how many a first flip.
    n, attacked
        All texts, and those that the model gets right.
    mostly_untried
        Whether the attack had nothing to try on most of them.
    """
    if not attacked or counted["both rules"] < attacked:
        return {}
    flipped = counted["first flip"]
    return {
        "first_flip_robust_accuracy": wilson(attacked - flipped, 0 if mostly_untried else n),
        "first_flip_success_rate": wilson(flipped, attacked),
    }


class BothRules:
    """What a randomised model was fooled by once, and how often it was asked to know what fools it repeatedly."""

    def __init__(self) -> None:
        self._counted: Counter[str] = Counter()
        self._queries, self._draws, self._dismissed = RunningMean(), RunningMean(), 0

    def add(self, record: Record) -> None:
        self._counted["both rules"] += record.first_flip is not None
        self._counted["first flip"] += bool(record.first_flip)
        self._queries.add(record.first_flip_queries)
        self._draws.add(record.draws)
        self._dismissed += record.dismissed or 0

    def numbers(self, n: int, attacked: int, mostly_untried: bool) -> dict[str, Any]:
        """The fields of a summary; none where not every text that was attacked has both rules recorded."""
        shares = first_flip_shares(self._counted, n, attacked, mostly_untried)
        if not shares:
            return {}
        return {
            "first_flip_succeeded": self._counted["first flip"],
            **shares,
            "first_flip_mean_queries": self._queries.value,
            "dismissed": self._dismissed,
            "mean_draws": self._draws.value,
        }
