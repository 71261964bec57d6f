"""What greedy word attacks share: walk the words in a fixed order, keep a change that helps, stop at the
first success.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Iterable, Sequence

from stockade.core.example import Example, Scores
from stockade.core.records import Outcome
from stockade.core.text import Text
from stockade.engine.requests import Score
from stockade.lexicon.stopwords import StopList, is_stop_word

NOT_EVEN_ONE = "the share of changed words does not allow even one"
Candidates = Callable[[Text, int], Awaitable[Sequence[Text]]]


def changes_allowed(example: Example, max_changed: float | None, *, round_up: bool = False) -> int:
    """How many words may differ from the original: a share of its words, rounded down (or up, as TextAttack does)."""
    if max_changed is None:
        return len(example.text)
    allowed = max_changed * len(example.text)
    return math.ceil(allowed) if round_up else int(allowed)


def one_word_may_change(example: Example, max_changed: float | None) -> bool:
    """For attacks that change exactly one word: whether the share allows it."""
    return changes_allowed(example, max_changed) >= 1


def changeable(example: Example, stop_words: StopList) -> list[int]:
    """The words a search may change, by index: all that the model reads but stop words."""
    words = example.text.words
    return [i for i in example.indices if not is_stop_word(words[i], stop_words)]


def descending(indices: Sequence[int], values: Sequence[float]) -> list[int]:
    """The indices by falling value; equal values (up to 1e-6) in text order, so that every machine walks alike."""
    return [index for _, index in sorted(zip((-round(value, 6) for value in values), indices, strict=True))]


async def greedy(
    example: Example, clean: Scores, order: Iterable[int], candidates: Candidates, allowed: int
) -> Outcome:
    """Replace words in the given order of original indices by the candidate that helps most; only an improvement is
    kept.
    """
    current, gain = example.text, example.gain(clean)
    for index in order:
        if len(current.edits) >= allowed:
            return Outcome.failed(f"no success with {allowed} changed words", current)
        tried = await candidates(current, index)
        if not tried:
            continue
        scores = await Score(tried, partial=True)
        gains = [example.gain(score) for score in scores]
        best = gains.index(max(gains))
        if gains[best] <= gain:
            continue
        current, gain = tried[best], gains[best]
        if example.fooled(scores[best]):
            return Outcome.found(current)
    return Outcome.failed("every word was tried", current)
