"""The risk of a mask rate: how likely an attack is seen whole (Zeng et al. 2021, section 4.3, equation 10).

Differences to the paper: it asks for a rate at which the risk is greater than one half; what protects is a risk smaller
than that.
"""

from __future__ import annotations

from dataclasses import dataclass

from stockade.core.errors import OptionError
from stockade.core.masks import kept_words

ENOUGH = 0.5


@dataclass(frozen=True, slots=True)
class Risk:
    """The chance that every attacked word of a text survives the masking, with the counts it was computed from."""

    words: int
    attacked: int
    hidden: int
    probability: float


def risk(words: int, rate: float, attacked: float, kept: int = 1) -> Risk:
    """The risk of a text of so many words at a mask rate, when the share `attacked` of its words was changed.

    C(words - attacked, hidden) / C(words, hidden), as a product of shares; 0 when fewer words stay than were changed.
    """
    for name, share in (("mask rate", rate), ("share of attacked words", attacked)):
        if not 0 <= share <= 1:
            raise OptionError(f"The {name} is {share}, expected a share between 0 and 1, such as 0.3.")
    if words < 1:
        raise OptionError(f"A text of {words} words has no risk; give at least 1.")
    shown, changed = kept_words(words, rate, kept), round(attacked * words)
    chance = 1.0
    for survivor in range(changed):
        chance *= max(0, shown - survivor) / (words - survivor)
    return Risk(words, changed, words - shown, chance)


def lowest_rate(words: int, attacked: float, enough: float = ENOUGH, kept: int = 1) -> float | None:
    """The lowest mask rate, in steps of 5 %, whose risk is below `enough`; None where even 95 % is too risky."""
    rates = (step / 20 for step in range(1, 20))
    return next((rate for rate in rates if risk(words, rate, attacked, kept).probability < enough), None)
