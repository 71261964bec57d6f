"""What every attack that edits words has in common: its limits, and the care for what it writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stockade.attacks.articles import repaired
from stockade.attacks.constraints import Constraint, MaxChanged, conjunction
from stockade.core.errors import OptionError
from stockade.core.text import Text


def check_max_changed(share: float | None) -> None:
    """Refuse a limit in percent, or one that nothing can meet: the model would look as if nothing could fool it."""
    if share is not None and not 0 < share <= 1:
        raise OptionError(f"--max-changed is {share:g}, expected a share of the words above 0, at most 1, such as 0.2.")


@dataclass(frozen=True, slots=True, kw_only=True)
class WordAttack:
    """The options of all attacks by words."""

    max_changed: float | None = None
    """The largest share of the original's words that may change."""
    constraint: Constraint | None = None
    """What candidates must keep besides what the attack itself asks, such as `similarity(cosine, 0.9)`."""
    repair_articles: bool = False
    """Put "a" and "an" right in front of a new word; the article is then a changed word too."""

    def written(self, candidates: Sequence[Text], before: Text, index: int) -> Sequence[Text]:
        """Candidates as they should be read: with the articles put right, if asked."""
        return [repaired(text, before, index) for text in candidates] if self.repair_articles else candidates

    def limits(self, *own: Constraint | None) -> Constraint | None:
        """The attack's own constraints and the user's, in one."""
        count = MaxChanged(self.max_changed) if self.repair_articles and self.max_changed is not None else None
        return conjunction(*own, self.constraint, count)

    async def allowed(self, candidates: Sequence[Text], before: Text, index: int) -> Sequence[Text]:
        """The candidates that hold the user's constraint, well written."""
        limits, candidates = self.limits(), self.written(candidates, before, index)
        return candidates if limits is None else await limits.keep(candidates, before, index)
