"""What greedy word attacks share: walk the words in a fixed order, keep a change that helps, stop at the
first success.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from stockade.core.example import Example, Scores
from stockade.core.records import Outcome
from stockade.core.text import Text
from stockade.engine.requests import Score
from stockade.lexicon import is_stop_word

Candidates = Callable[[Text, int], Sequence[Text]]


def changes_allowed(example: Example, max_changed: float | None) -> int:
    """How many words may differ from the original: a share of its words, rounded down."""
    return len(example.text) if max_changed is None else int(max_changed * len(example.text))


def changeable(text: Text, skip_stop_words: bool) -> list[int]:
    """The words a search may change, by index: all of them, or all but NLTK's stop words."""
    return [i for i in text.indices if not (skip_stop_words and is_stop_word(text.words[i]))]


def descending(indices: Sequence[int], values: Sequence[float]) -> list[int]:
    """The indices by falling value; equal values (up to 1e-6) in text order, so that every machine walks alike."""
    return [index for _, index in sorted(zip((-round(value, 6) for value in values), indices, strict=True))]


async def greedy(
    example: Example, clean: Scores, order: Iterable[int], candidates: Candidates, allowed: int
) -> Outcome:
    """Replace words in the given order of original indices by the candidate that helps most; only an improvement is
    kept.
    """
    current, gain, changed = example.text, example.gain(clean), 0
    for index in order:
        if changed >= allowed:
            return Outcome.failed(f"no success with {allowed} changed words", current)
        tried = candidates(current, index)
        if not tried:
            continue
        scores = await Score(tried, partial=True)
        gains = [example.gain(score) for score in scores]
        best = gains.index(max(gains))
        if gains[best] <= gain:
            continue
        current, gain, changed = tried[best], gains[best], changed + 1
        if example.fooled(scores[best]):
            return Outcome.found(current)
    return Outcome.failed("every word was tried", current)
