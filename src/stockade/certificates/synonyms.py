"""Words with synonyms, counted as radii count words: by the blanks between them.

SAFER draws for each run of letters by itself, and blanks may separate fewer words than there are such runs: "good/bad"
is one word to whoever counts changes, and both of its parts may then be replaced. So the overlap of a word is the
product of those of its parts.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from stockade.certificates.distributions import SynonymDistribution
from stockade.core.text import Text

if TYPE_CHECKING:
    from stockade.lexicon.perturbation_sets import WordSet

_WORD = re.compile(r"\S+")


def parts_by_word(text: Text, sets: Sequence[WordSet]) -> dict[int, list[WordSet]]:
    """For each word of `text.split()` that can be replaced, by its number: the sets of its parts."""
    begins = [match.start() for match in _WORD.finditer(str(text))]
    found: dict[int, list[WordSet]] = {}
    for one in sets:
        found.setdefault(bisect_right(begins, text.starts[one.index]) - 1, []).append(one)
    return found


def synonym_distribution(text: Text, sets: Sequence[WordSet]) -> SynonymDistribution:
    """How copies of a text with these sets are drawn."""
    return SynonymDistribution(tuple(_together(parts) for parts in parts_by_word(text, sets).values()))


def _together(parts: Sequence[WordSet]) -> float:
    """The product of the overlaps, not rounded up beyond what a single one may be (see `synonym_losses`)."""
    if len(parts) == 1:
        return parts[0].overlap
    product = math.prod(_below(part.overlap) for part in parts)
    near = float(product)
    return near if near <= product else math.nextafter(near, 0.0)


def _below(overlap: float) -> Fraction:
    return Fraction(math.nextafter(overlap, 0.0) if 0 < overlap < 1 else overlap)
