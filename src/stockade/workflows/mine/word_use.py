"""How strongly data tie a word to a class."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from stockade.lexicon.association import SMOOTHING, WordCounts

_Z = 1.959963984540054


@dataclass(frozen=True, slots=True)
class LogOdds:
    """How much more likely a text of a class is to have a word than a text of the others: the logarithm (base 2) of
    the ratio of the odds, with its 95 % interval. 0 means no difference, 1 twice the odds.
    """

    value: float
    low: float
    high: float

    @property
    def is_clear(self) -> bool:
        """Whether the interval excludes 0."""
        return self.low > 0 or self.high < 0


@dataclass(frozen=True, slots=True, kw_only=True)
class WordUse:
    """A word in the data.

    Parameters
    ----------
    word
        The word.
    texts
        How many texts of each class have it.
    pmi
        Its PMI with each class in bits, as in the transfer paper's Table 6; 0 where no text has it.
    log_odds
        The class of the rule against all others.
    """

    word: str
    texts: Mapping[str, int]
    pmi: Mapping[str, float]
    log_odds: LogOdds


def log_odds(counts: WordCounts, word: str, label: str) -> LogOdds:
    """How strongly a word is tied to a class, against all other classes together.

    The counts of texts with and without the word have 0.5 added (Haldane and Anscombe), so that nothing is infinite;
    the interval is Woolf's.

    Parameters
    ----------
    counts
        The word counts.
    word
        The word.
    label
        The class.
    """
    inside, outside = counts.frequency(word, label), sum(counts.frequency(word, other) for other in counts.labels)
    outside -= inside
    of_class, of_others = counts.texts[label], sum(counts.texts.values()) - counts.texts[label]
    cells = [count + SMOOTHING for count in (inside, of_class - inside, outside, of_others - outside)]
    value = math.log2(cells[0] * cells[3] / (cells[1] * cells[2]))
    half = _Z * math.sqrt(sum(1 / cell for cell in cells)) / math.log(2)
    return LogOdds(round(value, 4), round(value - half, 4), round(value + half, 4))


def use_of(word: str, label: str, counts: WordCounts) -> WordUse:
    """What the data say about a word.

    Parameters
    ----------
    word
        The word.
    label
        The class that its odds are about.
    counts
        The word counts.
    """
    return WordUse(
        word=word.lower(),
        texts={other: counts.frequency(word, other) for other in counts.labels},
        pmi={other: round(counts.pmi(word, other), 3) for other in counts.labels},
        log_odds=log_odds(counts, word, label),
    )
